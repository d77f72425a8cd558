"""Files that are not compressed as they are said to be."""

import gzip
import io
import struct
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb

READERS: dict[str, Callable[[str, str], Any]] = {
    "text": lambda path, kind: fb.TextLineDataset(path, kind),
    "records": lambda path, kind: fb.TFRecordDataset(path, kind),
    "fixed": lambda path, kind: fb.FixedLengthRecordDataset(path, 4, compression_type=kind),
    "csv": lambda path, kind: fb.CsvDataset(path, [np.int64], kind),
    "from_csv": lambda path, kind: fb.Dataset.from_csv(path, compression_type=kind),
    "json": lambda path, kind: fb.Dataset.from_json(path, compression_type=kind),
    "webdataset": lambda path, kind: fb.Dataset.from_webdataset(path, compression_type=kind),
}


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", [b"1\n2\n" * 100_000, b"1\n"], ids=["long", "short"])
def test_it_is_said_that_a_file_is_not_compressed(tmp_path: Path, reader: str, kind: str, content: bytes) -> None:
    path = tmp_path / "plain.txt"
    path.write_bytes(content)
    with pytest.raises(fb.FileError) as caught:
        list(READERS[reader](str(path), kind))
    assert caught.value.offset == 0
    name = kind.lower()
    assert caught.value.reason == (
        f"is not compressed with {name} (it does not begin as such): leave compression_type out"
    )


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (zlib.compress(b"1\n"), "GZIP", "is compressed with zlib: read it with compression_type='ZLIB'"),
        (gzip.compress(b"1\n", mtime=0), "ZLIB", "is compressed with gzip: read it with compression_type='GZIP'"),
        (struct.pack("<I", 0xFD2FB528) + b"abc", "GZIP", "is compressed with zstd"),
        (gzip.compress(b"1\n", mtime=0)[:1], "GZIP", "ends in the middle of its compressed data"),
        (gzip.compress(b"1\n", mtime=0)[:10] + b"\xff" * 40, "GZIP", "its compressed data is damaged"),
        (b"1", "GZIP", "is not compressed with gzip"),
    ],
)
def test_what_it_is_instead_is_said(tmp_path: Path, data: bytes, kind: str, reason: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(data)
    with pytest.raises(fb.FileError) as caught:
        list(fb.TextLineDataset(str(path), kind))
    assert caught.value.reason.startswith(reason)


def test_what_follows_a_whole_member_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b"1\n") + b"more of it" * 10)
    it = iter(fb.TextLineDataset(str(path), "GZIP"))
    assert next(it) == b"1"
    with pytest.raises(fb.FileError, match="its compressed data is damaged"):
        next(it)


def test_an_archive_that_only_its_name_calls_compressed(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"), io.BytesIO(b""))
    with pytest.raises(fb.FileError, match=r"is not compressed with gzip .* and the ending out of its name"):
        list(fb.Dataset.from_webdataset(str(path)))
