"""W2: an epoch over arrays in memory: shuffled, batched, prefetched. The work is the gathering of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.checks import BATCH, shuffled_rows
from bench.pipeline import Open, contender
from bench.spec import MB, ROWS_PER_SECOND, TimesFaster, ValueBelow, Workload

ROWS = 1_000_000
FEATURES = 100
BUFFER = 10_000
Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def arrays(rows: int) -> Arrays:
    """Features, and labels that are the row's index, so that a check can tell which row it was given."""
    return np.random.default_rng(0).random((rows, FEATURES)), np.arange(rows)


def forebay(data: Arrays, rows: int, buffer: int | None) -> Open:
    import forebay as fb

    dataset = fb.Dataset.from_tensor_slices(data).shuffle(buffer).batch(BATCH).prefetch(fb.AUTOTUNE)
    return lambda: iter(dataset)


def tf_data(data: Arrays, rows: int) -> Open:
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(BUFFER).batch(BATCH)
    return dataset.prefetch(tf.data.AUTOTUNE).as_numpy_iterator


def tf_gather(data: Arrays, rows: int) -> Open:
    import tensorflow as tf

    x, y = tf.constant(data[0]), tf.constant(data[1])
    dataset = tf.data.Dataset.range(rows).shuffle(BUFFER).batch(BATCH)
    dataset = dataset.map(lambda i: (tf.gather(x, i), tf.gather(y, i)), num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(tf.data.AUTOTUNE).as_numpy_iterator


def torch_loader(data: Arrays, rows: int, **settings: Any) -> Open:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    dataset = TensorDataset(*map(torch.from_numpy, data))
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, **settings)
    return lambda: iter(loader)


def torch_batch_sampler(data: Arrays, rows: int) -> Open:
    import torch
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

    # Its threads for one operation spin against each other on a batch this small: up to 50x slower with 2.
    torch.set_num_threads(1)
    sampler = BatchSampler(RandomSampler(range(rows)), BATCH, drop_last=False)
    dataset = TensorDataset(*map(torch.from_numpy, data))
    loader = DataLoader(dataset, sampler=sampler, batch_size=None)
    return lambda: iter(loader)


class Pairs:
    """Arrays side by side, read by one index or by an array of them."""

    def __init__(self, data: Arrays) -> None:
        self.x, self.y = data

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        return self.x[index], self.y[index]


def torch_vectorised(data: Arrays, rows: int) -> Open:
    from torch.utils.data import DataLoader

    from bench.torch_sampler import PermutedSlices

    loader = DataLoader(
        Pairs(data),
        sampler=PermutedSlices(rows, BATCH),
        batch_size=None,
        collate_fn=lambda batch: batch,
    )
    return lambda: iter(loader)


def grain(data: Arrays, rows: int) -> Open:
    import grain

    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    dataset = grain.MapDataset.source(Pairs(data)).shuffle(seed=1).batch(BATCH).to_iter_dataset(options)
    return lambda: iter(dataset)


def grain_gather(data: Arrays, rows: int) -> Open:
    import grain

    pairs = Pairs(data)
    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    indices = grain.MapDataset.range(rows).shuffle(seed=1).batch(BATCH)
    dataset = indices.map(pairs.__getitem__).to_iter_dataset(options)
    return lambda: iter(dataset)


def hugging_face(data: Arrays, rows: int) -> Open:
    import datasets
    import pyarrow as pa

    x, y = data
    column = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), FEATURES)
    dataset = datasets.Dataset(pa.table({"x": column, "y": y})).with_format("arrow")

    # Its own numpy format hands out float32 whatever the column holds, so the conversion is done here.
    def epoch() -> Iterator[Any]:
        for table in dataset.shuffle(seed=1).iter(BATCH):
            flat = table["x"].combine_chunks().flatten().to_numpy()
            yield flat.reshape(-1, FEATURES), table["y"].to_numpy()

    return epoch


def numpy_loop(data: Arrays, rows: int) -> Open:
    x, y = data

    def epoch() -> Iterator[Any]:
        order = np.random.default_rng().permutation(rows)
        for at in range(0, rows, BATCH):
            index = order[at : at + BATCH]
            yield x[index], y[index]

    return epoch


buffered = partial(contender, data=arrays, leaf=1, check=shuffled_rows(BUFFER))
whole = partial(contender, data=arrays, leaf=1, check=shuffled_rows(None))

WORKLOADS = (
    Workload(
        name="w2",
        title="from_tensor_slices((1M x 100 f64, labels)).shuffle(10_000).batch(32).prefetch(AUTOTUNE)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=50_000,
        parameters={"features": FEATURES, "buffer": BUFFER, "batch": BATCH},
        contenders=(
            buffered("forebay", "forebay", partial(forebay, buffer=BUFFER)),
            whole("forebay whole", "forebay", partial(forebay, buffer=None), note="shuffle(): uniform"),
            buffered("tf.data", "tensorflow", tf_data),
            buffered(
                "tf.data gather",
                "tensorflow",
                tf_gather,
                rows=300_000,
                note="indices shuffled, rows by tf.gather",
            ),
            whole("torch DataLoader", "torch", torch_loader, note="TensorDataset, shuffle=True"),
            whole("torch BatchSampler", "torch", torch_batch_sampler, note="batch_size=None, 1 thread"),
            whole("torch own sampler", "torch", torch_vectorised, note="hand-written sampler, no collate"),
            whole(
                "torch 2 workers",
                "torch",
                partial(torch_loader, num_workers=2),
                rows=50_000,
                workers=True,
                note="num_workers=2",
            ),
            whole("grain", "grain", grain, rows=200_000, note="num_threads=0"),
            whole("grain gather", "grain", grain_gather, rows=200_000, note="batch of indices, then map"),
            whole("HF datasets", "datasets", hugging_face, rows=100_000, note="in memory, arrow format"),
            whole("NumPy loop", "numpy", numpy_loop, reference=True, note="no pipeline: x[index] per batch"),
        ),
        targets=(
            TimesFaster("forebay", 20, "tensorflow", usual="tf.data"),
            TimesFaster("forebay", 10, "torch", usual="torch DataLoader"),
            ValueBelow("forebay", 64, "MB", "RSS growth", fact="growth_bytes", scale=MB),
        ),
        notes="torch, Grain and HF shuffle the whole dataset. Growth includes copies made on building.",
    ),
)
