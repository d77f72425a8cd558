"""WebDataset archives: against webdataset and tarfile, with broken archives, and written."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from webdataset import tariterators

import forebay as fb

Dataset = fb.Dataset


def _write(path: Path, members: list[tuple[str, bytes]], mode: str = "w", format: int = tarfile.PAX_FORMAT) -> str:
    with tarfile.open(path, mode, format=format) as archive:  # type: ignore[call-overload]
        folder = tarfile.TarInfo("folder.d")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return str(path)


def _members(count: int = 6) -> list[tuple[str, bytes]]:
    rng = np.random.default_rng(1)
    return [
        (f"set/{i:03d}.{ending}", rng.bytes(int(rng.integers(0, 2000))))
        for i in range(count)
        for ending in ("JPG", "seg.png", "cls")
    ]


def _theirs(path: str) -> list[dict[str, Any]]:
    # With a file of our own: theirs stays open until it is collected.
    with open(path, "rb") as file:
        members = ({**member, "__url__": path} for member in tariterators.tar_file_iterator(file))
        samples = list(tariterators.group_by_keys(members))
    return [
        {key: value for key, value in sample.items() if key == "__key__" or not key.startswith("__")}
        for sample in samples
    ]


@pytest.mark.parametrize(
    ("name", "mode", "format"),
    [
        ("a.tar", "w", tarfile.USTAR_FORMAT),
        ("a.tar", "w", tarfile.PAX_FORMAT),
        ("a.tar", "w", tarfile.GNU_FORMAT),
        ("a.tar.gz", "w:gz", tarfile.PAX_FORMAT),
    ],
    ids=["ustar", "pax", "gnu", "gzip"],
)
def test_samples_are_those_of_webdataset(tmp_path: Path, name: str, mode: str, format: int) -> None:
    long = "d" * 90 if format == tarfile.USTAR_FORMAT else "d" * 150 + "ü"
    members = [*_members(), *((f"{long}/x.{ending}", b"long") for ending in ("jpg", "seg.png", "cls"))]
    members += [("no ending", b""), ("__meta__/a.txt", b"")]
    path = _write(tmp_path / name, members, mode, format)
    ours = list(Dataset.from_webdataset(path))
    assert ours == _theirs(path)
    assert len(ours) == 7
    if mode == "w":
        by_number = Dataset.from_webdataset(path, index=True)
        assert list(by_number) == ours
        assert os.path.exists(path + ".fbindex")
        again = Dataset.from_webdataset(path, index=True).shuffle(seed=1)
        assert sorted(each["__key__"] for each in again) == sorted(each["__key__"] for each in ours)


def test_fields_that_are_named_may_be_missing(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.tar", [("0.a", b"1"), ("0.b", b"2"), ("1.a", b"3"), ("2.b", b"4"), ("2.c", b"5")])
    assert list(Dataset.from_webdataset(path, ["B", "a"])) == [
        {"__key__": "0", "b": b"2", "a": b"1"},
        {"__key__": "1", "b": None, "a": b"3"},
        {"__key__": "2", "b": b"4", "a": None},
    ]
    decoded = Dataset.from_webdataset(path, ["a"], decode={"a": lambda data: int(data) * 10})
    assert [row["a"] for row in decoded] == [10, 30, None]
    for index in (False, True):
        rows = iter(Dataset.from_webdataset(path, index=index))
        assert next(rows)["__key__"] == "0"
        with pytest.raises(fb.FileError, match=r"sample '1' has the fields \['a'\], the first one \['a', 'b'\]"):
            next(rows)


def _offset(path: str, name: str) -> int:
    with tarfile.open(path) as archive:
        return archive.getmember(name).offset


def _damage(kind: str, path: str) -> tuple[str, list[int]]:
    """Make it broken; what is said about it, and the samples that are left."""
    data = bytearray(Path(path).read_bytes())
    at = _offset(path, "set/002.seg.png")
    if kind == "header":
        data[at + 3] ^= 1
        reason, left = "does not match its checksum", [0, 1, 3, 4, 5]
    elif kind == "size":
        info = tarfile.TarInfo("set/002.seg.png")
        info.size = 2**62
        data[at : at + 512] = info.tobuf(tarfile.GNU_FORMAT)
        reason, left = "a member of 4,611,686,018,427,387,904 bytes", [0, 1, 3, 4, 5]
    elif kind == "twice":
        info = tarfile.TarInfo("set/002.jpg")
        with tarfile.open(path) as archive:
            info.size = archive.getmember("set/002.seg.png").size
        data[at : at + 512] = info.tobuf(tarfile.GNU_FORMAT)
        reason, left = "two members for the field 'jpg'", [0, 1, 3, 4, 5]
    else:
        data = data[: at + 300]
        reason, left = "ends in the middle of a header", [0, 1]
    Path(path).write_bytes(data)
    return reason, left


@pytest.mark.parametrize("kind", ["header", "size", "twice", "cut"])
@pytest.mark.parametrize("index", [False, True])
def test_damaged_samples_are_named_and_can_be_left_out(
    tmp_path: Path, kind: str, index: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = _write(tmp_path / "a.tar", [(name, data + b"x") for name, data in _members()], format=tarfile.GNU_FORMAT)
    reason, left = _damage(kind, path)
    rows = iter(Dataset.from_webdataset(path, index=index))
    assert [next(rows)["__key__"] for _ in range(2)] == ["set/000", "set/001"]
    with pytest.raises(fb.FileError, match=reason) as caught:
        next(rows)
    assert caught.value.path == path
    found = [row["__key__"] for row in Dataset.from_webdataset(path, index=index, on_error="skip")]
    assert found == [f"set/{i:03d}" for i in left]
    assert reason in caplog.text


@pytest.mark.parametrize("content", [b"garbage" * 200, b"\xff" * 5000], ids=["garbage", "bytes"])
def test_what_is_no_archive_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(fb.FileError, match=r"byte 0: this is no header of a tar archive"):
        list(Dataset.from_webdataset(tmp_path / "a.tar"))
    assert list(Dataset.from_webdataset(tmp_path / "a.tar", on_error="skip")) == []


def test_empty_archives_have_no_samples(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"")
    (tmp_path / "b.tar").write_bytes(bytes(1024))
    for index in (False, True):
        assert list(Dataset.from_webdataset([tmp_path / "a.tar", tmp_path / "b.tar"], index=index)) == []
    with pytest.raises(fb.FileError, match="no such file"):
        list(Dataset.from_webdataset(tmp_path / "none.tar"))


def test_what_is_written_is_read_by_others(tmp_path: Path) -> None:
    source = Dataset.range(7).map(
        lambda x: {"txt": f"grüße {x}", "cls": x, "x.npy": np.arange(x), "bin": b"\0" * int(x), "none": None}
    )
    source.to_webdataset(tmp_path / "a-{}.tar", rows_per_file=3)
    files = sorted(map(str, tmp_path.iterdir()))
    assert [os.path.basename(name) for name in files] == ["a-0.tar", "a-1.tar", "a-2.tar"]
    theirs = [sample for file in files for sample in _theirs(file)]
    assert [sample["txt"].decode() for sample in theirs] == [f"grüße {x}" for x in range(7)]
    assert [int(sample["cls"]) for sample in theirs] == list(range(7))
    assert np.array_equal(np.load(io.BytesIO(theirs[5]["x.npy"])), np.arange(5))
    assert "none" not in theirs[0]
    assert list(Dataset.from_webdataset(files)) == theirs


def test_what_cannot_be_a_member_is_said(tmp_path: Path) -> None:
    for elements, text in (
        (Dataset.range(3), r"elements must be dicts"),
        (Dataset.from_tensor_slices({"x": np.zeros((2, 2))}), "x is ndarray; give bytes"),
        (Dataset.from_tensor_slices({"__key__": ["a.b"], "x": [1]}), "has the key 'a.b'"),
    ):
        with pytest.raises(fb.DataError, match=text):
            elements.to_webdataset(tmp_path / "a.tar")
    assert os.listdir(tmp_path) == []


SPARSE = ["--format=gnu", *(f"--format=pax --sparse-version={version}" for version in ("0.0", "0.1", "1.0"))]


@pytest.mark.skipif(shutil.which("tar") is None, reason="needs tar")
@pytest.mark.parametrize("how", SPARSE)
@pytest.mark.parametrize("index", [False, True])
def test_sparse_members_are_refused(tmp_path: Path, how: str, index: bool) -> None:
    # Many holes, so that the map of them takes more blocks than one.
    for name, holes in (("a", 40), ("b", 0), ("c", 1)):
        with open(tmp_path / f"{name}.bin", "wb") as file:
            for _hole in range(holes):
                file.write(b"head")
                file.seek(1 << 17, os.SEEK_CUR)
            file.write(name.encode())
        (tmp_path / f"{name}.cls").write_bytes(name.encode())
    path = tmp_path / "a.tar"
    members = [f"{name}.{ending}" for name in "abc" for ending in ("bin", "cls")]
    subprocess.run(["tar", "-S", *how.split(), "-cf", path, "-C", tmp_path, *members], check=True)
    if path.stat().st_size > 1 << 20:
        pytest.skip("this file system has no holes")
    with pytest.raises(fb.FileError, match="byte 0: sample 'a': its field 'bin' is stored as a sparse file"):
        list(fb.Dataset.from_webdataset(path, index=index))
    kept = list(fb.Dataset.from_webdataset(path, on_error="skip", index=index))
    assert kept == [{"__key__": "b", "bin": b"b", "cls": b"b"}]
    # A field that nobody wants does no harm.
    labels = list(fb.Dataset.from_webdataset(path, fields=["cls"], index=index))
    assert labels == [{"__key__": name, "cls": name.encode()} for name in "abc"]


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize(
    "bad", [[("a.x", b""), ("a.x", b"")], [("a.__key__", b"z"), ("a.x", b"")]], ids=["twice", "key"]
)
def test_nothing_behind_a_faulty_sample_is_lost(tmp_path: Path, bad: list[tuple[str, bytes]], index: bool) -> None:
    good = [(f"{key}.{field}", f"{key}{field}".encode()) for key in "bc" for field in "xy"]
    want = [{"__key__": key, "x": f"{key}x".encode(), "y": f"{key}y".encode()} for key in "bc"]
    path = _write(tmp_path / "a.tar", [*bad, *good])
    assert list(fb.Dataset.from_webdataset(path, on_error="skip", index=index)) == want
    fields = fb.Dataset.from_webdataset(path, fields=["__key__", "x", "y"], on_error="skip", index=index)
    assert [each for each in fields if each["__key__"] != "a"] == want


def test_an_index_is_for_the_fields_that_it_was_made_for(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.tar", [("a.x", b"1"), ("b.y", b"2")])
    assert len(fb.Dataset.from_webdataset(path, on_error="skip", index=True)) == 1
    assert len(fb.Dataset.from_webdataset(path, fields=["x", "y"], on_error="skip", index=True)) == 2


def test_members_of_unknown_kinds_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, kind in (("a.x", b"0"), ("a.other", b"Z"), ("a.y", b"0")):
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, 600
            archive.addfile(info, io.BytesIO(name.encode() * 200))
    (sample,) = fb.Dataset.from_webdataset(path)
    assert sample == {"__key__": "a", "x": (b"a.x" * 200), "y": (b"a.y" * 200)}


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ([{"a/b": b""}], "readers would not take for 'a/b'"),
        ([{"__key__": "a\0b", "x": b""}], "readers would not take"),
        ([{"__key__": "a", "x": b""}, {"__key__": "a", "x": b""}], "as the one before"),
        ([{"__key__": "a", "x": None}], "nothing but None"),
        ([{"x": b"", "X": b""}], "differ in case alone"),
        ([{"\ud800": b""}], "readers would not take"),
    ],
)
def test_what_would_be_lost_is_not_written(tmp_path: Path, samples: list[Any], reason: str) -> None:
    dataset = fb.Dataset.from_generator(lambda: iter(samples))
    with pytest.raises(fb.DataError, match=reason):
        dataset.to_webdataset(tmp_path / "a.tar")
    assert not os.listdir(tmp_path)
