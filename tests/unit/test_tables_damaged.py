"""Damaged Arrow IPC files: whichever way they are read, FileError, and never memory that is not theirs."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

import forebay as fb
from forebay import Dataset
from forebay.formats import convert, inspect

FAR = 1 << 30


def _numbers(kind: str, *numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}{kind}", *numbers)


TEXT = pa.array(["a", "bcdefghijklm", "n"])
LISTS = pa.array([[1], [2] * 12, [3]])
# What is in a column of three rows, and numbers in its file with what they are made.
DAMAGED: dict[str, tuple[pa.Array, bytes, bytes]] = {
    "text": (TEXT, _numbers("i", 0, 1, 13, 14), _numbers("i", 0, FAR, 13, 14)),
    "text before its start": (TEXT, _numbers("i", 0, 1, 13, 14), _numbers("i", -FAR, 1, 13, 14)),
    "text behind its end": (TEXT, _numbers("i", 0, 1, 13, 14), _numbers("i", 0, 1, 13, FAR)),
    "text that goes back": (TEXT, _numbers("i", 0, 1, 13, 14), _numbers("i", 0, 13, 1, 14)),
    "large binary": (
        TEXT.cast(pa.large_binary()),
        _numbers("q", 0, 1, 13, 14),
        _numbers("q", 0, 1 << 40, 13, 14),
    ),
    "no text": (TEXT, b"bcdefghijklm", b"bcdefghijkl\xff"),
    "lists": (LISTS, _numbers("i", 0, 1, 13, 14), _numbers("i", 0, FAR, 13, 14)),
    "large lists": (
        LISTS.cast(pa.large_list(pa.int64())),
        _numbers("q", 0, 1, 13, 14),
        _numbers("q", 0, 1, -13, 14),
    ),
    "dictionary": (
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int32()), ["a", "b"]),
        _numbers("i", 1, 0, 1),
        _numbers("i", 1, FAR, 1),
    ),
    "text in structs": (
        pa.StructArray.from_arrays([TEXT], ["inside"]),
        _numbers("i", 0, 1, 13, 14),
        _numbers("i", 0, 1, FAR, 14),
    ),
}

READ: dict[str, Callable[[Path], Any]] = {
    "in order": lambda path: list(Dataset.from_arrow(path, index=False)),
    "by number": lambda path: list(Dataset.from_arrow(path)),
    "shuffled": lambda path: list(Dataset.from_arrow(path).shuffle(seed=1)),
    "a column": lambda path: list(Dataset.from_arrow(path, columns=["bad"])),
    "mapped": lambda path: list(Dataset.from_arrow(path).map(lambda row: row["good"], 2)),
    "skipped": lambda path: list(Dataset.from_arrow(path, on_error="skip", max_errors=0)),
    "converted": lambda path: convert(path, path.with_suffix(".parquet")),
}


def _damage(path: Path, damage: str, stream: bool) -> None:
    array, before, after = DAMAGED[damage]
    batch = pa.record_batch([pa.array([7, 8, 9]), array], ["good", "bad"])
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as file, new(file, batch.schema) as writer:
        writer.write_batch(batch)
    data = path.read_bytes()
    assert data.count(before) == 1
    path.write_bytes(data.replace(before, after))


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
@pytest.mark.parametrize("damage", DAMAGED)
def test_values_that_lie_elsewhere_are_an_error_on_every_path(
    tmp_path: Path, damage: str, stream: bool, read: str
) -> None:
    path = tmp_path / "a.arrow"
    _damage(path, damage, stream)
    with pytest.raises(fb.FileError, match="record batch 0 cannot be read"):
        READ[read](path)


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_damaged_is_listed_and_other_columns_are_read(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.arrow"
    _damage(path, damage, False)
    (report,) = inspect(path, check=True).reports
    assert [fault.file for fault in report.listed_faults] == [str(path)]
    assert [row["good"] for row in Dataset.from_arrow(path, columns=["good"])] == [7, 8, 9]


@pytest.mark.parametrize("filters", [None, [("good", ">", 7)], ~pa.compute.field("bad").is_null()])
@pytest.mark.parametrize("index", [False, True])
def test_parquet_is_looked_at_before_filters_are_applied(tmp_path: Path, filters: Any, index: bool) -> None:
    path = tmp_path / "a.parquet"
    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"good", b"b\xf6d"], pa.binary()).buffers())
    pq.write_table(pa.table({"good": [7, 8], "bad": text}), path)
    with pytest.raises(fb.FileError, match="row group 0 cannot be read"):
        list(Dataset.from_parquet(path, filters=filters, index=index))


SHAPES: dict[str, list[list[int]]] = {
    "larger": [[FAR, FAR], [2, 2], [3, 2]],
    "negative": [[-1, 2], [2, 2], [3, 2]],
    "both negative": [[-1, -2], [2, 2], [3, 2]],
    "as many in all": [[2, 2], [2, 2], [2, 2]],
    "none": [[0, 0], [0, 0], [0, 0]],
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_shapes_that_are_not_those_of_their_rows(tmp_path: Path, shapes: list[list[int]]) -> None:
    path = tmp_path / "a.arrow"
    Dataset.range(3).map(lambda i: {"x": np.ones((i + 1, 2), np.float32)}).to_arrow(path, progress=False)
    with pa.ipc.open_file(path) as reader:
        batch = reader.get_batch(0)
    column = batch.column("x")
    wrong = pa.StructArray.from_arrays(
        [column.field("data"), pa.array(shapes, column.type.field("shape").type)], fields=list(column.type)
    )
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(pa.record_batch([wrong], schema=batch.schema))
    for dataset in (Dataset.from_arrow(path), Dataset.from_arrow(path).shuffle(), Dataset.from_arrow(path).batch(1)):
        with pytest.raises(fb.FileError, match="another number of values than its shape says"):
            list(dataset)
