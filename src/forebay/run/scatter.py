"""Rows of one size, scattered to disk by random words: in pieces that have some rows of a bucket, column by column."""

from collections import deque

import numpy as np

from forebay._native import Errands, place_rows, scatter_rows
from forebay.block.aligned import ALIGN
from forebay.block.pages import own_pages
from forebay.run.layout import Layout, Words
from forebay.run.pieces import Written
from forebay.run.places import Place, Places
from forebay.run.spill import Bytes, SpillFile

_Filled = list[tuple[int, int, int]]

# Buckets beside those that are being filled, for what is on its way to the disk.
_SPARE = 8
# Parts of these that are written at once, since larger pieces take the system less time.
_GROUPS = 4


class Scatter:
    """Collects rows in a buffer for every bucket, column by column, and has them written when that is full.

    Args:
        file: what rows are appended to.
        errands: write what is full while the next rows are collected.
        layout: of the rows.
        shift: the lowest of the words' bits that name a row's bucket.
        buckets: how many there are, a power of two.
        nbytes: what all buffers may take together; as little as a row for each in any case.
    """

    def __init__(
        self, file: SpillFile, errands: Errands, layout: Layout, shift: int, buckets: int, nbytes: int
    ) -> None:
        self._file = file
        self._errands = errands
        self._width = layout.width
        self._shift = shift
        spare = max(2, buckets // _SPARE)
        self._room = max(1, nbytes // ((buckets + spare) * layout.width))
        # Whole pieces of the alignment, in memory and in the file.
        self._room -= self._room % ALIGN if self._room > ALIGN else 0
        self._slots = own_pages((buckets + spare) * self._room * layout.width)
        # Of every column: the bytes of a row, where its slots begin, and these.
        self._widths = layout.widths
        self._starts = (np.cumsum(layout.widths) - layout.widths) * ((buckets + spare) * self._room)
        self._columns = np.split(self._slots, self._starts[1:])
        # The first row of each bucket's slot, and how many are in it.
        self._first = np.arange(buckets, dtype=np.int64) * self._room
        self._filled = np.zeros(buckets, np.int64)
        self._free = [number * self._room for number in range(buckets, buckets + spare)]
        # Buckets, with the first and the number of their rows: those that are full, and those that are written.
        self._at_once = max(1, spare // _GROUPS)
        self._full: _Filled = []
        self._writing: deque[tuple[_Filled, Written]] = deque()
        self._chunks = [Places(file) for _ in range(buckets)]

    @property
    def nbytes(self) -> int:
        """What the buffers take."""
        return self._slots.nbytes

    def add(self, words: Words, fields: list[Bytes]) -> None:
        """More rows, as ``Layout.fields`` gives them."""
        places = np.empty(len(words), np.int64)
        columns = [each for each in zip(fields, self._widths.tolist(), self._columns) if each[1]]
        start = 0
        while start < len(words):
            count = place_rows(words[start:], self._shift, self._first, self._filled, self._room, places)
            for values, width, slots in columns if count else ():
                scatter_rows(values[start * width : (start + count) * width], places[:count], slots)
            start += count
            if start < len(words):
                self._write((int(words[start]) >> self._shift) & (len(self._first) - 1))

    def finish(self) -> list[Places]:
        """Write what is left; where everything is, by bucket."""
        left = np.flatnonzero(self._filled)
        self._full += zip(left.tolist(), self._first[left].tolist(), self._filled[left].tolist())
        if self._full:
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
        # A row of this for every piece.
        starts = self._starts + np.multiply.outer(first, self._widths)
        stops = starts + np.multiply.outer(counts, self._widths)
        self._writing.append((full, Written(self._file, self._errands, self._slots, starts, stops)))

    def _written(self) -> None:
        filled, written = self._writing[0]
        written.result()
        self._writing.popleft()
        for (bucket, first, rows), offset, checksum in zip(
            filled, written.offsets.tolist(), written.checksums.tolist()
        ):
            self._chunks[bucket].append(Place(offset, rows * self._width, rows, checksum, 0))
            self._free.append(first)
