"""W7b: a function that lets go of the interpreter lock, so that threads are enough to use a second core."""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.pipeline import Open, WrongData, contender
from bench.spec import ROWS_PER_SECOND, AtLeast, TimesFaster, Workload

ROWS = 12_000
BATCH = 16
SIZE = 64 << 10
DIFFERENT = 100
WORKERS = 2


def plain(seed: int) -> bytes:
    """64 KiB of made-up words, which shrink to about a third."""
    chance = random.Random(seed)
    words = [bytes(chance.choices(b"etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(2_000)]
    return b" ".join(chance.choices(words, k=SIZE // 3))[:SIZE]


def compressed(rows: int) -> list[bytes]:
    different = [zlib.compress(plain(seed)) for seed in range(min(rows, DIFFERENT))]
    return [different[row % len(different)] for row in range(rows)]


def decompress(data: bytes) -> np.ndarray[Any, Any]:
    return np.frombuffer(zlib.decompress(data), np.uint8)


def decompressed(data: list[bytes], rows: int, batches: Iterable[Any]) -> None:
    """Every row holds its own bytes, in order."""
    expected = np.stack([decompress(each) for each in data[:DIFFERENT]])
    at = 0
    for values in map(np.asarray, batches):
        size = min(BATCH, rows - at)
        if not np.array_equal(values, expected[np.arange(at, at + size) % len(expected)]):
            raise WrongData(f"the batch at row {at:,} does not hold what its rows decompress to")
        at += size
    if at != rows:
        raise WrongData(f"{at:,} rows, expected {rows:,}")


def nothing_to_check(data: list[bytes], rows: int, batches: Iterable[Any]) -> None:
    """Rows of a bare loop go nowhere."""


run = partial(contender, data=compressed, check=decompressed, first_apart=True)
loop = partial(contender, data=compressed, check=nothing_to_check, first_apart=True, reference=True)


def forebay(data: list[bytes], rows: int, **settings: Any) -> Open:
    import forebay as fb

    dataset = fb.Dataset.from_tensor_slices(data).map(decompress, **settings).batch(BATCH)
    return lambda: iter(dataset)


def forebay_kernel(data: list[bytes], rows: int, **settings: Any) -> Open:
    import forebay as fb

    def call(each: bytes) -> Any:
        return fb.io.decode_raw(fb.io.decode_compressed(each, "ZLIB"), np.uint8)

    dataset = fb.Dataset.from_tensor_slices(data).map(call, **settings).batch(BATCH)
    return lambda: iter(dataset)


def bare(data: list[bytes], rows: int, workers: int) -> Open:
    """Threads that each decompress a part of the rows, without a pipeline: what the machine makes of two."""

    def part(at: int) -> None:
        for row in range(at, rows, workers):
            decompress(data[row])

    def epoch() -> Iterator[Any]:
        threads = [threading.Thread(target=part, args=(at,)) for at in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        yield range(rows)

    return epoch


class Compressed:
    """A map-style dataset, as torch's DataLoader reads one."""

    def __init__(self, data: list[bytes]) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> np.ndarray[Any, Any]:
        return decompress(self.data[index])

    def __getitems__(self, indices: list[int]) -> list[np.ndarray[Any, Any]]:
        return [decompress(self.data[index]) for index in indices]


def stacked_tensor(rows: list[np.ndarray[Any, Any]]) -> Any:
    import torch

    return torch.from_numpy(np.stack(rows))


def shared_tensor(rows: list[np.ndarray[Any, Any]]) -> Any:
    """Stacked in shared memory at once: the queue to the main process then has nothing left to copy."""
    import torch

    whole = torch.empty((len(rows), SIZE), dtype=torch.uint8).share_memory_()
    np.stack(rows, out=whole.numpy())
    return whole


def torch_loader(data: list[bytes], rows: int, collate: Callable[[list[Any]], Any], workers: int = WORKERS) -> Open:
    from torch.utils.data import DataLoader

    settings = {"num_workers": workers, "persistent_workers": True, "prefetch_factor": 4}
    loader = DataLoader(Compressed(data), batch_size=BATCH, collate_fn=collate, **settings)
    return lambda: iter(loader)


def tf_kernel(data: list[bytes], rows: int) -> Open:
    import tensorflow as tf

    def call(each: Any) -> Any:
        return tf.io.decode_raw(tf.io.decode_compressed(each, "ZLIB"), tf.uint8)

    dataset = tf.data.Dataset.from_tensor_slices(data).map(call, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator


def tf_numpy_function(data: list[bytes], rows: int) -> Open:
    import tensorflow as tf

    def call(each: Any) -> Any:
        values = tf.numpy_function(decompress, [each], tf.uint8)
        values.set_shape((SIZE,))
        return values

    dataset = tf.data.Dataset.from_tensor_slices(data).map(call, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator


WORKLOADS = (
    Workload(
        name="w7b",
        title="blobs.map(zlib.decompress to 64 KiB).batch(16)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=ROWS // 20,
        parameters={"batch": BATCH, "bytes": SIZE, "workers": WORKERS},
        ratios_of=("forebay", "forebay decode_compressed"),
        contenders=(
            run(
                "forebay",
                "forebay",
                partial(forebay, num_parallel_calls=-1, executor="thread"),
                note='executor="thread", AUTOTUNE',
            ),
            run("forebay auto", "forebay", partial(forebay, num_parallel_calls=-1), note='executor="auto", AUTOTUNE'),
            run(
                "forebay decode_compressed",
                "forebay",
                partial(forebay_kernel, num_parallel_calls=-1, executor="thread"),
                note="decode_compressed, decode_raw, AUTOTUNE",
            ),
            run("forebay inline", "forebay", forebay, note="no num_parallel_calls: the consumer's thread"),
            loop("bare loop", "numpy", partial(bare, workers=1), note="no pipeline, one thread, rows dropped"),
            loop("bare threads", "numpy", partial(bare, workers=2), note="the same on two threads"),
            run("torch 2 workers", "torch", partial(torch_loader, collate=stacked_tensor), note="persistent, tensors"),
            run(
                "torch 2 workers, shared",
                "torch",
                partial(torch_loader, collate=shared_tensor),
                note="stacked in shared memory at once",
            ),
            run("tf.data", "tensorflow", tf_kernel, note="decode_compressed, decode_raw, AUTOTUNE, prefetch"),
            run("tf.data numpy_function", "tensorflow", tf_numpy_function, note="AUTOTUNE, prefetch"),
        ),
        targets=(
            AtLeast("forebay", 1.8, "forebay inline"),
            AtLeast("forebay", 1.2, "tf.data numpy_function"),
            TimesFaster("forebay decode_compressed", 1.2, "tensorflow", usual="tf.data"),
            TimesFaster("forebay", 1.2, "torch", usual="torch 2 workers"),
        ),
        notes="With zlib as a function of the user's, and with each library's own function. The first epoch, in which "
        "workers are started, is shown apart. RSS growth without worker processes.",
    ),
)
