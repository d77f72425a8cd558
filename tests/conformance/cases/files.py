"""Sources that read files, and what is made of their records."""

from __future__ import annotations

import atexit
import functools
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import objects, range_
from conformance.cases.laws import reordered

_folder = tempfile.TemporaryDirectory(prefix="forebay-conformance-")
atexit.register(_folder.cleanup)

SIZES = (30, 0, 7, 41)
RECORDS = [[b"%d:%d " % (file, row) * (row % 5) for row in range(size)] for file, size in enumerate(SIZES)]
ALL = [record for file in RECORDS for record in file]
# Some are damaged: what is left when these are passed over.
DAMAGED = {(0, 3), (0, 4), (3, 40)}
GOOD = [record for f, file in enumerate(RECORDS) for r, record in enumerate(file) if (f, r) not in DAMAGED]

io = fb.io
FEATURES = {
    "x": io.FixedLenFeature([], np.int64),
    "v": io.RaggedFeature(np.float32),
    "s": io.FixedLenFeature([2], bytes, b"-"),
}
PARSER = io.ExampleParser(FEATURES)
DENSE = {name: FEATURES[name] for name in ("x", "s")}


@cache
def names(kind: str = "", compression: str | None = None) -> list[str]:
    """Files of these records, written once per process."""
    folder = Path(tempfile.mkdtemp(dir=_folder.name))
    for file, records in enumerate(RECORDS):
        path = folder / f"{file}.tfrecord"
        with io.TFRecordWriter(path, compression) as writer:
            for record in records:
                writer.write(record)
        if kind == "damaged":
            contents = bytearray(path.read_bytes())
            for f, row in DAMAGED:
                if f == file:
                    contents[sum(len(r) + 16 for r in records[: row + 1]) - 1] ^= 1
            path.write_bytes(contents)
    return [str(folder / f"{file}.tfrecord") for file in range(len(SIZES))]


@cache
def examples() -> str:
    path = Path(tempfile.mkdtemp(dir=_folder.name)) / "examples"
    with io.TFRecordWriter(path) as writer:
        for x in range(45):
            writer.write(io.serialize_example({"x": x, "v": [0.5] * (x % 4), "s": [f"row {x}", ""] if x % 3 else []}))
    return str(path)


def _parsed(x: int) -> dict[str, Any]:
    strings = [f"row {x}".encode(), b""] if x % 3 else [b"-", b"-"]
    return {"x": np.int64(x), "v": np.full(x % 4, 0.5, np.float32), "s": objects(strings)}


def _batch(start: int, stop: int) -> dict[str, Any]:
    rows = [_parsed(x) for x in range(start, stop)]
    return {"x": np.arange(start, stop), "s": np.stack([row["s"] for row in rows])}


def _turns(cycle: int) -> list[bytes]:
    """Files in turns of one record: who ends gives its place to the next when its turn comes again."""
    waiting = [iter(file) for file in RECORDS]
    slots: list[Any] = [None] * cycle
    out: list[bytes] = []
    while waiting or any(slot is not None for slot in slots):
        for i in range(cycle):
            if slots[i] is None and waiting:
                slots[i] = waiting.pop(0)
            record = None if slots[i] is None else next(slots[i], None)
            if record is None:
                slots[i] = None
            else:
                out.append(record)
    return out


def records(**how: Any) -> fb.Dataset[Any]:
    return fb.TFRecordDataset(names(), **how)


CASES = [
    Case("tfrecord.files", lambda: records(), ALL, unknown_length=True),
    Case("tfrecord.small_buffer", lambda: records(buffer_size=20), ALL, unknown_length=True),
    Case(
        "tfrecord.gzip",
        lambda: fb.TFRecordDataset(names(compression="GZIP"), "GZIP"),
        ALL,
        unknown_length=True,
    ),
    Case("tfrecord.parallel_reads", lambda: records(num_parallel_reads=3), lambda: _turns(3), unknown_length=True),
    Case("tfrecord.dataset_of_names", lambda: fb.TFRecordDataset(range_(4).map(_name)), ALL, unknown_length=True),
    Case("tfrecord.interleave", lambda: _interleaved(), lambda: _turns(2), unknown_length=True),
    Case("tfrecord.interleave_without_threads", lambda: _interleaved(None), lambda: _turns(2), unknown_length=True),
    Case("tfrecord.interleave_ahead", lambda: _interleaved(fb.AUTOTUNE), lambda: _turns(2), unknown_length=True),
    Case(
        "tfrecord.skip_errors_ahead",
        lambda: _damaged(on_error="skip", num_parallel_reads=fb.AUTOTUNE),
        law=reordered(GOOD, bytes),
        unknown_length=True,
    ),
    Case("tfrecord.index", lambda: records(index=True), ALL),
    Case("tfrecord.index_shard", lambda: records(index=True).skip(3).shard(3, 1), ALL[4::3]),
    Case(
        "tfrecord.index_shuffle",
        lambda: records(index=True).shuffle(seed=2),
        law=reordered(ALL, bytes),
        reshuffles=True,
    ),
    Case(
        "tfrecord.shuffle",
        lambda: records().shuffle(9, seed=2),
        law=reordered(ALL, bytes),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "tfrecord.shuffle_all",
        lambda: records().shuffle(seed=2),
        law=reordered(ALL, bytes),
        reshuffles=True,
        unknown_length=True,
    ),
    Case("tfrecord.cache", lambda: records().cache(), ALL, unknown_length=True),
    Case("tfrecord.skip_errors", lambda: _damaged(on_error="skip"), GOOD, unknown_length=True),
    Case("tfrecord.skip_errors_index", lambda: _damaged(on_error="skip", index=True), GOOD),
    Case(
        "tfrecord.too_many_errors",
        lambda: _damaged(on_error="skip", max_errors=1),
        RECORDS[0][:3],
        raises=fb.FileError,
        unknown_length=True,
    ),
    Case("tfrecord.error", lambda: _damaged(), RECORDS[0][:3], raises=fb.FileError, unknown_length=True),
    Case("tfrecord.error_index", lambda: _damaged(index=True), RECORDS[0][:3], raises=fb.FileError),
    Case(
        "parse_single_example.lambda",
        lambda: fb.TFRecordDataset(examples()).map(lambda record: fb.io.parse_single_example(record, FEATURES)),
        lambda: [_parsed(x) for x in range(45)],
        unknown_length=True,
    ),
    Case(
        "parse_single_example.partial_index",
        lambda: fb.TFRecordDataset(examples(), index=True).map(
            functools.partial(io.parse_single_example, features=FEATURES)
        ),
        lambda: [_parsed(x) for x in range(45)],
    ),
    Case(
        "parse_single_example.parser_on_threads",
        lambda: fb.TFRecordDataset(examples()).map(PARSER, num_parallel_calls=2, executor="thread"),
        lambda: [_parsed(x) for x in range(45)],
        unknown_length=True,
    ),
    Case(
        "parse_single_example.then_map",
        lambda: fb.TFRecordDataset(examples()).map(PARSER).map(lambda row: row["x"] * 2).batch(8),
        lambda: [np.arange(i, min(i + 8, 45)) * 2 for i in range(0, 45, 8)],
        unknown_length=True,
    ),
    Case(
        "parse_example.batches",
        lambda: fb.TFRecordDataset(examples()).batch(8).map(lambda records: io.parse_example(records, DENSE)),
        lambda: [_batch(i, min(i + 8, 45)) for i in range(0, 45, 8)],
        unknown_length=True,
    ),
    Case(
        "parse_example.ragged_batches",
        lambda: fb.TFRecordDataset(examples()).batch(9).map(lambda r: io.parse_example(r, {"v": FEATURES["v"]})),
        lambda: [{"v": _ragged(i, i + 9)} for i in range(0, 45, 9)],
        unknown_length=True,
    ),
]


def _ragged(start: int, stop: int) -> Any:
    lengths = np.arange(start, stop) % 4
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return io.RaggedTensor(np.full(lengths.sum(), 0.5, np.float32), splits)


def _interleaved(calls: int | None = 2) -> fb.Dataset[Any]:
    return range_(4).interleave(lambda i: fb.TFRecordDataset(_name(i)), cycle_length=2, num_parallel_calls=calls)


def _name(file: Any) -> str:
    # Not the names as data: they differ from one process to the next, and their digest with them.
    return names()[int(file)]


def _damaged(**how: Any) -> fb.Dataset[Any]:
    return fb.TFRecordDataset(names("damaged"), **how)
