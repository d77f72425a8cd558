"""W4: JPEG files to batches of small images. W4b: large ones, decoded no larger than they are needed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.pictures import BATCH, SIZE, exact, folder, pictures, psnr
from bench.pipeline import Open, contender
from bench.spec import ROWS_PER_SECOND, AtLeast, Contender, Sample, Task, TimesFaster, Unit, ValueAbove, Workload

ROWS, DIFFERENT = 600, 100
LARGE_ROWS, LARGE_DIFFERENT = 200, 10
WORKERS = 2
DECIBELS = Unit("dB", higher_is_better=True)

small = partial(folder, "w4", 430, 500, DIFFERENT)
# Files of some 0.9 MB.
large = partial(folder, "w4b", 2000, 3000, LARGE_DIFFERENT, scale=3)

run = partial(contender, data=small, check=pictures, first_apart=True)
run_large = partial(contender, data=large, check=pictures, first_apart=True)


def forebay(paths: list[str], rows: int, **settings: Any) -> Open:
    import forebay as fb

    dataset = fb.Dataset.from_images(Path(paths[0]).parent, None, size=(SIZE, SIZE), **settings).take(rows)
    batches = dataset.batch(BATCH)
    return lambda: iter(batches)


def tf_data(paths: list[str], rows: int, ratio: int = 1) -> Open:
    import tensorflow as tf

    def load(path: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, ratio=ratio)
        return tf.image.resize(image, (SIZE, SIZE))

    dataset = tf.data.Dataset.from_tensor_slices(paths).map(load, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator


class Files:
    """A map-style dataset, as torch's DataLoader reads one."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> np.ndarray[Any, Any]:
        import cv2

        return cv2.resize(cv2.imread(self.paths[index], cv2.IMREAD_COLOR_RGB), (SIZE, SIZE))


def one_thread(worker: int) -> None:
    import cv2

    cv2.setNumThreads(0)


def shared_tensor(rows: list[np.ndarray[Any, Any]]) -> Any:
    """Stacked in shared memory at once: the queue to the main process then has nothing left to copy."""
    import torch

    whole = torch.empty((len(rows), SIZE, SIZE, 3), dtype=torch.uint8).share_memory_()
    np.stack(rows, out=whole.numpy())
    return whole


def torch_opencv(paths: list[str], rows: int) -> Open:
    from torch.utils.data import DataLoader

    settings = {"num_workers": WORKERS, "persistent_workers": True, "prefetch_factor": 4}
    loader = DataLoader(Files(paths), batch_size=BATCH, collate_fn=shared_tensor, worker_init_fn=one_thread, **settings)
    return lambda: iter(loader)


def dali(paths: list[str], rows: int) -> Open:
    """The settings that are fastest without a GPU. Most of its time goes to its resize, whichever operator that is."""
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=WORKERS, device_id=None, prefetch_queue_depth=4)
    def pipeline() -> Any:
        data, _ = fn.readers.file(files=paths, pad_last_batch=True, dont_use_mmap=True)
        images = fn.decoders.image(data, device="cpu", output_type=types.RGB, use_fast_idct=True)
        return fn.resize(images, size=(SIZE, SIZE), interp_type=types.INTERP_LINEAR, antialias=False)

    running = pipeline()
    running.build()

    def epoch() -> Any:
        for start in range(0, rows, BATCH):
            (images,) = running.run()
            yield images.as_array()[: rows - start]

    return epoch


def spdl(paths: list[str], rows: int) -> Open:
    """Its pipeline with OpenCV's decoder: its own needs a shared FFmpeg, which few machines have."""
    from spdl.pipeline import PipelineBuilder

    one_thread(0)
    files = Files(paths)

    def load(batch: list[int]) -> np.ndarray[Any, Any]:
        whole = np.empty((len(batch), SIZE, SIZE, 3), np.uint8)
        for place, index in enumerate(batch):
            whole[place] = files[index]
        return whole

    def epoch() -> Any:
        batches = PipelineBuilder().add_source(range(rows)).aggregate(BATCH)
        # As they are asked for, like everybody else's: by default batches come as they are ready.
        built = batches.pipe(load, concurrency=WORKERS, output_order="input").add_sink(4)
        pipeline = built.build(num_threads=WORKERS)
        with pipeline.auto_stop():
            yield from pipeline

    return epoch


def quality(task: Task) -> Sample:
    """The least of all images."""
    import forebay as fb

    paths = large(task.rows)[:LARGE_DIFFERENT]
    found = [psnr(fb.image.decode_and_resize(fb.io.read_file(path), (SIZE, SIZE)), exact(path)) for path in paths]
    return {"value": min(found), "all": found, "verified": True}


WORKLOADS = (
    Workload(
        name="w4",
        title="JPEG files of about 430 x 500, to 224 x 224, batch(32)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=64,
        parameters={"batch": BATCH, "size": SIZE, "workers": WORKERS},
        contenders=(
            run("forebay", "forebay", forebay, note="from_images, AUTOTUNE"),
            run("forebay exact", "forebay", partial(forebay, exact=True), note="the same pixels as tf.image"),
            run("tf.data", "tensorflow", tf_data, note="read_file, decode_jpeg, resize, AUTOTUNE, prefetch"),
            run("torch + OpenCV", "torch", torch_opencv, note="2 workers, persistent, stacked in shared memory"),
            run("DALI", "nvidia.dali", dali, note="CPU, 2 threads"),
            run("SPDL + OpenCV", "spdl", spdl, note="2 threads"),
        ),
        targets=(
            TimesFaster("forebay", 1.25, "tensorflow", usual="tf.data"),
            TimesFaster("forebay", 1.25, "torch", usual="torch + OpenCV"),
            TimesFaster("forebay", 1.25, "nvidia.dali", usual="DALI"),
            TimesFaster("forebay", 1.25, "spdl", usual="SPDL + OpenCV"),
        ),
        notes="Files lie in the page cache. DALI is run where nvidia-dali-cuda120 and nvidia-nvimgcodec-cu12 are "
        "installed, which are too large for everybody. The first epoch, in which workers are started, is shown apart.",
    ),
    Workload(
        name="w4b",
        title="JPEG files of about 2000 x 3000, to 224 x 224, batch(32)",
        unit=ROWS_PER_SECOND,
        rows=LARGE_ROWS,
        quick_rows=BATCH,
        parameters={"batch": BATCH, "size": SIZE},
        contenders=(
            run_large("forebay", "forebay", forebay, note="from_images, decoded 8 times smaller"),
            run_large("forebay exact", "forebay", partial(forebay, exact=True), note="decoded whole"),
            run_large("tf.data", "tensorflow", tf_data, note="decoded whole"),
            run_large("tf.data ratio=8", "tensorflow", partial(tf_data, ratio=8), note="ratio=8 by hand"),
        ),
        targets=(AtLeast("forebay", 3, "tf.data"), AtLeast("forebay", 1.5, "tf.data ratio=8")),
    ),
    Workload(
        name="w4b-psnr",
        title="W4b: the least PSNR against images that were decoded whole",
        unit=DECIBELS,
        rows=LARGE_ROWS,
        quick_rows=BATCH,
        contenders=(Contender("forebay", "forebay", quality, note="decoded 8 times smaller"),),
        targets=(ValueAbove("forebay", 30, "dB", "PSNR"),),
    ),
)
