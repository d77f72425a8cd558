"""Files that are no text, or not the kind of text that they are taken for, are told as what they are."""

import gzip
import json
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, FileError


def archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.csv", "x\n1\n")


def parquet(path: Path) -> None:
    Dataset.from_tensor_slices({"x": [1, 2]}).to_parquet(path)


def arrow(path: Path) -> None:
    Dataset.from_tensor_slices({"x": [1, 2]}).to_arrow(path)


def index(path: Path) -> Path:
    with fb.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"record")
    assert len(fb.TFRecordDataset(str(path), index=True)) == 1
    return path.with_name(f"{path.name}.fbindex")


WRITERS: dict[str, Callable[[Path], Any]] = {
    "read it with Dataset.from_parquet": parquet,
    "read it with Dataset.from_arrow": arrow,
    "read it with Dataset.from_npy": lambda path: path.write_bytes(b"\x93NUMPY\1\0" + bytes(40)),
    "read it with SqlDataset": lambda path: path.write_bytes(b"SQLite format 3\0..."),
    "read it with compression_type='GZIP'": lambda path: path.write_bytes(gzip.compress(b"x\n1\n")),
    "is a zip archive: unpack it": archive,
    "is compressed with zstd: Forebay reads gzip": lambda path: path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(40)),
    "is the index of another file": lambda path: index(path.parent / "other.tfrecord").rename(path),
    "is compressed with bzip2": lambda path: path.write_bytes(b"BZh91AY&SY" + bytes(40)),
}
READERS: dict[str, Callable[..., Dataset[Any]]] = {
    "csv": Dataset.from_csv,
    "records": lambda path, **more: fb.CsvDataset(path, [np.int32], **more),
    "json": lambda path, **more: Dataset.from_json(path, {"x": np.int64}, **more),
    "objects": Dataset.from_json,
    "lines": fb.TextLineDataset,
    "indexed": lambda path, **more: fb.TextLineDataset(path, index=True, **more),
    "tfrecord": fb.TFRecordDataset,
    "indexed tfrecord": lambda path, **more: fb.TFRecordDataset(path, index=True, **more),
    "archives": Dataset.from_webdataset,
    "indexed archives": lambda path, **more: Dataset.from_webdataset(path, index=True, **more),
}


@pytest.mark.parametrize("what", WRITERS)
@pytest.mark.parametrize("reader", READERS)
def test_files_that_are_no_text_say_who_reads_them(reader: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    WRITERS[what](path)
    with pytest.raises(FileError, match=re.escape(what)) as caught:
        list(READERS[reader](str(path)))
    assert caught.value.path == str(path)


@pytest.mark.parametrize("reader", ["records", "json", "lines"])
def test_they_can_be_left_out_as_a_whole(reader: str, tmp_path: Path) -> None:
    good, bad = tmp_path / "a", tmp_path / "b"
    good.write_text({"json": '{"x": 1}\n'}.get(reader, "1\n"))
    parquet(bad)
    assert len(list(READERS[reader]([str(bad), str(good)], on_error="skip", max_errors=1))) == 1


INDEXED: dict[str, Callable[[Path], Any]] = {
    "indexed tfrecord": lambda path: Dataset.from_tensor_slices([b"a", b"b"]).write_tfrecord(path),
    "indexed archives": lambda path: Dataset.from_tensor_slices({"txt": ["a", "b"]}).to_webdataset(path),
}


@pytest.mark.parametrize("reader", INDEXED)
def test_an_index_is_not_counted_and_gets_no_index(reader: str, tmp_path: Path) -> None:
    read, path = READERS[reader], tmp_path / "a"
    INDEXED[reader](path)
    assert len(read(str(path))) == 2
    there = sorted(str(each) for each in tmp_path.iterdir())
    assert there == [str(path), f"{path}.fbindex"]
    # One that is there all the same is of no use either.
    for stray in (False, True):
        if stray:
            Path(f"{path}.fbindex.fbindex").write_bytes(Path(f"{path}.fbindex").read_bytes())
        with pytest.raises(FileError, match=r"a\.fbindex: is the index of another file.*: leave it out"):
            len(read(there))
    os.unlink(f"{path}.fbindex.fbindex")
    assert len(read(there, on_error="skip")) == 2
    assert sorted(str(each) for each in tmp_path.iterdir()) == there


@pytest.mark.parametrize("text", [b"PAR1,BZh9\n", b"PK\n", b"ARROW1 is a mark\n", b"\n", b"", b"a"])
def test_text_may_begin_like_a_mark(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    assert list(fb.TextLineDataset(str(path))) == text.splitlines()


def test_records_of_one_length_may_be_anything(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(gzip.compress(b"x")[:8]))
    assert len(list(fb.FixedLengthRecordDataset(str(path), 4, compression_type="GZIP"))) == 2


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("spec", [None, {"x": np.int64}])
def test_an_array_is_no_lines(indent: int | None, spec: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("\n " + json.dumps([{"x": i} for i in range(100_000)], indent=indent))
    with pytest.raises(FileError, match="the file is one JSON array, and not an object on every line"):
        list(Dataset.from_json(path, spec).with_options(fb.Options(memory=100_000)))


def test_an_object_on_several_lines_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"x": 1}, indent=2))
    with pytest.raises(FileError, match="an object has to stand on one line"):
        Dataset.from_json(path)


@pytest.mark.parametrize(
    ("first", "later", "default"),
    [
        ("1", "2147483648", "np.int64(0)"),
        ("1", "0.5", "np.float64(0)"),
        ("1", "9223372036854775808", "np.float64(0)"),
        ("0.5", "none", '""'),
    ],
)
def test_types_that_later_records_do_not_have(tmp_path: Path, first: str, later: str, default: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"n\n{first}\n{later}\n")
    with pytest.raises(
        FileError, match=r"is not a valid \w+: b'.*'; the type is that of the first records: "
    ) as caught:
        list(Dataset.from_csv(path, num_rows_for_inference=1))
    assert f"set column_defaults={{'n': {default}}}, or look at more of them" in caught.value.reason
    declared = eval(default, {"np": np})
    assert len(list(Dataset.from_csv(path, column_defaults={"n": declared}))) == 2
    assert len(list(Dataset.from_csv(path, num_rows_for_inference=2))) == 2


def test_types_that_were_declared(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n\n2147483648\n")
    with pytest.raises(FileError, match=r"b'2147483648'; np\.int64\(0\) in column_defaults holds it$"):
        list(Dataset.from_csv(path, column_defaults=[np.int32]))
    with pytest.raises(FileError, match=r"b'2147483648'; np\.int64\(0\) in record_defaults holds it$"):
        list(fb.CsvDataset(path, [np.int32], header=True))
    path.write_text("n\nx\n")
    with pytest.raises(FileError, match=r"is not a valid int32: b'x'$"):
        list(Dataset.from_csv(path, column_defaults=[np.int32]))
