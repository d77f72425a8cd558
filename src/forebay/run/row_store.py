"""Rows kept in numbered slots, column by column, to be replaced and read in any order."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import Block, Column, Indices, Structure, Uniform, column_from_leaves
from forebay.block.dense import Dense
from forebay.block.pages import own_pages

# What a Python object takes up besides its contents, an array above all.
_OBJECT = 112
# Arrays that are such a part of the budget, and not small, have pages of their own. One is freed each time that it has
# grown, and when all rows go to disk: a heap would keep it, and every thread that runs a pipeline has a heap. To have
# new pages takes as long as to fill them, so this is not for arrays that the budget has room for many times.
_PART = 32
_LARGE = 1 << 20


class RowStore:
    """Slots 0, 1, 2 ... of rows with one structure. Grows with the highest slot used, to `most`, within that budget."""

    def __init__(self, most: int, budget: int) -> None:
        self._most = most
        self._large = max(_LARGE, budget // _PART)
        self._uniform = Uniform()
        self._structure: Structure | None = None
        self._slots: list[_Slots] = []
        self._used = 0

    def put(self, slots: Indices, block: Block) -> None:
        """Put row i of the block into slots[i]. RowError if its structure or dtypes differ from those before."""
        self._uniform.check(block.structure, block.columns)
        if self._structure is None:
            self._structure = block.structure
            self._slots = [_Slots(self._most, self._large) for _ in block.columns]
        for kept, column in zip(self._slots, block.columns):
            kept.put(slots, column)
        self._used = max(self._used, int(slots.max()) + 1)

    def __len__(self) -> int:
        return self._used

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take up."""
        return sum(kept.nbytes for kept in self._slots)

    @property
    def used_bytes(self) -> int:
        """About how much of that has been written to."""
        return sum(kept.nbytes * self._used // max(len(kept), 1) for kept in self._slots)

    def settled(self, block: Block) -> bool:
        """Whether rows like these only take the places of others: nothing grows, so that nothing is copied."""
        return self._used == self._most and all(kept.takes(column) for kept, column in zip(self._slots, block.columns))

    def close(self) -> None:
        """Let go of the rows."""
        self._slots = []

    def take(self, slots: Indices) -> Block:
        """The rows in these slots, in memory of their own."""
        assert self._structure is not None
        return Block(self._structure, [kept.take(slots) for kept in self._slots], len(slots))


def stored_bytes(row: Block) -> int:
    """About how much memory a row like this one takes up in a slot."""
    objects = sum(not isinstance(column, Dense) for column in row.columns)
    return row.nbytes + objects * (_OBJECT + np.dtype(object).itemsize)


class _Slots:
    """One column's slots: an array while all rows have one shape, an array of objects once they have not."""

    def __init__(self, most: int, large: int) -> None:
        self._most = most
        self._large = large
        self._values: NDArray[Any] | None = None
        self._row = 0.0  # Bytes of a row that is an object of its own.

    def __len__(self) -> int:
        return 0 if self._values is None else len(self._values)

    @property
    def nbytes(self) -> int:
        if self._values is None:
            return 0
        return self._values.nbytes + (int(self._row * len(self._values)) if self._values.dtype == object else 0)

    def takes(self, column: Column) -> bool:
        """Whether its rows can be put into the array as it is."""
        values = self._values
        if values is None or values.dtype == object:
            return values is not None
        rows = column.values if isinstance(column, Dense) else None
        return rows is not None and rows.shape[1:] == values.shape[1:] and rows.dtype == values.dtype

    def put(self, slots: Indices, column: Column) -> None:
        self._row = max(self._row, _OBJECT + column.nbytes / len(column))
        rows: NDArray[Any] | None = column.values if isinstance(column, Dense) else None
        values = self._values
        if values is None:
            shape, dtype = (rows.shape[1:], rows.dtype) if rows is not None else ((), np.dtype(object))
            values = np.empty((0, *shape), dtype)
        self._values = values
        if not self.takes(column):
            # Filled one by one: NumPy would take equal arrays in a list for one array of higher rank.
            values = np.fromiter(values, object, len(values))
        self._values = values = _grown(values, int(slots.max()) + 1, self._most, self._large)
        if values.dtype != object:
            values[slots] = rows
        else:
            for slot, row in zip(slots.tolist(), column.private().rows()):
                values[slot] = row

    def take(self, slots: Indices) -> Column:
        assert self._values is not None
        picked = self._values.take(slots, axis=0)
        return Dense(picked) if picked.dtype != object else column_from_leaves(list(picked))


def _grown(values: NDArray[Any], least: int, most: int, large: int) -> NDArray[Any]:
    if least <= len(values):
        return values
    shape = (max(least, min(2 * len(values), most)), *values.shape[1:])
    size = prod(shape) * values.itemsize
    own = size >= large and not values.dtype.hasobject
    grown: NDArray[Any] = np.ndarray(shape, values.dtype, own_pages(size, huge=True) if own else None)
    grown[: len(values)] = values
    return grown
