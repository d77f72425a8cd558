"""Footers of Parquet files with a byte changed: rows or an error of ours, and never the end of the process."""

from __future__ import annotations

import datetime
import decimal
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay as fb
from forebay import Dataset
from forebay._native import parquet_fault

ROWS = [
    {
        "i": i,
        "text": f"row {i}",
        "list": [i] * (i % 3),
        "struct": {"a": i, "b": None if i % 2 else str(i)},
        "decimal": decimal.Decimal(i) + decimal.Decimal("0.5"),
        "time": datetime.datetime(2020, 1, 1 + i),
        "flag": i % 2 == 0,
    }
    for i in range(20)
]


def good() -> bytes:
    out = io.BytesIO()
    # Without a second schema, of Arrow's own, in it.
    pq.write_table(pa.Table.from_pylist(ROWS), out, row_group_size=10, store_schema=False)
    return out.getvalue()


def split(data: bytes) -> tuple[bytes, bytes]:
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:start], data[start:-8]


def with_footer(pages: bytes, footer: bytes) -> bytes:
    return pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def fault(footer: bytes) -> str | None:
    return parquet_fault(np.frombuffer(footer, np.uint8))


def changed(footer: bytes) -> list[bytes]:
    """Each byte made another, and left out."""
    found = []
    for at in range(len(footer)):
        found += [footer[:at] + bytes([footer[at] ^ bits]) + footer[at + 1 :] for bits in (1, 2, 16)]
        found.append(footer[:at] + footer[at + 1 :])
    return found


FAULTS = [
    "it ends in the middle of a field",
    "it has a field of another type than the format says",
    "its schema is no tree",
    "a row group has a column of another type than the schema says",
    "a row group has another number of columns than the schema says",
    "a column has another number of levels than the schema says",
    "the least or the greatest value of a column is shorter than a value",
]


def test_what_a_footer_contradicts_itself_in() -> None:
    _, footer = split(good())
    assert fault(footer) is None
    faults = {fault(each) for each in changed(footer)}
    assert None in faults
    assert faults.issuperset(FAULTS)
    for cut in range(len(footer)):
        assert fault(footer[:cut]) is not None


@pytest.mark.parametrize("wrong", FAULTS)
def test_a_footer_that_contradicts_itself_is_an_error_of_the_file(wrong: str, tmp_path: Path) -> None:
    pages, footer = split(good())
    path = tmp_path / "a.parquet"
    path.write_bytes(with_footer(pages, next(each for each in changed(footer) if fault(each) == wrong)))
    for dataset in (
        lambda: Dataset.from_parquet(path),
        lambda: Dataset.from_parquet(path, index=False),
        lambda: Dataset.from_parquet(path, filters=[("i", ">", 3)]),
    ):
        with pytest.raises(fb.FileError, match=f"its footer is damaged: {wrong}"):
            list(dataset())


@pytest.mark.parametrize("length", [0, 1, 100_000, (1 << 31) - 1, (1 << 32) - 1])
def test_a_length_that_cannot_be(length: int, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(good()[:-8] + length.to_bytes(4, "little") + b"PAR1")
    with pytest.raises(fb.FileError, match="is no Parquet file that can be read"):
        list(Dataset.from_parquet(path))


def test_a_footer_larger_than_the_first_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({f"column {i}": [i, i] for i in range(900)}), path, row_group_size=1)
    assert len(split(path.read_bytes())[1]) > 1 << 17
    assert [row["column 899"] for row in Dataset.from_parquet(path)] == [899, 899]


PROGRAM = """
import sys
from pathlib import Path
import forebay as fb
from forebay import Dataset
from forebay.formats import inspect
from unit.test_parquet_footer import changed, good, split, with_footer

path = Path(sys.argv[1])
pages, footer = split(good())
told = 0
for number, each in enumerate(changed(footer)[int(sys.argv[2])::37]):
    path.write_bytes(with_footer(pages, each))
    for read in (
        lambda: list(Dataset.from_parquet(path)),
        lambda: list(Dataset.from_parquet(path, filters=[("i", ">", 3)])),
        lambda: inspect(path),
    ):
        try:
            read()
        except fb.ForebayError:
            told += 1
print(told > 0)
"""


@pytest.mark.parametrize("first", [0, 19])
def test_no_byte_ends_the_process(first: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "a.parquet"), str(first)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-2000:]
