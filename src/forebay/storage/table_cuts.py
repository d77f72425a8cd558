"""Record batches cut into pieces by the memory that their rows take once they are decoded.

A dictionary or a run holds a value once for any number of rows: a batch of a few bytes may decode to gigabytes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from forebay.block import Indices
from forebay.storage.arrow import arrow


def cut(batch: Any, row: int, piece: int) -> Iterator[Any]:
    """A record batch from a row on, in slices of about so many bytes."""
    encoded = [column for column in batch.columns if _repeats(column.type)]
    if not encoded:
        step = max(1, int(piece * batch.num_rows / max(batch.nbytes, 1)))
        for start in range(row, batch.num_rows, step):
            yield batch.slice(start, step)
        return
    plain = sum(column.nbytes for column in batch.columns if not _repeats(column.type))
    sizes = np.full(batch.num_rows, plain // max(batch.num_rows, 1), np.int64)
    for column in encoded:
        sizes += _sizes(column)
    ends = np.cumsum(sizes)
    while row < batch.num_rows:
        done = int(ends[row - 1]) if row else 0
        stop = max(int(np.searchsorted(ends, done + piece, "right")), row + 1)
        yield batch.slice(row, stop - row)
        row = stop


def _repeats(kind: Any) -> bool:
    """Whether one value may stand for many, at any depth."""
    types = arrow().types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return True
    return any(_repeats(kind.field(i).type) for i in range(kind.num_fields))


def _sizes(array: Any) -> Indices:
    """About how many bytes each row takes up when it is decoded; those of kinds that repeat nothing as on average."""
    import pyarrow.compute

    types, kind, rows = arrow().types, array.type, len(array)
    if types.is_dictionary(kind):
        return _taken(_sizes(array.dictionary), array.indices.fill_null(0).to_numpy().astype(np.int64))
    if types.is_run_end_encoded(kind):
        numbers = np.arange(array.offset, array.offset + rows)
        return _taken(_sizes(array.values), np.searchsorted(array.run_ends.to_numpy(), numbers, "right"))
    if types.is_struct(kind):
        # flatten() hands a struct's nulls on: what is under them may lead nowhere.
        return sum(map(_sizes, array.flatten()), np.zeros(rows, np.int64))
    if (types.is_list(kind) or types.is_large_list(kind)) and _repeats(kind):
        ends: Indices = np.concatenate([[0], np.cumsum(_sizes(array.values))])
        of_lists: Indices = np.diff(ends[array.offsets.to_numpy()])
        return of_lists
    if types.is_fixed_size_list(kind) and _repeats(kind):
        held = array.values.slice(array.offset * kind.list_size, rows * kind.list_size)
        items: Indices = _sizes(held).reshape(rows, kind.list_size)
        of_rows: Indices = items.sum(axis=1)
        return of_rows
    if any(test(kind) for test in (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)):
        lengths: Indices = pyarrow.compute.binary_length(array).fill_null(0).to_numpy().astype(np.int64)
        return lengths + 8
    return np.full(rows, array.nbytes // max(rows, 1) + 1, np.int64)


def _taken(sizes: Indices, numbers: Indices) -> Indices:
    """Numbers of nulls may be any."""
    return sizes[np.minimum(numbers, len(sizes) - 1)] if len(sizes) else np.zeros(len(numbers), np.int64)
