"""Memory-mapped arrays: the rows are those of the file, in every mode and through every view."""

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forebay import DataError, Dataset
from forebay._native import read_rows
from forebay.block.aligned import ALIGN, aligned_empty
from forebay.plan.mapping import mapped_at
from unit.support import SETTINGS, assert_same, python

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.arange(240, dtype=np.float32).reshape(20, 3, 4))
    return tmp_path / "rows.npy"


VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "whole": lambda a: a,
    "part": lambda a: a[5:17],
    "every other": lambda a: a[1::3],
    "backwards": lambda a: a[::-1],
    "one column": lambda a: a[:, 1, 2],
    "inner part": lambda a: a[:, 1:3],
    "inner stride": lambda a: a[:, :, ::2],
    "transposed": lambda a: a.T,
    "reshaped": lambda a: a.reshape(-1, 6),
    "as bytes": lambda a: a.view(np.uint8),
    "repeated": lambda a: np.broadcast_to(a[3], (20, 3, 4)),
    "plain array": lambda a: np.asarray(a)[2:],
    "structured": lambda a: a.reshape(-1).view([("x", "f4"), ("y", "f4")]),
    "no rows": lambda a: a[:0],
    "empty rows": lambda a: a[:, :0],
    "big-endian": lambda a: a.view(">f4"),
    "all backwards": lambda a: a[::-1, ::-2, ::-1],
    "turned": lambda a: a.transpose(1, 2, 0)[::-1, :, 3::2],
    "windows": lambda a: np.lib.stride_tricks.sliding_window_view(a.reshape(-1), 7),
    "repeated backwards": lambda a: np.broadcast_to(a[::-1, None], (20, 3, 3, 4))[::-2, 1:],
    "big-endian structured": lambda a: a.reshape(-1).view([("x", ">f4"), ("y", ">i2"), ("z", "<i2")])[::-1],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_rows_are_those_of_the_array(path: Path, view: str, mode: str) -> None:
    array = VIEWS[view](np.load(path, mmap_mode=mode))
    whole = np.array(array, array.dtype.newbyteorder("="), order="C")
    expected = [row.copy()[()] if isinstance(row, np.ndarray) else row for row in whole]
    for options in SETTINGS:
        dataset = Dataset.from_tensor_slices(array).with_options(options)
        assert_same(list(dataset), expected)
        if expected:
            numbers = list(Dataset.range(len(expected)).shuffle(seed=5).with_options(options))
            assert_same(list(dataset.shuffle(seed=5)), [expected[i] for i in numbers])


@pytest.mark.parametrize("view", VIEWS)
def test_rows_that_take_many_reads_are_the_same(path: Path, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.sources.strided._PIECE", 50)
    monkeypatch.setattr("forebay.sources.strided._GAP", 3)
    test_rows_are_those_of_the_array(path, view, "r")


@pytest.mark.parametrize("mode", ["r", "c"])
@pytest.mark.parametrize("dtype", ["S3", "<U3", ">U3"])
def test_text_is_converted_as_it_is_read(tmp_path: Path, dtype: str, mode: str) -> None:
    words = np.array([["a", "", "xyz"], ["bc", "d", "ef"], ["g", "hij", "k"]]).astype(dtype)
    np.save(tmp_path / "words.npy", words)
    array = np.load(tmp_path / "words.npy", mmap_mode=mode)
    for view in (array, array[::-1], array.T, array[:, 1], array[:0]):
        found = Dataset.from_tensor_slices(view)
        expected = Dataset.from_tensor_slices(np.array(view))
        assert found.element_spec == expected.element_spec
        assert_same(list(found), list(expected))
        assert_same(list(found.shuffle(seed=2).batch(2)), list(expected.shuffle(seed=2).batch(2)))


def test_text_that_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(np.array([97, 0x7FFFFFFF], np.uint32).tobytes())
    with pytest.raises(DataError, match="0x7fffffff, which is no character"):
        list(Dataset.from_tensor_slices(np.memmap(tmp_path / "raw", "<U1", "r")))


@pytest.mark.parametrize("name", [b"caf\xe9.npy", b"in two\rlines.npy"])
def test_files_may_have_any_name(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    np.save(path, np.arange(40).reshape(20, 2))
    rows = np.load(path, mmap_mode="r")
    piece = mapped_at(rows.ctypes.data)
    assert piece is not None
    assert piece.is_of(path.stat())
    assert_same(list(Dataset.from_tensor_slices(rows)), list(np.array(rows)))


def test_a_raw_file_with_an_offset(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"head" + np.arange(50, dtype=np.int16).tobytes())
    array = np.memmap(tmp_path / "raw", np.int16, "r", offset=4, shape=(10, 5))
    assert_same(list(Dataset.from_tensor_slices(array)), list(np.arange(50, dtype=np.int16).reshape(10, 5)))


@pytest.mark.parametrize(
    ("shape", "dtype"), [((5,), np.uint8), ((3, 4), np.float64), ((0, 7), np.int32), ((1 << 20,), "i2")]
)
def test_memory_for_reading_is_aligned(shape: tuple[int, ...], dtype: Any) -> None:
    array = aligned_empty(shape, dtype)
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert not array.size or array.ctypes.data % ALIGN == 0
    assert array.flags.writeable
    assert array.flags.c_contiguous


def test_writing_into_elements_does_not_reach_the_file(path: Path) -> None:
    for mode in ("r", "r+", "c"):
        before = path.read_bytes()
        array = np.load(path, mmap_mode=mode)
        for element in Dataset.from_tensor_slices(array):
            element[...] = -1
        assert array[3, 0, 0] == 36
        del array
        assert path.read_bytes() == before


def test_changes_in_memory_only_are_seen(path: Path) -> None:
    array = np.load(path, mmap_mode="c")
    array[7] = -5
    for _ in range(2):
        for options in SETTINGS:
            dataset = Dataset.from_tensor_slices(array).with_options(options)
            assert (list(dataset)[7] == -5).all()
            assert sum(float(x.max()) == -5 for x in dataset.shuffle(4, seed=1)) == 1
    assert (array[7] == -5).all()
    assert (np.load(path)[7] != -5).all()


def test_changes_of_a_shared_map_are_seen_at_once(path: Path) -> None:
    array = np.load(path, mmap_mode="r+")
    dataset = Dataset.from_tensor_slices(array)
    assert next(iter(dataset))[0, 0] == 0
    array[0] = 99
    assert next(iter(dataset))[0, 0] == 99


def test_a_file_that_was_removed_is_still_there_for_its_map(path: Path) -> None:
    array = np.load(path, mmap_mode="r")
    path.unlink()
    assert len(list(Dataset.from_tensor_slices(array))) == 20


def test_a_file_that_was_replaced_is_not_taken_for_the_old_one(path: Path) -> None:
    array = np.load(path, mmap_mode="r")
    np.save(path.with_name("new.npy"), np.zeros((20, 3, 4), np.float32))
    path.with_name("new.npy").rename(path)
    assert next(iter(Dataset.from_tensor_slices(array).skip(3)))[0, 0] == 36


def test_a_file_with_the_same_number_on_another_disk_is_not_taken_for_the_mapped_one(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.load(path, mmap_mode="r")
    expected = array.copy()
    np.save(tmp_path / "other.npy", expected + 1)
    (tmp_path / "other.npy").replace(path)
    # Numbers begin anew on every disk, and the first files of two of them have the same.
    real, number = os.fstat, mapped_at(array.ctypes.data)
    assert number is not None

    def elsewhere(file: int) -> os.stat_result:
        found = list(real(file))
        found[1], found[2] = number.inode, found[2] + 1
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", elsewhere)
    rows = list(Dataset.from_tensor_slices(array))
    assert np.array_equal(rows, expected)


def test_a_file_is_known_by_its_device_and_its_number(path: Path) -> None:
    array = np.load(path, mmap_mode="r")
    piece, found = mapped_at(array.ctypes.data), os.stat(path)
    assert piece is not None
    assert not piece._replace(device=piece.device + 1).is_of(found)
    assert not piece._replace(inode=piece.inode + 1).is_of(found)
    assert piece._replace(device=found.st_dev, inode=found.st_ino).is_of(found)


def test_a_file_cut_short_is_an_error_and_no_crash(path: Path) -> None:
    code = """
import sys
import numpy as np
import forebay as fb
path = sys.argv[1]
dataset = fb.Dataset.from_tensor_slices(np.load(path, mmap_mode="r"))
with iter(dataset) as it:
    next(it)
    with open(path, "r+b") as file:
        file.truncate(128 + 48 * 10)
    found = 1
    try:
        for _ in it:
            found += 1
    except fb.DataError as error:
        print(found, str(error).partition(path)[2])
"""
    assert python(code, 300, str(path)) == "10  has become shorter than it was when the dataset was made\n"


SHORTENED = {
    "backwards": "a[::-1]",
    "inner stride": "a.reshape(-1, 1000)[:, ::2]",
    "transposed": "a.reshape(1000, -1).T",
    "big-endian": "a.view('>f8')",
    "private": "np.load(path, mmap_mode='c')",
    "private and backwards": "np.load(path, mmap_mode='c')[::-1]",
    "removed": "a",
}


@pytest.mark.parametrize("view", SHORTENED)
def test_no_view_of_a_file_cut_short_ends_the_process(tmp_path: Path, view: str) -> None:
    code = """
import os, sys
import numpy as np
import forebay as fb
path, view, removed = sys.argv[1:]
np.save(path, np.arange(200_000.0))
a = np.load(path, mmap_mode="r")
dataset = fb.Dataset.from_tensor_slices(eval(view))
file = os.open(path, os.O_RDWR)
if removed == "removed":
    os.unlink(path)
os.ftruncate(file, 4096)
for each in (dataset, dataset.shuffle(seed=1)):
    try:
        list(each)
    except fb.DataError as error:
        print(str(error).partition(path)[2])
"""
    found = python(code, 300, str(tmp_path / "rows.npy"), SHORTENED[view], view)
    assert found == " has become shorter than it was when the dataset was made\n" * 2


def test_what_is_left_of_a_private_map_comes_out(path: Path) -> None:
    array = np.load(path, mmap_mode="c")
    it = iter(Dataset.from_tensor_slices(array).with_options(SETTINGS[0]))
    os.truncate(path, 128 + 48 * 10)
    found = []
    with pytest.raises(DataError, match="shorter"):
        found.extend(it)
    assert len(found) == 10


def test_a_shorter_file_keeps_raising(path: Path) -> None:
    array = np.load(path, mmap_mode="r")
    dataset = Dataset.from_tensor_slices(array)
    it = iter(dataset)
    next(it)
    os.truncate(path, 128 + 48 * 3)
    with pytest.raises(DataError, match="shorter"):
        list(it)
    with pytest.raises(DataError, match="shorter"):
        list(it)


def test_the_open_file_is_closed_with_the_dataset(path: Path) -> None:
    def open_files() -> int:
        return sum(os.path.realpath(f"/proc/self/fd/{fd}") == str(path) for fd in os.listdir("/proc/self/fd"))

    array = np.load(path, mmap_mode="r")
    before = open_files()
    dataset = Dataset.from_tensor_slices(array)
    assert len(list(dataset)) == len(list(dataset.shuffle())) == 20
    assert open_files() <= before + 1
    del dataset
    gc.collect()
    assert open_files() == before


# The kernel


@pytest.fixture
def file(tmp_path: Path) -> Any:
    (tmp_path / "bytes").write_bytes(bytes(range(100)))
    number = os.open(tmp_path / "bytes", os.O_RDONLY)
    yield number
    os.close(number)


def rows_of(file: int, offset: int, stride: int, rows: list[int], size: int) -> bytes:
    out = np.zeros(size * len(rows), np.uint8)
    read_rows(file, offset, stride, np.array(rows, np.int64), out)
    return out.tobytes()


def test_read_rows_reads_what_it_is_told(file: int) -> None:
    whole = bytes(range(100))
    for offset, stride, rows, size in [
        (0, 10, [3, 0, 0, 9], 10),
        (5, 7, [1, 2, 3, 8], 3),
        (4, 0, [5, 6], 2),
        (0, 1, [0], 100),
    ]:
        expected = b"".join(whole[offset + r * stride : offset + r * stride + size] for r in rows)
        assert rows_of(file, offset, stride, rows, size) == expected


@pytest.mark.parametrize(
    ("offset", "stride", "rows", "size"),
    [
        (0, 10, [-1], 10),
        (0, 10, [0, INT64_MIN], 10),
        (0, 10, [INT64_MAX], 10),
        (0, INT64_MAX, [1, 2], 10),
        (0, INT64_MAX, [3], 1),
        (-1, 10, [0], 10),
        (0, -1, [0], 10),
        (INT64_MAX, 1, [0], 4),
        (INT64_MAX - 2, 1, [0], 4),
        (INT64_MAX - 2, 1, [2**40], 4),
        (0, 10, [9, 10], 10),
        (95, 1, [0], 10),
        (100, 1, [0], 1),
    ],
)
def test_read_rows_outside_the_file_raise(file: int, offset: int, stride: int, rows: list[int], size: int) -> None:
    with pytest.raises((IndexError, ValueError, EOFError, OSError)):
        rows_of(file, offset, stride, rows, size)


def test_read_rows_checks_its_arguments(file: int) -> None:
    with pytest.raises(ValueError, match="out"):
        read_rows(file, 0, 1, np.array([], np.int64), np.zeros(0, np.uint8))
    with pytest.raises(ValueError, match="out"):
        read_rows(file, 0, 1, np.array([0, 1, 2]), np.zeros(4, np.uint8))
    with pytest.raises(OSError, match="descriptor"):
        rows_of(10**6, 0, 1, [0], 1)
    with pytest.raises(OSError, match="descriptor"):
        rows_of(-1, 0, 1, [0], 1)
    with pytest.raises(TypeError):
        read_rows(file, 0, 1, np.array([0], np.int32), np.zeros(1, np.uint8))
    with pytest.raises(TypeError):
        read_rows(file, 0, 1, np.array([0]), np.zeros(8, np.uint8)[::2])
