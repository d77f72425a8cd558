"""The kernel that reads byte ranges of a file, against slices, and with arguments that no caller should give."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from forebay._native import read_ranges

CONTENT = bytes(range(256)) * 4


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "f").write_bytes(CONTENT)
    handle = os.open(tmp_path / "f", os.O_RDONLY)
    yield handle
    os.close(handle)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_ranges_come_behind_one_another(file: int) -> None:
    generator = np.random.default_rng(3)
    for _ in range(50):
        starts = generator.integers(0, len(CONTENT), generator.integers(0, 20))
        stops = np.minimum(starts + generator.integers(0, 90, len(starts)), len(CONTENT))
        out = np.zeros(int((stops - starts).sum()), np.uint8)
        read_ranges(file, starts, stops, out)
        assert out.tobytes() == b"".join(CONTENT[a:b] for a, b in zip(starts, stops))


@pytest.mark.parametrize(
    ("starts", "stops", "size", "error"),
    [
        (ints(-1), ints(3), 4, IndexError),
        (ints(5), ints(3), 2, IndexError),
        (ints(0, 0), ints(3, 2**62), 5, ValueError),
        (ints(0, -(2**63)), ints(3, 2**63 - 1), 5, IndexError),
        (ints(0), ints(3), 2, ValueError),
        (ints(0), ints(3), 4, ValueError),
        (ints(0, 1), ints(3), 3, ValueError),
        (ints(len(CONTENT) - 2), ints(len(CONTENT) + 1), 3, EOFError),
        (ints(2**62), ints(2**62 + 3), 3, EOFError),
    ],
)
def test_ranges_that_are_none(
    starts: np.ndarray, stops: np.ndarray, size: int, error: type[Exception], file: int
) -> None:
    out = np.zeros(size + 8, np.uint8)
    with pytest.raises(error):
        read_ranges(file, starts, stops, out[:size])
    assert not out[size:].any()


def test_a_file_that_is_not_open() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        read_ranges(-1, ints(0), ints(1), np.zeros(1, np.uint8))
