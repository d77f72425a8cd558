"""W0: a Python function called for each element. What remains is the cost of getting to it and back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.checks import BATCH, doubled
from bench.pipeline import Open, contender
from bench.spec import ROWS_PER_SECOND, TimesFaster, Workload

ROWS = 1_000_000
run = partial(contender, check=doubled)


def double(x: Any) -> Any:
    return x * 2


def forebay(_: None, rows: int) -> Open:
    import forebay as fb

    dataset = fb.Dataset.range(rows).map(lambda x: x * 2).batch(BATCH)
    return lambda: iter(dataset)


def forebay_batched(_: None, rows: int) -> Open:
    import forebay as fb

    dataset = fb.Dataset.range(rows).map(lambda x: x * 2, batched=True).batch(BATCH)
    return lambda: iter(dataset)


def tf_sequential(_: None, rows: int) -> Open:
    import tensorflow as tf

    return tf.data.Dataset.range(rows).map(lambda x: x * 2).batch(BATCH).as_numpy_iterator


def tf_autotune(_: None, rows: int) -> Open:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(rows).map(lambda x: x * 2, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator


def tf_fused(_: None, rows: int) -> Open:
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.map_and_batch_fusion = True
    dataset = tf.data.Dataset.range(rows).map(lambda x: x * 2, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH).with_options(options).as_numpy_iterator


def tf_batch_first(_: None, rows: int) -> Open:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(rows).batch(BATCH).map(lambda x: x * 2)
    return dataset.prefetch(tf.data.AUTOTUNE).as_numpy_iterator


class Doubles:
    """A map-style dataset, as torch's DataLoader reads one."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> Any:
        if index >= self.rows:
            raise IndexError(index)
        return double(index)


def torch_loader(_: None, rows: int, **settings: Any) -> Open:
    from torch.utils.data import DataLoader

    loader = DataLoader(Doubles(rows), batch_size=BATCH, **settings)
    return lambda: iter(loader)


def torch_numpy(_: None, rows: int) -> Open:
    import numpy as np

    return torch_loader(_, rows, collate_fn=np.array)


def grain(_: None, rows: int) -> Open:
    import grain

    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    dataset = grain.MapDataset.range(rows).map(double).batch(BATCH).to_iter_dataset(options)
    return lambda: iter(dataset)


def numpy_loop(_: None, rows: int) -> Open:
    import numpy as np

    block = BATCH * 128

    def epoch() -> Iterator[Any]:
        for start in range(0, rows, block):
            values = np.array([double(x) for x in range(start, min(start + block, rows))])
            for at in range(0, len(values), BATCH):
                yield values[at : at + BATCH]

    return epoch


WORKLOADS = (
    Workload(
        name="w0",
        title="range(1M).map(lambda x: x * 2).batch(32)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=20_000,
        parameters={"batch": BATCH},
        ratios_of=("forebay", "forebay batched"),
        contenders=(
            run("forebay", "forebay", forebay, note="a Python call for each element"),
            run("forebay batched", "forebay", forebay_batched, note="map(batched=True): whole columns"),
            run("tf.data", "tensorflow", tf_sequential, rows=100_000, note="x * 2 is traced into a graph"),
            run("tf.data AUTOTUNE", "tensorflow", tf_autotune, rows=100_000, note="parallel map, prefetch"),
            run("tf.data fused", "tensorflow", tf_fused, rows=100_000, note="map_and_batch_fusion, AUTOTUNE"),
            run(
                "tf.data batch first",
                "tensorflow",
                tf_batch_first,
                rows=500_000,
                reference=True,
                note="batch().map(): the counterpart of batched=True",
            ),
            run("torch DataLoader", "torch", torch_loader, note="num_workers=0"),
            run("torch NumPy collate", "torch", torch_numpy, note="num_workers=0, collate_fn=np.array"),
            run(
                "torch 2 workers",
                "torch",
                partial(torch_loader, num_workers=2),
                rows=100_000,
                workers=True,
                note="num_workers=2",
            ),
            run("grain", "grain", grain, rows=500_000, note="num_threads=0"),
            run("NumPy loop", "numpy", numpy_loop, reference=True, note="no pipeline: a list per 4,096 rows"),
        ),
        targets=(
            TimesFaster("forebay", 50, "tensorflow", usual="tf.data"),
            TimesFaster("forebay batched", 200, "tensorflow", usual="tf.data"),
        ),
    ),
)
