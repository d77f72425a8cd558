"""Rows in numbered slots on disk: what a shuffle buffer becomes when it outgrows its part of the budget."""

import pickle
from typing import Any

import numpy as np

from forebay._native import read_rows, write_rows
from forebay.block import Block, Column, Indices, Structure, Uniform, column_from_rows
from forebay.block.dense import Dense
from forebay.errors import SpillError
from forebay.run.spill import SpillFile, SpillStore

# Bytes of rows that have been replaced may grow to this and to as much as the rows that are left.
_WASTE = 1 << 20


class SpilledRows:
    """The same as ``RowStore``, on disk. Rows of one shape lie at their slot's place; others in a heap."""

    def __init__(self, store: SpillStore) -> None:
        self._store = store
        self._uniform = Uniform()
        self._structure: Structure | None = None
        self._slots: list[_Fixed | _Heap] = []

    def put(self, slots: Indices, block: Block) -> None:
        """Put row i of the block into slots[i]. RowError if its structure or dtypes differ from those before."""
        self._uniform.check(block.structure, block.columns)
        if self._structure is None:
            self._structure = block.structure
            self._slots = [_slots_for(self._store, column) for column in block.columns]
        for i, column in enumerate(block.columns):
            kept = self._slots[i]
            if isinstance(kept, _Fixed) and not kept.fits(column):
                kept = self._slots[i] = kept.as_heap()
            kept.put(slots, column)

    def take(self, slots: Indices) -> Block:
        """The rows in these slots, in memory of their own."""
        assert self._structure is not None
        return Block(self._structure, [kept.take(slots) for kept in self._slots], len(slots))

    def close(self) -> None:
        """Free the disk space."""
        for kept in self._slots:
            kept.close()


def _slots_for(store: SpillStore, column: Column) -> "_Fixed | _Heap":
    if isinstance(column, Dense) and column.values[:1].nbytes:
        return _Fixed(store, column.values.shape[1:], column.values.dtype)
    return _Heap(store)


class _Fixed:
    """Slots of rows of one shape."""

    def __init__(self, store: SpillStore, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._store = store
        self._shape = shape
        self._dtype = dtype
        self._row = np.dtype((dtype, shape)).itemsize
        self._file = store.create()
        self._filled = 0

    def fits(self, column: Column) -> bool:
        return isinstance(column, Dense) and column.values.shape[1:] == self._shape

    def put(self, slots: Indices, column: Column) -> None:
        assert isinstance(column, Dense)
        order = np.argsort(slots, kind="stable")
        places = np.ascontiguousarray(slots[order])
        rows = np.ascontiguousarray(column.values[order])
        self._filled = max(self._filled, int(places[-1]) + 1)
        self._file.grow(self._filled * self._row)
        with self._file.writing(rows.nbytes):
            write_rows(self._file.fileno, places, rows.reshape(-1).view(np.uint8))

    def take(self, slots: Indices) -> Column:
        rows = np.empty((len(slots), *self._shape), self._dtype)
        read_rows(self._file.fileno, 0, self._row, np.ascontiguousarray(slots), rows.reshape(-1).view(np.uint8))
        return Dense(rows)

    def as_heap(self) -> "_Heap":
        """The same rows where rows of other shapes can join them."""
        heap = _Heap(self._store)
        step = max(1, (1 << 20) // self._row)
        for start in range(0, self._filled, step):
            slots = np.arange(start, min(start + step, self._filled))
            heap.put(slots, self.take(slots))
        self.close()
        return heap

    def close(self) -> None:
        self._file.close()


class _Heap:
    """Slots of rows of any size: pickled behind one another, and rewritten when too much of it is of no use."""

    def __init__(self, store: SpillStore) -> None:
        self._store = store
        self._file = store.create()
        self._places = np.zeros((0, 2), np.int64)  # Offset and size, by slot.
        self._live = 0

    def put(self, slots: Indices, column: Column) -> None:
        rows = [_dumps(row) for row in column.private().rows()]
        least = int(slots.max()) + 1
        if least > len(self._places):
            grown = np.zeros((max(least, 2 * len(self._places)), 2), np.int64)
            grown[: len(self._places)] = self._places
            self._places = grown
        self._append(slots, rows)
        if len(self._file) > 2 * self._live + _WASTE:
            self._rewrite()

    def _append(self, slots: Indices, rows: list[bytes]) -> None:
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        ends = len(self._file) + np.cumsum(sizes)
        self._live += int(sizes.sum()) - int(self._places[slots, 1].sum())
        self._file.write(len(self._file), [b"".join(rows)])
        self._places[slots] = np.stack([ends - sizes, sizes], axis=1)

    def _rewrite(self) -> None:
        old, places = self._file, self._places
        self._file, self._places, self._live = self._store.create(), np.zeros_like(places), 0
        used = np.flatnonzero(places[:, 1])
        for slots in np.array_split(used, max(1, int(places[:, 1].sum()) >> 20)):
            if len(slots):
                self._append(slots, [_read(old, *place) for place in places[slots].tolist()])
        old.close()

    def take(self, slots: Indices) -> Column:
        return column_from_rows([pickle.loads(_read(self._file, *place)) for place in self._places[slots].tolist()])

    def close(self) -> None:
        self._file.close()


def _dumps(row: Any) -> bytes:
    try:
        return pickle.dumps(row, 5)
    except Exception as error:
        raise SpillError(f"elements do not fit into memory and cannot be written to disk: {error}") from error


def _read(file: SpillFile, offset: int, size: int) -> bytes:
    return file.bytes_at(offset, size)
