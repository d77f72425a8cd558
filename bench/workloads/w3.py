"""W3: TFRecord files of small Examples: read, verify, parse, batch. In the two forms that programs have."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from bench.pipeline import Open, contender
from bench.spec import ROWS_PER_SECOND, AtLeast, TimesFaster, Workload
from bench.tfrecords import BATCH, SHARDS, examples, forebay_features, parsed, tf_features

ROWS = 200_000


def forebay_single(files: list[str], rows: int, threads: int | None = None, compression: str | None = None) -> Open:
    import forebay as fb

    features = forebay_features()

    def read(name: Any) -> Any:
        return fb.TFRecordDataset(name, compression)

    dataset = fb.Dataset.from_tensor_slices(files).interleave(read, cycle_length=SHARDS, num_parallel_calls=threads)
    parsed = dataset.map(lambda record: fb.io.parse_single_example(record, features)).batch(BATCH)
    return lambda: parsed


def forebay_batch(files: list[str], rows: int, ahead: bool = False) -> Open:
    import forebay as fb

    features = forebay_features()
    records = fb.TFRecordDataset(files)
    batches = (records.prefetch(fb.AUTOTUNE) if ahead else records).batch(BATCH)
    parsed = batches.map(lambda records: fb.io.parse_example(records, features))
    return lambda: parsed


def tf_single(files: list[str], rows: int, compression: str = "") -> Open:
    import tensorflow as tf

    auto, features = tf.data.AUTOTUNE, tf_features()
    dataset = tf.data.Dataset.from_tensor_slices(files).interleave(
        lambda name: tf.data.TFRecordDataset(name, compression), cycle_length=SHARDS, num_parallel_calls=auto
    )
    dataset = dataset.map(lambda record: tf.io.parse_single_example(record, features), num_parallel_calls=auto)
    return dataset.batch(BATCH).prefetch(auto).as_numpy_iterator


def tf_batch(files: list[str], rows: int, interleave: bool = False, compression: str = "") -> Open:
    import tensorflow as tf

    auto, features = tf.data.AUTOTUNE, tf_features()
    dataset: Any = tf.data.TFRecordDataset(files, compression)
    if interleave:
        dataset = tf.data.Dataset.from_tensor_slices(files).interleave(
            lambda name: tf.data.TFRecordDataset(name, compression), cycle_length=SHARDS, num_parallel_calls=auto
        )
    dataset = dataset.batch(BATCH).map(lambda r: tf.io.parse_example(r, features), num_parallel_calls=auto)
    return dataset.prefetch(auto).as_numpy_iterator


def kernel(files: list[str], rows: int) -> Open:
    """The native code alone: files into a buffer, records found and verified, Examples parsed into columns."""
    from forebay._native import Parser, scan_records
    from forebay.io.request import Request

    parser = Parser(Request(forebay_features()).wanted(), False)

    def run() -> Iterable[Any]:
        buffer = np.empty(1 << 20, np.uint8)
        starts, stops = np.empty(1 << 14, np.int64), np.empty(1 << 14, np.int64)
        for name in files:
            at = 0
            with open(name, "rb", buffering=0) as file:
                while got := file.readinto(buffer.data):
                    count, used, _, _ = scan_records(buffer[:got], True, starts, stops)
                    columns, _ = parser.parse_column(buffer[:got], starts[:count], stops[:count])
                    yield columns[0][0]
                    at += used
                    file.seek(at)

    return run


def counted(files: list[str], rows: int, columns: Iterable[Any]) -> None:
    """As many as there are; what is in them is checked for the pipelines."""
    assert sum(map(len, columns)) == rows


run = partial(contender, data=examples, check=parsed, leaf="id")
bare = contender(
    "bare kernel", "forebay", kernel, data=examples, check=counted, reference=True, note="no pipeline, no batches"
)
SHARED: dict[str, Any] = {
    "unit": ROWS_PER_SECOND,
    "rows": ROWS,
    "quick_rows": ROWS // 10,
    "parameters": {"shards": SHARDS, "batch": BATCH, "floats": 64},
}

WORKLOADS = (
    Workload(
        name="w3",
        title="files.interleave(TFRecordDataset).map(parse_single_example).batch(256)",
        contenders=(
            run("forebay", "forebay", forebay_single),
            run("forebay AUTOTUNE", "forebay", partial(forebay_single, threads=-1), note="interleave on AUTOTUNE"),
            run("tf.data", "tensorflow", tf_single, note="AUTOTUNE everywhere, prefetch"),
            bare,
        ),
        targets=(
            TimesFaster("forebay", 30, "tensorflow", usual="tf.data"),
            # Reading is left to AUTOTUNE, as it is for tf.data.
            AtLeast("forebay AUTOTUNE", 0.5, "bare kernel"),
        ),
        **SHARED,
    ),
    Workload(
        name="w3-batch",
        title="TFRecordDataset(files).batch(256).map(parse_example)",
        contenders=(
            run("forebay", "forebay", forebay_batch),
            run("forebay prefetch", "forebay", partial(forebay_batch, ahead=True), note="prefetch behind the files"),
            run("tf.data", "tensorflow", tf_batch, note="AUTOTUNE, prefetch"),
            run("tf.data interleave", "tensorflow", partial(tf_batch, interleave=True), note="AUTOTUNE, prefetch"),
            bare,
        ),
        targets=(
            TimesFaster("forebay", 25, "tensorflow", usual="tf.data"),
            TimesFaster("forebay prefetch", 25, "tensorflow", usual="tf.data"),
            AtLeast("forebay", 0.5, "bare kernel"),
        ),
        **SHARED,
    ),
)
