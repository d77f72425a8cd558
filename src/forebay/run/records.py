"""Rows of fixed size as records, scattered to disk by random words and read back bucket by bucket."""

from collections import deque
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import Errands, gather_rows, place_rows, scatter_rows
from forebay.block import Block, Indices, Structure
from forebay.block.aligned import ALIGN, aligned_empty
from forebay.block.dense import Dense
from forebay.block.pages import own_pages
from forebay.run.pieces import Written
from forebay.run.places import Place, Places
from forebay.run.spill import Bytes, SpillFile

Words = NDArray[np.uint64]
_Filled = list[tuple[int, int, int]]

_WORD = 8
# Larger rows are written one by one as well as together, and take too much room in every bucket.
_MOST_WIDTH = 1 << 16
# Buckets beside those that are being filled, for what is on its way to the disk.
_SPARE = 8
# Parts of these that are written at once, since larger pieces take the system less time.
_GROUPS = 4


class Layout:
    """A row as one record: its word, and behind it the bytes of every column."""

    def __init__(self, structure: Structure, rows: list[tuple[np.dtype[Any], tuple[int, ...]]]) -> None:
        self._structure = structure
        self._rows = rows
        self._widths = [dtype.itemsize * prod(shape) for dtype, shape in rows]
        self.width = _WORD + sum(self._widths)

    @staticmethod
    def of(block: Block) -> "Layout | None":
        """That of a block's rows; None if they are not of one size, or so large that it does not pay."""
        rows = _rows_of(block)
        if rows is None or any(dtype.hasobject for dtype, _ in rows):
            return None
        layout = Layout(block.structure, rows)
        return layout if layout.width <= _MOST_WIDTH else None

    def fits(self, block: Block) -> bool:
        """Whether the block's rows are of this layout."""
        return block.structure == self._structure and _rows_of(block) == self._rows

    def fields(self, words: Words, block: Block) -> list[tuple[Bytes, int, int]]:
        """For every field: its values behind one another, their width, and where in the record it is."""
        found = [(words.view(np.uint8), _WORD, 0)]
        offset = _WORD
        for column, width in zip(block.columns, self._widths):
            assert isinstance(column, Dense)
            if width:
                found.append((_bytes(np.ascontiguousarray(column.values)), width, offset))
            offset += width
        return found

    def words(self, records: Bytes) -> Words:
        """The words of records that lie behind one another."""
        return np.ascontiguousarray(records.reshape(-1, self.width)[:, :_WORD]).reshape(-1).view(np.uint64)

    def rows(self, records: Bytes, order: Indices) -> Block:
        """The rows of these records in that order, without their words, in memory of their own."""
        columns, offset = [], _WORD
        for (dtype, shape), width in zip(self._rows, self._widths):
            values = aligned_empty((len(order), *shape), dtype)
            if width:
                gather_rows(records, self.width, offset, order, _bytes(values))
            columns.append(Dense(values))
            offset += width
        return Block(self._structure, columns, len(order))


def _rows_of(block: Block) -> list[tuple[np.dtype[Any], tuple[int, ...]]] | None:
    columns = [column for column in block.columns if isinstance(column, Dense)]
    if len(columns) < len(block.columns):
        return None
    return [(column.values.dtype, column.values.shape[1:]) for column in columns]


def _bytes(values: NDArray[Any]) -> Bytes:
    return values.reshape(-1).view(np.uint8)


class Scatter:
    """Collects records in a buffer for every bucket, and has them written when that is full.

    Args:
        file: what records are appended to.
        errands: write what is full while the next records are collected.
        width: bytes of a record.
        shift: the lowest of the words' bits that name a record's bucket.
        buckets: how many there are, a power of two.
        nbytes: what all buffers may take together; as little as a record for each in any case.
    """

    def __init__(self, file: SpillFile, errands: Errands, width: int, shift: int, buckets: int, nbytes: int) -> None:
        self._file = file
        self._errands = errands
        self._width = width
        self._shift = shift
        spare = max(2, buckets // _SPARE)
        self._room = max(1, nbytes // ((buckets + spare) * width))
        # Whole pieces of the alignment, in the file and where they are read to one behind another.
        self._room -= self._room % (ALIGN // gcd(ALIGN, width)) if self._room > ALIGN else 0
        self._slots = own_pages((buckets + spare) * self._room * width)
        # The first record of each bucket's slot, and how many are in it.
        self._first = np.arange(buckets, dtype=np.int64) * self._room
        self._filled = np.zeros(buckets, np.int64)
        self._free = [number * self._room for number in range(buckets, buckets + spare)]
        # Buckets, with the first and the number of their records: those that are full, and those that are written.
        self._at_once = max(1, spare // _GROUPS)
        self._full: _Filled = []
        self._writing: deque[tuple[_Filled, Written]] = deque()
        self._chunks = [Places(file) for _ in range(buckets)]

    @property
    def nbytes(self) -> int:
        """What the buffers take."""
        return self._slots.nbytes

    def add(self, words: Words, fields: list[tuple[Bytes, int, int]]) -> None:
        """More records, as ``Layout.fields`` gives them."""
        places = np.empty(len(words), np.int64)
        start = 0
        while start < len(words):
            count = place_rows(words[start:], self._shift, self._first, self._filled, self._room, places)
            for values, width, offset in fields if count else ():
                rows = values[start * width : (start + count) * width]
                scatter_rows(rows, places[:count], self._slots, self._width, offset)
            start += count
            if start < len(words):
                self._write((int(words[start]) >> self._shift) & (len(self._first) - 1))

    def finish(self) -> list[Places]:
        """Write what is left; where everything is, by bucket."""
        left = np.flatnonzero(self._filled)
        self._full += zip(left.tolist(), self._first[left].tolist(), self._filled[left].tolist())
        self._hand_over()
        while self._writing:
            self._written()
        return self._chunks

    def _write(self, bucket: int) -> None:
        self._full.append((bucket, int(self._first[bucket]), int(self._filled[bucket])))
        if len(self._full) == self._at_once:
            self._hand_over()
        while self._writing and (not self._free or self._writing[0][1].done):
            self._written()
        self._first[bucket] = self._free.pop()
        self._filled[bucket] = 0

    def _hand_over(self) -> None:
        full, self._full = self._full, []
        _, first, counts = np.array(full, np.int64).reshape(-1, 3).T
        starts = first * self._width
        written = Written(self._file, self._errands, self._slots, starts, starts + counts * self._width)
        self._writing.append((full, written))

    def _written(self) -> None:
        filled, written = self._writing[0]
        written.result()
        self._writing.popleft()
        for (bucket, first, rows), offset, checksum in zip(
            filled, written.offsets.tolist(), written.checksums.tolist()
        ):
            self._chunks[bucket].append(Place(offset, rows * self._width, rows, checksum, 0))
            self._free.append(first)
