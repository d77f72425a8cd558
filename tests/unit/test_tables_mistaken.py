"""Files that are no tables, or not of the format that they are taken for; and tables of old."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import forebay as fb
from forebay import Dataset


@pytest.mark.parametrize("read", [Dataset.from_arrow, Dataset.from_parquet])
def test_files_of_other_formats_are_told_as_what_they_are(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "a"
    other = "parquet" if read is Dataset.from_arrow else "arrow"
    getattr(Dataset.range(300), f"to_{other}")(path)
    with pytest.raises(fb.FileError, match=f"(?i){re.escape(str(path))}: is an? {other} file: .*from_{other}"):
        list(read(path))
    path.write_bytes(gzip.compress(b"x" * 100))
    with pytest.raises(fb.FileError, match=r"is compressed with gzip: unpack it"):
        list(read(path))
    path.write_bytes(b"x,y\n1,2\n" * 100)
    with pytest.raises(fb.FileError, match=r"is no (Arrow|Parquet) file"):
        list(read(path))


@pytest.mark.parametrize("name", ["a.arrow", "a.arrows"])
def test_streams_of_old_are_read(tmp_path: Path, name: str) -> None:
    options = pa.ipc.IpcWriteOptions(use_legacy_format=True)
    table = pa.table({"x": [1, 2, 3]})
    with pa.ipc.new_stream(str(tmp_path / name), table.schema, options=options) as writer:
        writer.write_table(table)
    assert (tmp_path / name).read_bytes()[:4] != b"\xff" * 4
    assert [int(row["x"]) for row in Dataset.from_arrow(tmp_path / name)] == [1, 2, 3]


@pytest.mark.parametrize(("name", "value", "message"), [
    ("y", 1, "has no column 'y', which filters names; there are 'x', 's', 'row'"),
    ("row_", 1, "has no column 'row_', which filters names; there are 'x', 's', 'row'"),
    ("x", "a", r"the filter \(x > \"a\"\) cannot be applied"),
])  # fmt: skip
def test_filters_that_do_not_fit_the_columns(name: str, value: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1, 2], "s": ["a", "b"], "row": [0, 1]}), path)
    for filters in ([(name, ">", value)], pc.field(name) > value):
        with pytest.raises(fb.FileError, match=rf"a\.parquet: {message}"):
            list(fb.Dataset.from_parquet(path, filters=filters))
