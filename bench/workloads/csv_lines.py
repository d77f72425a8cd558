"""Text lines and CSV records, from files to batches. tf.data makes a tensor of every line and of every field.

pandas and pyarrow read CSV in pieces of their own choosing: they are shown for orientation.
"""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.pipeline import Open, WrongData, contender
from bench.spec import ROWS_PER_SECOND, TimesFaster, Workload

ROWS = 1_000_000
BATCH = 256
TYPES = ("int64", "float32", "float32", "int64", "bytes", "float64")


def _path(name: str) -> str:
    folder = tempfile.mkdtemp(prefix="forebay-bench-")
    atexit.register(shutil.rmtree, folder, True)
    return f"{folder}/{name}"


def csv_file(rows: int) -> str:
    """A number of the row, three numbers of usual length, a name, and a number of full length."""
    path, chance = _path("a.csv"), random.Random(1)
    with open(path, "w") as file:
        for i in range(rows):
            file.write(f"{i},{chance.random():.6f},{chance.gauss(0, 100):.4f},{chance.randrange(10**9)},")
            file.write(f"name {i % 1000},{chance.random()}\n")
    return path


def text_file(rows: int) -> str:
    """Sentences of about 60 characters that begin with the number of their line."""
    path = _path("a.txt")
    with open(path, "w") as file:
        file.writelines(f"{i} the quick brown fox jumps over the lazy dog, again\n" for i in range(rows))
    return path


def csv_records(path: str, rows: int, batches: Iterable[Any]) -> None:
    """What Python reads from the file."""
    at = 0
    with open(path) as file:
        for batch in batches:
            lines = [file.readline().rstrip("\n").split(",") for _ in range(len(batch[0]))]
            for values, column, kind in zip(batch, zip(*lines), TYPES):
                expected = [each.encode() for each in column] if kind == "bytes" else np.array(column, kind)
                if not np.array_equal(np.asarray(values), np.asarray(expected, getattr(values, "dtype", None))):
                    raise WrongData(f"the batch at row {at:,} does not hold what is in the file")
            at += len(lines)
    if at != rows:
        raise WrongData(f"{at:,} rows, expected {rows:,}")


def text_lines(path: str, rows: int, batches: Iterable[Any]) -> None:
    """What Python reads from the file."""
    at = 0
    with open(path, "rb") as file:
        for batch in batches:
            if list(batch) != [file.readline().rstrip(b"\n") for _ in range(len(batch))]:
                raise WrongData(f"the batch at row {at:,} does not hold what is in the file")
            at += len(batch)
    if at != rows:
        raise WrongData(f"{at:,} rows, expected {rows:,}")


def forebay_csv(path: str, rows: int) -> Open:
    import forebay as fb

    columns = [bytes if kind == "bytes" else np.dtype(kind) for kind in TYPES]
    dataset = fb.CsvDataset(path, columns).batch(BATCH)
    return lambda: iter(dataset)


def tf_csv(path: str, rows: int, prefetch: bool) -> Open:
    import tensorflow as tf

    columns = [tf.string if kind == "bytes" else tf.as_dtype(kind) for kind in TYPES]
    dataset = tf.data.experimental.CsvDataset(path, columns).batch(BATCH)
    return (dataset.prefetch(tf.data.AUTOTUNE) if prefetch else dataset).as_numpy_iterator


def tf_decode_csv(path: str, rows: int) -> Open:
    import tensorflow as tf

    columns = [tf.constant([], tf.string if kind == "bytes" else tf.as_dtype(kind)) for kind in TYPES]
    dataset = tf.data.TextLineDataset(path).batch(BATCH).map(lambda lines: tuple(tf.io.decode_csv(lines, columns)))
    return dataset.prefetch(tf.data.AUTOTUNE).as_numpy_iterator


def pandas_csv(path: str, rows: int) -> Open:
    import pandas as pd

    kinds = {i: "str" if kind == "bytes" else kind for i, kind in enumerate(TYPES)}

    def epoch() -> Iterator[Any]:
        for table in pd.read_csv(path, header=None, dtype=kinds, chunksize=BATCH * 64):
            columns = [table[i].to_numpy() for i in range(len(TYPES))]
            columns[4] = np.array([each.encode() for each in columns[4]], object)
            for at in range(0, len(table), BATCH):
                yield tuple(column[at : at + BATCH] for column in columns)

    return epoch


def forebay_lines(path: str, rows: int) -> Open:
    import forebay as fb

    dataset = fb.TextLineDataset(path).batch(BATCH)
    return lambda: iter(dataset)


def tf_lines(path: str, rows: int, prefetch: bool) -> Open:
    import tensorflow as tf

    dataset = tf.data.TextLineDataset(path).batch(BATCH)
    return (dataset.prefetch(tf.data.AUTOTUNE) if prefetch else dataset).as_numpy_iterator


def python_lines(path: str, rows: int) -> Open:
    def epoch() -> Iterator[Any]:
        batch = []
        with open(path, "rb") as file:
            for line in file:
                batch.append(line.rstrip(b"\r\n"))
                if len(batch) == BATCH:
                    yield np.array(batch, object)
                    batch = []
        if batch:
            yield np.array(batch, object)

    return epoch


csv = partial(contender, data=csv_file, check=csv_records, leaf=0)
lines = partial(contender, data=text_file, check=text_lines)

WORKLOADS = (
    Workload(
        name="csv",
        title="CSV, 6 columns, .batch(256)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=20_000,
        parameters={"batch": BATCH, "columns": TYPES},
        contenders=(
            csv("forebay", "forebay", forebay_csv),
            csv("tf.data", "tensorflow", partial(tf_csv, prefetch=False), rows=200_000, note="CsvDataset"),
            csv("tf.data prefetch", "tensorflow", partial(tf_csv, prefetch=True), rows=200_000),
            csv("tf.data decode_csv", "tensorflow", tf_decode_csv, rows=200_000, note="lines, batch, map(decode_csv)"),
            csv("pandas", "pandas", pandas_csv, rows=500_000, reference=True, note="read_csv(chunksize=16384), sliced"),
        ),
        targets=(TimesFaster("forebay", 10, "tensorflow", usual="tf.data"),),
    ),
    Workload(
        name="text",
        title="lines of about 60 bytes, .batch(256)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=20_000,
        parameters={"batch": BATCH},
        contenders=(
            lines("forebay", "forebay", forebay_lines),
            lines("tf.data", "tensorflow", partial(tf_lines, prefetch=False), rows=300_000),
            lines("tf.data prefetch", "tensorflow", partial(tf_lines, prefetch=True), rows=300_000),
            lines("Python loop", "numpy", python_lines, reference=True, note="for line in open(path)"),
        ),
        targets=(TimesFaster("forebay", 10, "tensorflow", usual="tf.data"),),
    ),
)
