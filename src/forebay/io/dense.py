"""Sparse and ragged values as arrays, with something in the places that have no value."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.errors import PlanError


def from_sparse(
    indices: NDArray[np.int64], values: NDArray[Any], shape: NDArray[np.int64], default_value: Any
) -> NDArray[Any]:
    """Value i at the place that ``indices[i]`` names."""
    made = _blank("to_dense", tuple(map(int, shape)), values.dtype, default_value)
    made[tuple(indices.T)] = values
    return made


def from_ragged(values: Any, row_splits: NDArray[Any], default_value: Any) -> NDArray[Any]:
    """Rows filled up to the longest, at every level."""
    sizes = [len(row_splits) - 1]
    places: list[NDArray[np.int64]] = []
    while True:
        counts = np.diff(row_splits).astype(np.int64)
        rows = np.repeat(np.arange(len(counts)), counts)
        places = [each[rows] for each in places] if places else [rows]
        places.append(np.arange(len(rows)) - row_splits[:-1].astype(np.int64)[rows])
        sizes.append(int(counts.max(initial=0)))
        if not hasattr(values, "row_splits"):
            break
        values, row_splits = values.values, values.row_splits
    made = _blank("to_tensor", (*sizes, *values.shape[1:]), values.dtype, default_value)
    made[tuple(places)] = values
    return made


def _blank(call: str, shape: tuple[int, ...], dtype: np.dtype[Any], value: Any) -> NDArray[Any]:
    bytes_, whole = dtype.kind == "O", dtype.kind in "iu"
    if value is None:
        value = b"" if bytes_ else 0
    fits = bytes if bytes_ else (int, np.integer) if whole else (int, float, np.integer, np.floating)
    if not isinstance(value, fits) or isinstance(value, bool):
        raise PlanError(
            f"{call}(default_value={value!r}): the values are {'bytes' if bytes_ else dtype}; give such a one"
        )
    return np.full(shape, value, dtype)
