"""W3b: TFRecord files of large records, beside a plain read of the same files from the page cache."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from bench.pipeline import Open, WrongData, contender
from bench.spec import ROWS_PER_SECOND, AtLeast, TimesFaster, Workload
from bench.tfrecords import large

ROWS = 3_000
SIZE = 100_000
BATCH = 8


def forebay(files: list[str], rows: int, ahead: bool = False) -> Open:
    import forebay as fb

    dataset = fb.TFRecordDataset(files)
    batches = (dataset.prefetch(fb.AUTOTUNE) if ahead else dataset).batch(BATCH)
    return lambda: batches


def tf_data(files: list[str], rows: int, reads: int | None = None) -> Open:
    import tensorflow as tf

    dataset = tf.data.TFRecordDataset(files, num_parallel_reads=reads, buffer_size=8 << 20).batch(BATCH)
    return dataset.prefetch(tf.data.AUTOTUNE).as_numpy_iterator


def plain_read(files: list[str], rows: int) -> Open:
    """Into one buffer of 1 MiB, over and over: the bytes are there and nothing is done with them."""

    def run() -> Iterable[Any]:
        buffer = np.empty(1 << 20, np.uint8)
        total = sum(map(os.path.getsize, files))
        done = given = 0
        for name in files:
            with open(name, "rb", buffering=0) as file:
                while got := file.readinto(buffer.data):
                    done += got
                    count = done * rows // total - given
                    given += count
                    yield range(count)

    return run


def records(files: list[str], rows: int, batches: Iterable[Any]) -> None:
    count = 0
    for batch in batches:
        if any(len(record) != SIZE for record in batch):
            raise WrongData("a record of another size")
        count += len(batch)
    if count != rows:
        raise WrongData(f"{count} records, expected {rows}")


def counted(files: list[str], rows: int, batches: Iterable[Any]) -> None:
    assert sum(map(len, batches)) == rows


run = partial(contender, data=large, check=records)

WORKLOADS = (
    Workload(
        name="w3b",
        title="TFRecordDataset(files of 100 KB records).batch(8)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=ROWS // 10,
        parameters={"bytes": SIZE, "batch": BATCH},
        contenders=(
            run("forebay", "forebay", forebay),
            run("forebay prefetch", "forebay", partial(forebay, ahead=True)),
            run("tf.data", "tensorflow", tf_data, note="8 MiB buffer, prefetch"),
            run("tf.data 2 files", "tensorflow", partial(tf_data, reads=2), note="num_parallel_reads=2"),
            contender("plain read", "numpy", plain_read, data=large, check=counted, reference=True, note="page cache"),
        ),
        targets=(TimesFaster("forebay", 2, "tensorflow", usual="tf.data"), AtLeast("forebay", 0.3, "plain read")),
    ),
)
