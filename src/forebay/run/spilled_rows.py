"""Rows in numbered slots on disk: what a shuffle buffer becomes when it outgrows its part of the budget."""

import pickle
import zlib
from typing import Any

import numpy as np

from forebay._native import read_rows, write_rows
from forebay.block import Block, Column, Indices, Structure, Uniform, column_from_rows
from forebay.block.dense import Dense
from forebay.errors import DataError, SpillError
from forebay.run.spill import SpillFile
from forebay.run.spill_room import SpillStore

# Bytes of rows that have been replaced may grow to this and to as much as the rows that are left.
_WASTE = 1 << 20
# Odd, so that no difference in one word of a row can vanish in the sum.
_FACTORS = 0x9E3779B97F4A7C15
_SUM = 8


class SpilledRows:
    """The same as ``RowStore``, on disk. Rows of one shape lie at their slot's place; others in a heap."""

    def __init__(self, store: SpillStore) -> None:
        self._store = store
        self._uniform = Uniform()
        self._structure: Structure | None = None
        self._slots: list[_Fixed | _Heap] = []
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def nbytes(self) -> int:
        """What is in memory: where rows that differ in size lie."""
        return sum(kept.nbytes for kept in self._slots)

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
        self._used = max(self._used, int(slots.max()) + 1)

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
    """Slots of rows of one shape.

    A row's checksum lies behind it: in memory, those of narrow rows would take up as much as the rows do.
    """

    def __init__(self, store: SpillStore, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._store = store
        self._shape = shape
        self._dtype = dtype
        self._row = np.dtype((dtype, shape)).itemsize
        self._file = SpillFile(store)
        self._filled = 0

    nbytes = 0

    def fits(self, column: Column) -> bool:
        return isinstance(column, Dense) and column.values.shape[1:] == self._shape

    def put(self, slots: Indices, column: Column) -> None:
        assert isinstance(column, Dense)
        order = np.argsort(slots, kind="stable")
        places = np.ascontiguousarray(slots[order])
        rows = np.ascontiguousarray(column.values[order]).reshape(-1).view(np.uint8).reshape(len(places), self._row)
        records = np.empty((len(places), self._row + _SUM), np.uint8)
        records[:, : self._row] = rows
        records[:, self._row :] = _sums_at(rows, places).view(np.uint8).reshape(-1, _SUM)
        filled, before = max(self._filled, int(places[-1]) + 1), len(self._file)
        self._file.grow(filled * records.shape[1])
        try:
            with self._file.writing(records.nbytes):
                write_rows(self._file.fileno, places, records.reshape(-1))
        except SpillError:
            self._file.shrink(before)
            raise
        self._filled = filled

    def take(self, slots: Indices) -> Column:
        rows, written = self._read(slots)
        if not written.all():
            raise _changed()
        return self._column(rows)

    def _read(
        self, slots: Indices
    ) -> "tuple[np.ndarray[Any, np.dtype[np.uint8]], np.ndarray[Any, np.dtype[np.bool_]]]":
        """The rows in these slots, and which of the slots have one. DataError if one has changed."""
        records = np.empty((len(slots), self._row + _SUM), np.uint8)
        places = np.ascontiguousarray(slots)
        read_rows(self._file.fileno, 0, records.shape[1], places, records.reshape(-1))
        rows = np.ascontiguousarray(records[:, : self._row])
        found = np.ascontiguousarray(records[:, self._row :]).view(np.uint64).reshape(-1)
        written = found != 0
        if (written & (_sums_at(rows, places) != found)).any():
            raise _changed()
        return rows, written

    def _column(self, rows: "np.ndarray[Any, np.dtype[np.uint8]]") -> Column:
        return Dense(rows.reshape(-1).view(self._dtype).reshape(len(rows), *self._shape))

    def as_heap(self) -> "_Heap":
        """The same rows where rows of other shapes can join them."""
        heap = _Heap(self._store)
        step = max(1, (1 << 20) // self._row)
        for start in range(0, self._filled, step):
            slots = np.arange(start, min(start + step, self._filled))
            rows, written = self._read(slots)
            if written.any():
                heap.put(slots[written], self._column(rows[written]))
        self.close()
        return heap

    def close(self) -> None:
        self._file.close()


class _Heap:
    """Slots of rows of any size: pickled behind one another, and rewritten when too much of it is of no use."""

    def __init__(self, store: SpillStore) -> None:
        self._store = store
        self._file = SpillFile(store)
        self._places = np.zeros((0, 3), np.int64)  # Offset, size and checksum, by slot.
        self._live = 0

    @property
    def nbytes(self) -> int:
        return self._places.nbytes

    def put(self, slots: Indices, column: Column) -> None:
        rows = [_dumps(row) for row in column.private().rows()]
        least = int(slots.max()) + 1
        if least > len(self._places):
            grown = np.zeros((max(least, 2 * len(self._places)), 3), np.int64)
            grown[: len(self._places)] = self._places
            self._places = grown
        self._append(slots, rows)
        if len(self._file) > 2 * self._live + _WASTE:
            self._rewrite()

    def _append(self, slots: Indices, rows: list[bytes]) -> None:
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        ends = len(self._file) + np.cumsum(sizes)
        self._file.write(len(self._file), [b"".join(rows)])
        self._live += int(sizes.sum()) - int(self._places[slots, 1].sum())
        sums = np.fromiter(map(zlib.crc32, rows), np.int64, len(rows))
        self._places[slots] = np.stack([ends - sizes, sizes, sums], axis=1)

    def _rewrite(self) -> None:
        old, places = self._file, self._places
        self._file, self._places, self._live = SpillFile(self._store), np.zeros_like(places), 0
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


def _read(file: SpillFile, offset: int, size: int, checksum: int) -> bytes:
    data = file.bytes_at(offset, size)
    if zlib.crc32(data) != checksum:
        raise _changed()
    return data


def _changed() -> DataError:
    return DataError("a row that was spilled to disk has come back changed: the disk or its memory is faulty")


def _sums_at(rows: "np.ndarray[Any, np.dtype[np.uint8]]", slots: Indices) -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """Checksums that are right in these slots only. None is 0, as the sum of a row that was never written is."""
    sums = row_sums(rows) + slots.astype(np.uint64) * np.uint64(_FACTORS)
    return np.maximum(sums, np.uint64(1))


def row_sums(rows: "np.ndarray[Any, np.dtype[np.uint8]]") -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """A checksum of every row of bytes: its words, each times a number of its own, in one pass over the column."""
    count, width = rows.shape
    whole = width // 8
    factors = (np.arange(1, whole + width % 8 + 1, dtype=np.uint64) * np.uint64(_FACTORS)) | np.uint64(1)
    sums = np.full(count, np.uint64(width), np.uint64)
    if whole:
        sums += np.ascontiguousarray(rows[:, : whole * 8]).view(np.uint64) @ factors[:whole]
    if width % 8:
        sums += rows[:, whole * 8 :].astype(np.uint64) @ factors[whole:]
    return sums
