"""What the cases read. Built once per process; a check compares it with a second building at the end."""

from __future__ import annotations

import atexit
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Sample:
    image: Any
    label: Any


@dataclass(frozen=True)
class Frozen:
    inner: Any
    weight: Any


def build() -> dict[str, np.ndarray]:
    return {
        "vector": np.arange(20, dtype=np.int64) * 3,
        "small": np.arange(12, dtype=np.int64) + 100,
        "float32": np.linspace(-1, 1, 12, dtype=np.float32),
        "bytes_": np.arange(12, dtype=np.uint8),
        "bools": np.arange(12) % 3 == 0,
        "complex": np.arange(12) * (1 + 2j),
        "half": np.arange(12, dtype=np.float16),
        "nan": np.array([0.0, np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        "matrix": np.arange(48, dtype=np.float64).reshape(12, 4),
        "cube": np.arange(9 * 2 * 3, dtype=np.int32).reshape(9, 2, 3),
        "strided": np.arange(96, dtype=np.int64).reshape(12, 8)[:, ::2],
        "backwards": np.arange(12, dtype=np.int64)[::-1],
        "fortran": np.asfortranarray(np.arange(48, dtype=np.float64).reshape(12, 4)),
        "bigendian": np.arange(12, dtype=">i4"),
        "empty_rows": np.zeros((5, 0), np.float32),
        "no_rows": np.zeros((0, 3), np.float32),
        "dates": np.arange("2024-01-01", "2024-01-11", dtype="datetime64[D]"),
        "long": np.arange(5000, dtype=np.int64).reshape(1000, 5),
    }


ARRAYS = build()


def memmap() -> np.memmap:
    """An array of 40 rows of 3 in a file that goes when the process does."""
    path = Path(_directory.name) / "rows.npy"
    if not path.exists():
        # Written under another name first: a file that exists is a file that is complete.
        np.save(path.with_suffix(".part.npy"), MAPPED)
        path.with_suffix(".part.npy").rename(path)
    return np.load(path, mmap_mode="r")


MAPPED = np.arange(120, dtype=np.float32).reshape(40, 3)
_directory = tempfile.TemporaryDirectory(prefix="forebay-conformance-")
atexit.register(_directory.cleanup)

STRINGS = ["", "a", "zwei", "drei\0mit null", "\0", "naïve", "日本語", "🎏🎏", "x" * 300, "end"]
BYTES = [text.encode() for text in STRINGS[:-1]] + [b"\xff\xfe\0\0"]
LONG_BYTES = [bytes([i]) * (900 + 150 * i) for i in range(12)]
