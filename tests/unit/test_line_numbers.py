"""Errors in text files name the line."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.storage import line_numbers
from forebay.storage.line_numbers import LineNumbers


def written(folder: Path, text: str) -> str:
    path = folder / "a.txt"
    path.write_text(text)
    return str(path)


JSON = "".join(f'{{"x": {i}}}\n' for i in range(5000)) + "nothing\n" + '{"x": 1}\n' * 3
CSV = 'x,"y\ny"\n' + "1,2\n" * 4999 + "1\n" + "3,4\n"
READERS: dict[str, tuple[str, int, Callable[..., Any]]] = {
    "json": (JSON, 5001, lambda path, **how: fb.Dataset.from_json(path, **how)),
    "csv": (CSV, 5002, lambda path, **how: fb.CsvDataset(path, [np.int64, np.int64], header=True, **how)),
}


@pytest.mark.parametrize("format", READERS)
@pytest.mark.parametrize("by_url", [False, True])
def test_a_fault_names_its_line(tmp_path: Path, format: str, by_url: bool) -> None:
    text, line, read = READERS[format]
    path = ("file://" if by_url else "") + written(tmp_path, text)
    offset = len("".join(text.splitlines(keepends=True)[: line - 1]))
    with pytest.raises(fb.FileError) as caught:
        list(read(path))
    assert (caught.value.line, caught.value.offset) == (line, offset)
    assert f"{tmp_path / 'a.txt'}, line {line:,} (byte {offset:,}): " in str(caught.value)


@pytest.mark.parametrize("format", READERS)
def test_faults_that_are_passed_over_name_theirs(tmp_path: Path, format: str, caplog: pytest.LogCaptureFixture) -> None:
    text, line, read = READERS[format]
    lines = text.splitlines(keepends=True)
    path = written(tmp_path, text + lines[line - 1])
    assert len(list(read(path, on_error="skip"))) == len(lines) - 1 - (2 if format == "csv" else 0)
    told = [record.getMessage() for record in caplog.records]
    assert [f"line {number:,} (" in each for number, each in zip((line, len(lines) + 1), told, strict=True)] == [
        True
    ] * 2


def test_what_has_to_be_unfolded_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(JSON.encode()))
    with pytest.raises(fb.FileError, match=r"a.gz, byte [\d,]+: the line is not") as caught:
        list(fb.Dataset.from_json(str(path), compression_type="GZIP"))
    assert caught.value.line is None


def test_lines_are_counted_on_from_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_numbers, "_PIECE", 3)
    path, other = written(tmp_path, "a\nbb\n\nc\n"), str(tmp_path / "b.txt")
    Path(other).write_text("\n\n")
    lines = LineNumbers()
    assert [lines.at(path, offset) for offset in range(8)] == [1, 1, 2, 2, 2, 3, 4, 4]
    assert lines.at(path, 2) == 2
    assert lines.at(other, 2) == 3
    assert lines.at(other, 3) is None  # It has become shorter since.
    Path(path).unlink()
    assert lines.at(path, 5) is None


def test_nobody_waits_long_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_numbers, "_MOST", 4)
    path = written(tmp_path, "a\n" * 5)
    lines = LineNumbers()
    assert lines.at(path, 5) is None
    assert lines.at(path, 4) == 3
    assert lines.at(path, 8) == 5
    assert lines.at(f"s3://bucket{os.sep}a", 1) is None
