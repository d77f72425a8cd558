"""Digests with contents of arrays that are mapped files: large ones are not read, and yet never taken for others."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.plan.fingerprint import digest
from forebay.plan.mapping import stamp

SIZE = 3_000_000
# Where none of the windows is that are looked at.
UNSEEN = 1_234_567


def saved(path: Path, value: int, shape: Any = SIZE) -> None:
    """All alike but for the value, as old as any other."""
    array = np.zeros(shape, np.uint8)
    array.reshape(-1)[UNSEEN] = value
    np.save(path, array)
    settle(path)
    os.utime(path, ns=(1, 1))


def settle(path: Path) -> None:
    """What is still to be written counts as written through any mapping that shows it."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def mapped(path: Path, mode: Any = "r") -> Any:
    return np.load(path, mmap_mode=mode)


def key(array: Any) -> str:
    return digest(array, contents=True)


def test_the_same_file_is_the_same_and_not_read(tmp_path: Path) -> None:
    saved(tmp_path / "a.npy", 1)
    assert key(mapped(tmp_path / "a.npy")) == key(mapped(tmp_path / "a.npy"))
    # Through a view that no longer says so: datasets hold such.
    view = mapped(tmp_path / "a.npy").view(np.ndarray)[1:]
    assert key(view) == key(mapped(tmp_path / "a.npy")[1:].view(np.ndarray))
    assert stamp(view) is not None


def test_files_of_the_same_size_and_time_are_others(tmp_path: Path) -> None:
    for name, value in (("a.npy", 1), ("b.npy", 2)):
        saved(tmp_path / name, value)
    one, other = (mapped(tmp_path / name) for name in ("a.npy", "b.npy"))
    assert key(one) != key(other)
    # One that takes the other's place.
    before = key(one)
    os.replace(tmp_path / "b.npy", tmp_path / "a.npy")
    assert key(mapped(tmp_path / "a.npy")) != before
    # The first is still what it shows, and nothing but reading tells.
    assert stamp(one) is None
    assert key(one) == key(one) != before


def test_a_file_that_is_written_anew_is_another_whatever_its_time(tmp_path: Path) -> None:
    keys = set()
    for value in (1, 2):
        saved(tmp_path / "a.npy", value)
        keys.add(key(mapped(tmp_path / "a.npy")))
    assert len(keys) == 2


@pytest.mark.parametrize(
    "part",
    [
        lambda array, k: array[k],
        lambda array, k: array.reshape(-1)[4096 * k :][:SIZE],
        lambda array, k: array[:, :: 1 - 2 * k],
        lambda array, k: array[:, k::2],
        lambda array, k: array[:: 1 - 2 * k],
    ],
)
def test_parts_of_a_file_are_others(part: Callable[[Any, int], Any], tmp_path: Path) -> None:
    saved(tmp_path / "a.npy", 1, (2, SIZE))
    one, other = (part(mapped(tmp_path / "a.npy"), k) for k in (0, 1))
    assert key(one) == key(part(mapped(tmp_path / "a.npy"), 0)) != key(other)


@pytest.mark.parametrize("mode", ["c", "r+"])
def test_writes_that_the_file_does_not_tell_of_count(mode: str, tmp_path: Path) -> None:
    saved(tmp_path / "a.npy", 1)
    arrays = [mapped(tmp_path / "a.npy", mode) for _ in range(3 if mode == "c" else 1)]
    assert stamp(arrays[0]) is not None
    keys = []
    for value, array in zip((1, 2, 2), arrays * 3):
        array[UNSEEN + 1] = value
        # As in file systems that note no time of such writes.
        os.utime(tmp_path / "a.npy", ns=(1, 1))
        keys.append(key(array))
    assert keys[0] != keys[1]
    # Those that are shared reach the file at a moment that the system chooses.
    assert mode == "r+" or keys[1] == keys[2]


def test_what_a_computation_makes_of_a_mapped_array_is_in_no_file(tmp_path: Path) -> None:
    saved(tmp_path / "a.npy", 1)
    one, other = (mapped(tmp_path / "a.npy").copy() for _ in range(2))
    assert isinstance(one, np.memmap)
    assert key(one) == key(other)
    one[UNSEEN] = 3
    assert key(one) != key(other)


def test_a_cache_keeps_files_apart(tmp_path: Path) -> None:
    def rows(array: Any) -> list[int]:
        return [int(x) for x in fb.Dataset.range(1).map(lambda x: array[UNSEEN] + x).cache(tmp_path / "kept")]

    def largest(array: Any) -> list[int]:
        dataset = fb.Dataset.from_tensor_slices(array).batch(SIZE).map(lambda x: x.max())
        return [int(x) for x in dataset.cache(tmp_path / "kept")]

    for name, value in (("a.npy", 1), ("b.npy", 2)):
        saved(tmp_path / name, value)
    for use in (rows, largest):
        assert [use(mapped(tmp_path / name)) for name in ("a.npy", "b.npy", "a.npy")] == [[1], [2], [1]]
