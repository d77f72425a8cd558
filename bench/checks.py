"""What each workload must yield. A contender that yields anything else fails loudly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bench.pipeline import WrongData

BATCH = 32
Check = Callable[[Any, int, Iterable[Any]], None]


def doubled(_: Any, rows: int, batches: Iterable[Any]) -> None:
    """0, 2, 4 ... in order."""
    values = _batched(rows, batches)
    if not np.array_equal(values, np.arange(rows) * 2):
        raise WrongData("the values are not 0, 2, 4 ... in order")


def counted(epochs: int) -> Check:
    """0, 1, 2 ... in order, again in every one of so many epochs."""

    def check(_: Any, rows: int, batches: Iterable[Any]) -> None:
        values = np.concatenate([np.array(batch) for batch in batches])
        if not np.array_equal(values, np.tile(np.arange(rows // epochs), epochs)):
            raise WrongData("the values are not 0, 1, 2 ... in order in every epoch")

    return check


def shuffled(buffer: int | None) -> Check:
    """Every number once, out of order; with a buffer, no row earlier than the buffer can reach."""

    def check(_: Any, rows: int, batches: Iterable[Any]) -> None:
        _shuffled(_batched(rows, batches), rows, buffer)

    return check


def shuffled_rows(buffer: int | None) -> Check:
    """The same for (features, label) pairs whose label is the row's index: each with its own features."""

    def check(data: Any, rows: int, batches: Iterable[Any]) -> None:
        features, labels = data
        seen = []
        for x, y in batches:
            label = np.array(y)
            if x.shape != (len(label), features.shape[1]) or not np.array_equal(x, features[label]):
                raise WrongData("a row's features are not those of its label")
            seen.append(label)
        values = _batched(rows, seen)
        if not np.array_equal(np.sort(values), labels):
            raise WrongData("the labels are not every label once")
        _shuffled(values, rows, buffer)

    return check


def _batched(rows: int, batches: Iterable[Any]) -> np.ndarray[Any, Any]:
    arrays = [np.array(batch) for batch in batches]
    sizes = [len(array) for array in arrays]
    expected = [BATCH] * (rows // BATCH) + ([rows % BATCH] if rows % BATCH else [])
    if sizes != expected:
        raise WrongData(f"{len(sizes)} batches, expected {len(expected)} of {BATCH} rows")
    return np.concatenate(arrays)


def _shuffled(values: np.ndarray[Any, Any], rows: int, buffer: int | None) -> None:
    order = np.arange(rows)
    if not np.array_equal(np.sort(values), order):
        raise WrongData("the values are not every number once")
    if np.mean(values == order) > 0.01:
        raise WrongData("more than one row in a hundred stayed where it was")
    if buffer is not None and np.any(values >= order + buffer):
        raise WrongData(f"a row came out before a buffer of {buffer:,} could have held it")
