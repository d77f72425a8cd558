"""Rows in numbered slots on disk: what a shuffle buffer becomes when it outgrows its part of the budget."""

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from forebay.block import Block, Column, Indices, Structure, Uniform, column_from_leaves
from forebay.block.dense import Dense
from forebay.errors import SpillError
from forebay.run.slot_table import Bytes, SlotTable, record_bytes
from forebay.run.spill_room import SpillStore
from forebay.run.spilled_heap import Places, SpilledHeap, most_heap_bytes

# Bytes of rows that are moved at once from one file to another.
_PIECE = 1 << 20
_PLACE = 24


class SpilledRows:
    """The same as ``RowStore``, on disk. Nothing in memory grows with the rows."""

    def __init__(self, store: SpillStore) -> None:
        self._store = store
        self._uniform = Uniform()
        self._structure: Structure | None = None
        self._records: _Records | None = None

    def put(self, slots: Indices, block: Block) -> None:
        """Put row i of the block into slots[i]. RowError if its structure or dtypes differ from those before."""
        self._uniform.check(block.structure, block.columns)
        if self._records is None:
            self._structure = block.structure
            self._records = _Records(self._store, [_kind_of(column) for column in block.columns])
        elif not self._records.fit(block.columns):
            self._records = self._records.loosened(block.columns)
        # What goes to a heap is there a second time meanwhile.
        start = 0
        for piece in block.pieces(_PIECE) if self._records.has_heap else (block,):
            self._records.put(slots[start : start + piece.rows], piece.columns)
            start += piece.rows

    def take(self, slots: Indices) -> Block:
        """The rows in these slots, in memory of their own."""
        assert self._structure is not None
        assert self._records is not None
        return Block(self._structure, self._records.take(slots), len(slots))

    def fitting(self, slots: Indices, most: int) -> int:
        """How many of the first of these rows, at least one, take up no more than so many bytes."""
        assert self._records is not None
        return self._records.fitting(slots, most)

    def on_disk_beside(self, store: SpillStore) -> int:
        """Bytes on disk, unless they count in that store."""
        return 0 if self._records is None or self._store is store else self._records.nbytes

    def close(self) -> None:
        """Free the disk space."""
        if self._records is not None:
            self._records.close()


def most_spilled(row: Block, slots: int, rows: int | None) -> int:
    """Bytes that so many slots take up on disk at most, if so many rows like this one are put into them; None if no
    end of them are.

    Of rows that differ in size, those that were replaced are there for a while, and what is left is then written anew.
    """
    loose = [column for column in row.columns if _kind_of(column) is None]
    width = sum(np.dtype(kind).itemsize for kind in map(_kind_of, row.columns) if kind is not None)
    if not loose:
        return slots * record_bytes(width)
    size = max(map(len, _dumped(loose)))
    at_once = _PIECE * size // max(row.nbytes, 1)
    return slots * record_bytes(width + _PLACE) + most_heap_bytes(slots, rows, size, at_once)


# The dtype and the shape of every row of a column; None if rows differ.
_Kind = tuple[np.dtype[Any], tuple[int, ...]] | None


def _kind_of(column: Column) -> _Kind:
    if isinstance(column, Dense) and column.values[:1].nbytes:
        return column.values.dtype, column.values.shape[1:]
    return None


class _Records:
    """A record for every slot: columns of one shape as they are, and the place in a heap of all other columns."""

    def __init__(self, store: SpillStore, kinds: Sequence[_Kind]) -> None:
        self._store = store
        self._kinds = kinds
        self._loose = [i for i, kind in enumerate(kinds) if kind is None]
        self._fixed: list[tuple[int, slice]] = []  # Columns and where in a record they are.
        self._width = 0
        for i, kind in enumerate(kinds):
            if kind is not None:
                end = self._width + np.dtype(kind).itemsize
                self._fixed.append((i, slice(self._width, end)))
                self._width = end
        self._table = SlotTable(store, self._width + (_PLACE if self._loose else 0))
        self._heap = SpilledHeap(store) if self._loose else None

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + (0 if self._heap is None else self._heap.nbytes)

    @property
    def has_heap(self) -> bool:
        return self._heap is not None

    def fit(self, columns: Sequence[Column]) -> bool:
        return all(_kind_of(columns[i]) == self._kinds[i] for i, _ in self._fixed)

    def put(self, slots: Indices, columns: Sequence[Column]) -> None:
        records = self._table.blank(len(slots))
        for i, field in self._fixed:
            column = columns[i]
            assert isinstance(column, Dense)
            values = np.ascontiguousarray(column.values)
            records[:, field] = values.reshape(-1).view(np.uint8).reshape(len(slots), -1)
        if self._heap is not None:
            self._set_places(records, self._heap.append(_dumped([columns[i] for i in self._loose])))
        self._table.put(slots, records)
        if self._heap is not None and self._heap.wasteful(self._table.filled):
            self._heap = self._rewritten(self._heap)

    def take(self, slots: Indices) -> list[Column]:
        return self._columns(self._table.take(slots))

    def fitting(self, slots: Indices, most: int) -> int:
        if self._heap is None:
            return min(len(slots), max(1, most // self._table.record_bytes))
        return self._within(self._table.take(slots), most)

    def loosened(self, columns: Sequence[Column]) -> "_Records":
        """The same rows where rows of other shapes can join them."""
        kinds = [kind if kind == _kind_of(column) else None for kind, column in zip(self._kinds, columns)]
        loose = _Records(self._store, kinds)
        for slots, records in self._pieces():
            loose.put(slots, self._columns(records))
        self.close()
        return loose

    def close(self) -> None:
        self._table.close()
        if self._heap is not None:
            self._heap.close()

    def _columns(self, records: Bytes) -> list[Column]:
        columns: dict[int, Column] = {}
        for i, field in self._fixed:
            kind = self._kinds[i]
            assert kind is not None
            values = np.ascontiguousarray(records[:, field]).reshape(-1).view(kind[0])
            columns[i] = Dense(values.reshape(len(records), *kind[1]))
        if self._heap is not None:
            found = zip(*map(pickle.loads, self._heap.read(self._places(records))))
            columns |= {i: column_from_leaves(list(rows)) for i, rows in zip(self._loose, found)}
        return [columns[i] for i in range(len(columns))]

    def _rewritten(self, old: SpilledHeap) -> SpilledHeap:
        """Of what is in use alone. Records are changed piece by piece, so if that fails the rows are lost."""
        new = SpilledHeap(self._store)
        for slots, records in self._pieces():
            self._set_places(records, new.append(old.read(self._places(records))))
            self._table.put(slots, records)
        old.close()
        return new

    def _pieces(self) -> Iterator[tuple[Indices, Bytes]]:
        """All rows, some at a time, by what they really take: a few may be larger than all others together."""
        step = max(1, _PIECE // self._table.record_bytes)
        for start in range(0, self._table.filled, step):
            slots = np.arange(start, min(start + step, self._table.filled))
            records, written = self._table.look(slots)
            slots, records = slots[written], records[written]
            while len(slots):
                some = self._within(records, _PIECE)
                yield slots[:some], records[:some]
                slots, records = slots[some:], records[some:]

    def _within(self, records: Bytes, most: int) -> int:
        """How many of the first of these, at least one, take up no more than so many bytes with what is in the heap."""
        if self._heap is None:
            return len(records)
        ends = np.cumsum(self._places(records)[:, 1] + self._table.record_bytes)
        return max(1, int(np.searchsorted(ends, most, side="right")))

    def _places(self, records: Bytes) -> Places:
        return np.ascontiguousarray(records[:, self._width : self._width + _PLACE]).view(np.int64)

    def _set_places(self, records: Bytes, places: Places) -> None:
        records[:, self._width : self._width + _PLACE] = np.ascontiguousarray(places).view(np.uint8)


def _dumped(columns: list[Column]) -> list[bytes]:
    try:
        return [pickle.dumps(row, 5) for row in zip(*(column.private().rows() for column in columns))]
    except Exception as error:
        raise SpillError(f"elements do not fit into memory and cannot be written to disk: {error}") from error
