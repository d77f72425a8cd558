"""W1: a shuffle of small elements. tf.data pays for every row that passes through its buffer.

torch and Grain have no shuffle buffer of this kind: both shuffle the whole dataset, through its indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.checks import BATCH, shuffled
from bench.pipeline import Open, contender
from bench.spec import ROWS_PER_SECOND, Contender, Target, TimesFaster, Workload

ROWS = 1_000_000


def forebay(_: None, rows: int, buffer: int | None) -> Open:
    import forebay as fb

    dataset = fb.Dataset.range(rows).shuffle(buffer).batch(BATCH)
    return lambda: iter(dataset)


def tf_data(_: None, rows: int, buffer: int) -> Open:
    import tensorflow as tf

    return tf.data.Dataset.range(rows).shuffle(buffer).batch(BATCH).as_numpy_iterator


def tf_prefetch(_: None, rows: int, buffer: int) -> Open:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(rows).shuffle(buffer).batch(BATCH)
    return dataset.prefetch(tf.data.AUTOTUNE).as_numpy_iterator


def torch_loader(_: None, rows: int) -> Open:
    from torch.utils.data import DataLoader

    loader = DataLoader(range(rows), batch_size=BATCH, shuffle=True)
    return lambda: iter(loader)


def torch_batch_sampler(_: None, rows: int) -> Open:
    import torch
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler

    values = torch.arange(rows)
    # Its threads for one operation spin against each other on a batch this small: up to 50x slower with 2.
    torch.set_num_threads(1)
    sampler = BatchSampler(RandomSampler(range(rows)), BATCH, drop_last=False)
    loader = DataLoader(values, sampler=sampler, batch_size=None)
    return lambda: iter(loader)


def torch_vectorised(_: None, rows: int) -> Open:
    import numpy as np
    from torch.utils.data import DataLoader

    from bench.torch_sampler import PermutedSlices

    loader = DataLoader(
        np.arange(rows),
        sampler=PermutedSlices(rows, BATCH),
        batch_size=None,
        collate_fn=lambda batch: batch,
    )
    return lambda: iter(loader)


def grain(_: None, rows: int) -> Open:
    import grain

    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    dataset = grain.MapDataset.range(rows).shuffle(seed=1).batch(BATCH).to_iter_dataset(options)
    return lambda: iter(dataset)


def numpy_loop(_: None, rows: int) -> Open:
    import numpy as np

    def epoch() -> Iterator[Any]:
        order = np.random.default_rng().permutation(rows)
        for at in range(0, rows, BATCH):
            yield order[at : at + BATCH]

    return epoch


def workload(name: str, buffer: int, targets: tuple[Target, ...]) -> Workload:
    buffered = partial(contender, check=shuffled(buffer))
    whole = partial(contender, check=shuffled(None))
    contenders: tuple[Contender, ...] = (
        buffered("forebay", "forebay", partial(forebay, buffer=buffer)),
        whole("forebay whole", "forebay", partial(forebay, buffer=None), note="shuffle(): uniform"),
        buffered("tf.data", "tensorflow", partial(tf_data, buffer=buffer), rows=500_000),
        buffered("tf.data prefetch", "tensorflow", partial(tf_prefetch, buffer=buffer), rows=500_000),
        whole("torch DataLoader", "torch", torch_loader, note="range(n), shuffle=True"),
        whole("torch BatchSampler", "torch", torch_batch_sampler, note="batch_size=None, 1 thread"),
        whole("torch own sampler", "torch", torch_vectorised, note="hand-written sampler, NumPy, no collate"),
        whole("grain", "grain", grain, rows=200_000, note="num_threads=0"),
        whole("NumPy loop", "numpy", numpy_loop, reference=True, note="no pipeline: a permutation, sliced"),
    )
    return Workload(
        name=name,
        title=f"range(1M).shuffle({buffer:_}).batch(32)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=50_000,
        parameters={"buffer": buffer, "batch": BATCH},
        contenders=contenders,
        targets=targets,
        notes="torch and Grain shuffle the whole dataset; they have no buffer of this kind.",
    )


WORKLOADS = (
    workload(
        "w1",
        10_000,
        (
            TimesFaster("forebay", 15, "tensorflow", usual="tf.data"),
            TimesFaster("forebay", 5, "torch", usual="torch DataLoader"),
        ),
    ),
    workload("w1b", 100_000, (TimesFaster("forebay", 30, "tensorflow", usual="tf.data"),)),
)
