"""Text, tables and arrays in files."""

from __future__ import annotations

import atexit
import gzip
import io
import json
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import Dataset, i64
from conformance.cases.laws import reordered

_folder = tempfile.TemporaryDirectory(prefix="forebay-conformance-")
atexit.register(_folder.cleanup)

LINES = [b"line %d " % i * (i % 4) for i in range(40)]
OBJECTS = [{"x": i, "y": {"tags": [f"t{i}"] * (i % 3)}, "z": i / 2} for i in range(30)]


@cache
def _file(name: str) -> str:
    """One of the files below, written once per process."""
    path = Path(_folder.name) / name
    data = _FILES[name]()
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        np.save(path, data)
    return str(path)


def _csv() -> bytes:
    return b"id,name,size\n" + b"".join(b'%d,"a ""%d"",\n",%.2f\n' % (i, i, i / 4) for i in range(30))


def _compressed() -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, x=np.arange(20) * 7)
    return out.getvalue()


_FILES: dict[str, Any] = {
    "0.txt": lambda: b"\r\n".join(LINES[:25]) + b"\r\n",
    "1.txt": lambda: b"",
    "2.txt": lambda: b"\n".join(LINES[25:]) + b"\n",
    "0.gz": lambda: gzip.compress(b"\n".join(LINES)),
    "a.csv": _csv,
    "broken.csv": lambda: _csv().replace(b"\n7,", b"\nseven,").replace(b"\n20,", b"\n20,20,"),
    "a.jsonl": lambda: b"\n".join(json.dumps(row).encode() for row in OBJECTS),
    "broken.jsonl": lambda: b"\n".join(json.dumps(row).encode() if row["x"] % 7 else b"{" for row in OBJECTS),
    "a.npy": lambda: np.arange(60, dtype=np.float32).reshape(20, 3),
    "b.npy": lambda: np.arange(20) * 7,
    "c.npz": _compressed,
}


@cache
def _database() -> str:
    path = str(Path(_folder.name) / "a.db")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, name TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, f"n{i}") for i in range(40)])
    connection.close()
    return path


def _texts() -> list[str]:
    return [_file(f"{i}.txt") for i in range(3)]


def _records(skip: tuple[int, ...] = ()) -> list[Any]:
    return [(np.int32(i), b'a "%d",\n' % i, np.float64(i / 4)) for i in range(30) if i not in skip]


def _csv_rows(name: str, **how: Any) -> Any:
    return fb.CsvDataset(_file(name), [np.int32, bytes, np.float64], header=True, **how)


def _object(row: dict[str, Any]) -> Any:
    tags = np.empty(len(row["y"]["tags"]), object)
    tags[:] = row["y"]["tags"]
    return {"x": np.int64(row["x"]), "y": {"tags": tags}, "z": np.float64(row["z"])}


def _query() -> Any:
    return fb.SqlDataset("sqlite", _database(), "SELECT id, name FROM t ORDER BY id", (np.int16, bytes))


CASES = [
    Case("text_lines.files", lambda: fb.TextLineDataset(_texts()), LINES, unknown_length=True),
    Case("text_lines.gzip", lambda: fb.TextLineDataset(_file("0.gz"), "GZIP"), LINES, unknown_length=True),
    Case(
        "text_lines.parallel",
        lambda: fb.TextLineDataset(_texts()[::2], num_parallel_reads=2),
        lambda: [line for pair in zip(LINES[:15], LINES[25:]) for line in pair] + LINES[15:25],
        unknown_length=True,
    ),
    Case("text_lines.index", lambda: fb.TextLineDataset(_texts(), index=True).skip(3), LINES[3:]),
    Case(
        "text_lines.shuffled",
        lambda: fb.TextLineDataset(_texts(), index=True).map(len).shuffle(seed=2),
        law=reordered([len(line) for line in LINES]),
        reshuffles=True,
    ),
    Case(
        "fixed_records.by_number",
        lambda: fb.FixedLengthRecordDataset(_file("b.npy"), 16, header_bytes=128),
        lambda: [i64([14 * i, 14 * i + 7]).tobytes() for i in range(10)],
    ),
    Case(
        "fixed_records.gzip",
        lambda: fb.FixedLengthRecordDataset(_file("0.gz"), 1, 4, 3, compression_type="GZIP").take(30),
        lambda: [bytes([c]) for c in b"\n".join(LINES)[4:34]],
        unknown_length=True,
    ),
    Case("csv.records", lambda: _csv_rows("a.csv"), _records, unknown_length=True),
    Case("csv.skip", lambda: _csv_rows("broken.csv", on_error="skip"), lambda: _records((7, 20)), unknown_length=True),
    Case(
        "csv.broken",
        lambda: _csv_rows("broken.csv"),
        lambda: _records(tuple(range(7, 30))),
        raises=fb.FileError,
        unknown_length=True,
    ),
    Case(
        "csv.from_csv",
        lambda: Dataset.from_csv(_file("a.csv"), label_name="id", column_defaults={"size": np.float64}),
        lambda: [({"name": name, "size": size}, number) for number, name, size in _records()],
        unknown_length=True,
    ),
    Case(
        "json.objects",
        lambda: Dataset.from_json(_file("a.jsonl")),
        lambda: [_object(row) for row in OBJECTS],
        unknown_length=True,
    ),
    Case(
        "json.skip",
        lambda: Dataset.from_json(_file("broken.jsonl"), on_error="skip"),
        lambda: [_object(row) for row in OBJECTS if row["x"] % 7],
        unknown_length=True,
    ),
    Case(
        "npy.compressed",
        lambda: Dataset.from_npy(_file("c.npz")),
        lambda: [{"x": number} for number in _FILES["b.npy"]()],
    ),
    Case(
        "npy.arrays",
        lambda: Dataset.from_npy({"a": _file("a.npy"), "b": _file("b.npy")}),
        lambda: [{"a": row, "b": number} for row, number in zip(_FILES["a.npy"](), _FILES["b.npy"]())],
    ),
    Case("sql.query", _query, lambda: [(np.int16(i), b"n%d" % i) for i in range(40)], unknown_length=True),
]
