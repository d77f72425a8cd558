"""W7: a function that keeps the interpreter busy, so that only processes can use a second core.

Every library gets the same function and the same texts. The first epoch, in which workers are started, is reported
by itself; the value is that of the epochs after it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench.pipeline import Open, contender
from bench.spec import ROWS_PER_SECOND, AtLeast, TimesFaster, Workload
from bench.tokenizer import LENGTH, texts, tokenize, tokenized

BATCH = 64
WORKERS = 2


def forebay(data: list[str], rows: int, **settings: Any) -> Open:
    import forebay as fb

    dataset = fb.Dataset.from_tensor_slices(data).map(tokenize, **settings).batch(BATCH)
    return lambda: iter(dataset)


class Texts:
    """A map-style dataset, as torch's DataLoader reads one."""

    def __init__(self, data: list[str]) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> np.ndarray[Any, Any]:
        return tokenize(self.data[index])


class WholeBatches(Texts):
    """The same, handed out a batch at a time."""

    def __getitems__(self, indices: list[int]) -> list[np.ndarray[Any, Any]]:
        data = self.data
        return [tokenize(data[index]) for index in indices]


def torch_loader(data: list[str], rows: int) -> Open:
    from torch.utils.data import DataLoader

    loader = DataLoader(Texts(data), batch_size=BATCH, num_workers=WORKERS, persistent_workers=True)
    return lambda: iter(loader)


def torch_tuned(data: list[str], rows: int) -> Open:
    """A batch is fetched by one call, stacked by NumPy, and sent without a shared segment of its own."""
    from torch.utils.data import DataLoader

    loader = DataLoader(
        WholeBatches(data),
        batch_size=BATCH,
        num_workers=WORKERS,
        persistent_workers=True,
        prefetch_factor=8,
        collate_fn=np.stack,
    )
    return lambda: iter(loader)


def tf_data(data: list[str], rows: int, eager: bool = False) -> Open:
    import tensorflow as tf

    def numpy_tokenize(text: bytes) -> np.ndarray[Any, Any]:
        return tokenize(text.decode())

    def call(text: Any) -> Any:
        if eager:
            ids = tf.py_function(lambda tensor: tokenize(tensor.numpy().decode()), [text], tf.int32)
        else:
            ids = tf.numpy_function(numpy_tokenize, [text], tf.int32)
        ids.set_shape((LENGTH,))
        return ids

    dataset = tf.data.Dataset.from_tensor_slices(data).map(call, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE).as_numpy_iterator


def tokenize_all(batch: list[str]) -> np.ndarray[Any, Any]:
    return np.stack([tokenize(text) for text in batch])


def pool(data: list[str], rows: int) -> Open:
    """No pipeline: two processes, a batch a call, several calls a message. About what two processors can do."""
    import multiprocessing

    workers = multiprocessing.get_context("spawn").Pool(WORKERS)
    batches = [data[at : at + BATCH] for at in range(0, rows, BATCH)]
    return lambda: workers.imap(tokenize_all, batches, chunksize=8)


def workload(name: str, title: str, letters: int, rows: int, targets: tuple[Any, ...]) -> Workload:
    run = partial(contender, data=partial(texts, letters=letters), check=partial(tokenized, BATCH), first_apart=True)
    automatic = partial(forebay, num_parallel_calls=-1)
    return Workload(
        name=name,
        title=title,
        unit=ROWS_PER_SECOND,
        rows=rows,
        quick_rows=rows // 20,
        parameters={"batch": BATCH, "letters": letters, "workers": WORKERS},
        ratios_of=("forebay", "forebay auto"),
        contenders=(
            run("forebay", "forebay", partial(automatic, executor="process"), note='executor="process", AUTOTUNE'),
            run("forebay auto", "forebay", automatic, note='executor="auto", AUTOTUNE'),
            run("forebay inline", "forebay", forebay, note="no num_parallel_calls: the consumer's thread"),
            run("torch 2 workers", "torch", torch_loader, note="persistent workers, default collate"),
            run(
                "torch 2 workers, tuned",
                "torch",
                torch_tuned,
                note="also __getitems__, collate_fn=np.stack, prefetch_factor=8",
            ),
            run("tf.data", "tensorflow", tf_data, rows=rows // 4, note="numpy_function, AUTOTUNE, prefetch"),
            run(
                "tf.data py_function",
                "tensorflow",
                partial(tf_data, eager=True),
                rows=rows // 4,
                note="py_function, AUTOTUNE, prefetch",
            ),
            run("Pool.imap", "multiprocessing", pool, reference=True, note="no pipeline: all batches cut beforehand"),
        ),
        targets=targets,
        notes="Workers are started in the first epoch, shown apart. RSS growth is that of the main process alone.",
    )


WORKLOADS = (
    workload(
        "w7",
        "texts.map(a tokenizer of about 100 µs).batch(64)",
        letters=90,
        rows=30_000,
        targets=(
            TimesFaster("forebay", 1.4, "torch", usual="torch 2 workers"),
            TimesFaster("forebay", 3, "tensorflow", usual="tf.data py_function"),
            AtLeast("forebay", 1.7, "forebay inline"),
        ),
    ),
    workload(
        "w7-short",
        "texts.map(a tokenizer of about 15 µs).batch(64)",
        letters=14,
        rows=150_000,
        targets=(TimesFaster("forebay", 2, "torch", usual="torch 2 workers"),),
    ),
)
