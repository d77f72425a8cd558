"""Short words for what case tables say over and over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import forebay as fb

Dataset = fb.Dataset
range_ = fb.Dataset.range
slices = fb.Dataset.from_tensor_slices


def scalars(values: Iterable[Any], dtype: Any = np.int64) -> list[Any]:
    """Elements that are NumPy scalars."""
    return list(np.asarray(list(values), dtype))


def i64(values: Any) -> np.ndarray:
    return np.asarray(values, np.int64)


def batches(values: np.ndarray, size: int) -> list[np.ndarray]:
    return [values[i : i + size].copy() for i in range(0, len(values), size)]


def rows(values: np.ndarray) -> list[Any]:
    """One element per row: arrays, or NumPy scalars if the rows have no axes."""
    return [row.copy() for row in values]


def objects(values: Iterable[Any]) -> np.ndarray:
    """What a batch of strings, bytes or other objects is: a one-dimensional object array."""
    values = list(values)
    out = np.empty(len(values), object)
    out[:] = values
    return out
