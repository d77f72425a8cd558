"""Tables, archives, other libraries' datasets and token streams."""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import forebay as fb
from conformance.case import Case
from conformance.cases.common import Dataset, range_
from conformance.cases.laws import reordered

_folder = tempfile.TemporaryDirectory(prefix="forebay-tables-")
atexit.register(_folder.cleanup)

ROWS = 60


def _table() -> pa.Table:
    return pa.table(
        {
            "x": pa.array(range(ROWS)),
            "tokens": pa.array([list(range(i % 4)) for i in range(ROWS)], pa.list_(pa.int32())),
            "name": pa.array([f"row {i}" if i % 5 else None for i in range(ROWS)]),
            "box": pa.array([{"side": float(i), "tag": b"t" * (i % 3)} for i in range(ROWS)]),
        }
    )


def _row(i: int) -> dict[str, Any]:
    return {
        "x": np.int64(i),
        "tokens": np.arange(i % 4, dtype=np.int32),
        "name": f"row {i}" if i % 5 else None,
        "box": {"side": np.float64(i), "tag": b"t" * (i % 3)},
    }


@cache
def _files(kind: str) -> list[str]:
    """Two files of several groups each, written once per process."""
    names = []
    for part, (start, rows) in enumerate(((0, 40), (40, 20))):
        name = str(Path(_folder.name) / f"{part}.{kind}")
        table = _table().slice(start, rows)
        if kind == "parquet":
            pq.write_table(table, name, row_group_size=7)
        elif kind == "tar":
            range_(start, start + rows).map(_sample).to_webdataset(name)
        else:
            with pa.OSFile(name, "wb") as file, _writer(kind, file, table.schema) as writer:
                writer.write_table(table, max_chunksize=7)
        names.append(name)
    return names


def _writer(kind: str, file: Any, schema: Any) -> Any:
    return pa.ipc.new_file(file, schema) if kind == "arrow" else pa.ipc.new_stream(file, schema)


def _sample(x: Any) -> dict[str, Any]:
    return {"__key__": f"{x:05d}", "txt": f"sample {x}", "bin": b"b" * (int(x) % 7)}


def _stored_sample(x: int) -> dict[str, Any]:
    return {"__key__": f"{x:05d}", "txt": f"sample {x}".encode(), "bin": b"b" * (x % 7)}


class _Many:
    def __len__(self) -> int:
        return 30

    def __getitem__(self, i: int) -> Any:
        return np.full(i % 3 + 1, i)

    def __getitems__(self, numbers: list[int]) -> list[Any]:
        return [self[i] for i in numbers]


@cache
def _tokens() -> str:
    path = str(Path(_folder.name) / "tokens.bin")
    np.arange(200, dtype=np.uint16).tofile(path)
    return path


def _documents() -> fb.Dataset[Any]:
    return range_(50).map(lambda x: np.arange(x, x + (x * 7) % 11))


def _chunks() -> list[Any]:
    flat = np.concatenate([[*range(x, x + (x * 7) % 11), 99] for x in range(50)])
    return list(flat[: len(flat) // 8 * 8].reshape(-1, 8))


def _fitted(elements: list[Any]) -> None:
    """Every document is there, whole, once."""
    found = []
    for element in elements:
        assert element["tokens"].shape == (12,)
        for segment in range(1, element["segment_ids"].max() + 1):
            mine = element["segment_ids"] == segment
            assert list(element["positions"][mine]) == list(range(mine.sum()))
            found.append(tuple(element["tokens"][mine].tolist()))
        assert (element["tokens"][element["segment_ids"] == 0] == -1).all()
    assert sorted(found) == sorted(tuple(range(x, x + (x * 7) % 11)) for x in range(50) if (x * 7) % 11)


CASES = [
    Case("from_parquet.files", lambda: Dataset.from_parquet(_files("parquet")), lambda: [_row(i) for i in range(ROWS)]),
    Case(
        "from_parquet.in_order",
        lambda: Dataset.from_parquet(_files("parquet"), ["x"], index=False),
        lambda: [{"x": np.int64(i)} for i in range(ROWS)],
        unknown_length=True,
    ),
    Case(
        "from_parquet.filtered",
        lambda: Dataset.from_parquet(_files("parquet"), ["name"], [("x", ">", 10), ("x", "<", 55)]),
        lambda: [{"name": _row(i)["name"]} for i in range(11, 55)],
        unknown_length=True,
    ),
    Case(
        "from_parquet.filled",
        lambda: Dataset.from_parquet(_files("parquet"), ["name"], fill_nulls={"name": "none"}).batch(8),
        lambda: [
            {"name": np.array([_row(i)["name"] or "none" for i in range(start, min(start + 8, ROWS))], object)}
            for start in range(0, ROWS, 8)
        ],
    ),
    Case(
        "from_parquet.shuffle",
        lambda: Dataset.from_parquet(_files("parquet"), ["x"]).map(lambda row: row["x"]).shuffle(seed=3),
        law=reordered(range(ROWS)),
        reshuffles=True,
    ),
    Case("from_arrow.files", lambda: Dataset.from_arrow(_files("arrow")), lambda: [_row(i) for i in range(ROWS)]),
    Case(
        "from_arrow.streams",
        lambda: Dataset.from_arrow(_files("arrows")),
        lambda: [_row(i) for i in range(ROWS)],
        unknown_length=True,
    ),
    Case("from_arrow.table", lambda: Dataset.from_arrow(_table()), lambda: [_row(i) for i in range(ROWS)]),
    Case(
        "from_arrow.reader",
        lambda: Dataset.from_arrow(lambda: _table().to_reader(9), ["x"]),
        lambda: [{"x": np.int64(i)} for i in range(ROWS)],
        unknown_length=True,
    ),
    Case(
        "from_webdataset.files",
        lambda: Dataset.from_webdataset(_files("tar")),
        lambda: [_stored_sample(i) for i in range(ROWS)],
        unknown_length=True,
    ),
    Case(
        "from_webdataset.index",
        lambda: Dataset.from_webdataset(_files("tar"), ["bin"], index=True).skip(3),
        lambda: [{"__key__": f"{i:05d}", "bin": b"b" * (i % 7)} for i in range(3, ROWS)],
    ),
    Case("from_indexable.many", lambda: Dataset.from_indexable(_Many()), lambda: [_Many()[i] for i in range(30)]),
    Case(
        "from_tokens.windows",
        lambda: Dataset.from_tokens([_tokens()] * 2, np.uint16, 9, stride=8),
        lambda: [np.arange(i, i + 9, dtype=np.uint16) for _ in range(2) for i in range(0, 192, 8)],
    ),
    Case("pack.chunks", lambda: _documents().apply(fb.text.pack(8, end=99)), _chunks, unknown_length=True),
    Case(
        "pack.fit",
        lambda: _documents().apply(fb.text.pack(12, fit=True, pad=-1, window=17)),
        law=_fitted,
        unknown_length=True,
    ),
]
