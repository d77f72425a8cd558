"""Rows of one size, scattered to disk by random words: in pieces that have some rows of a bucket, column by column."""

from collections import deque

import numpy as np

from forebay._native import Errands, place_rows, scatter_rows
from forebay.block import Indices
from forebay.block.aligned import ALIGN
from forebay.block.pages import own_pages
from forebay.run.layout import Layout, Words
from forebay.run.pieces import Written
from forebay.run.places import Place, Places
from forebay.run.spill import Bytes, SpillFile

# Buckets beside those that are being filled, for what is on its way to the disk.
_SPARE = 8


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
        self._free = np.arange(buckets, buckets + spare, dtype=np.int64) * self._room
        # What is full: buckets, with the first and the number of their rows.
        self._full = np.empty((spare, 3), np.int64)
        self._writing: deque[tuple[Indices, Written]] = deque()
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
            count, full = place_rows(
                words[start:],
                self._shift,
                self._room,
                self._first,
                self._filled,
                self._free,
                self._full.reshape(-1),
                places,
            )
            for values, width, slots in columns if count else ():
                scatter_rows(values[start * width : (start + count) * width], places[:count], slots)
            start += count
            if full:
                self._free = self._free[:-full]
                self._hand_over(self._full[:full].copy())
            while self._writing and ((not len(self._free) and start < len(words)) or self._writing[0][1].done):
                self._written()

    def finish(self) -> list[Places]:
        """Write what is left; where everything is, by bucket."""
        left = np.flatnonzero(self._filled)
        if len(left):
            self._hand_over(np.stack([left, self._first[left], self._filled[left]], axis=1))
        while self._writing:
            self._written()
        return self._chunks

    def _hand_over(self, full: Indices) -> None:
        # A row of this for every piece.
        starts = self._starts + np.multiply.outer(full[:, 1], self._widths)
        stops = starts + np.multiply.outer(full[:, 2], self._widths)
        self._writing.append((full, Written(self._file, self._errands, self._slots, starts, stops)))

    def _written(self) -> None:
        full, written = self._writing[0]
        written.result()
        self._writing.popleft()
        for (bucket, _, rows), offset, checksum in zip(
            full.tolist(), written.offsets.tolist(), written.checksums.tolist()
        ):
            self._chunks[bucket].append(Place(offset, rows * self._width, rows, checksum, 0))
        self._free = np.concatenate([self._free, full[:, 1]])
