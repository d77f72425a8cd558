"""Rows of one size, scattered to disk by random words: in pieces that have some rows of a bucket, column by column."""

import mmap
from collections.abc import Callable

import numpy as np

from forebay._native import Errands, Scattering
from forebay.block.aligned import ALIGN
from forebay.block.pages import own_pages
from forebay.run.layout import Layout, Words
from forebay.run.places import Places
from forebay.run.spill import Bytes, SpillFile

# Buckets beside those that are being filled, for what is on its way to the disk.
_SPARE = 8
# A slot that is at least that large takes whole pages, in memory and in the file.
_WHOLE_PAGES = 1 << 15
# So many pieces at once are on their way to a disk, or from it, that nothing is kept of in memory.
_AT_ONCE = 8
# Of so many pieces at a time it is noted where they are.
_NOTED = 1 << 12


def slot_bytes(width: int, buckets: int, nbytes: int) -> int:
    """What a slot for rows of that width takes, in memory and in the file, if all may take so many bytes together."""
    each = nbytes // _slots(buckets)
    return max(each // _unit(each) * _unit(each), -(-width // ALIGN) * ALIGN)


def _slots(buckets: int) -> int:
    return buckets + max(2, buckets // _SPARE)


def _unit(slot: int) -> int:
    return mmap.PAGESIZE if slot >= _WHOLE_PAGES else ALIGN


class Scatter:
    """Collects rows in a slot for every bucket, column by column, and has them written when that is full.

    Args:
        file: what rows are appended to. Nobody else may do so meanwhile.
        lists: a file for long lists of where pieces are.
        errands: write what is full while the next rows are collected.
        layout: of the rows.
        shift: the lowest of the words' bits that name a row's bucket.
        buckets: how many there are, a power of two.
        nbytes: what all slots may take together; as little as a row for each in any case.
    """

    def __init__(
        self, file: SpillFile, lists: SpillFile, errands: Errands, layout: Layout, shift: int, buckets: int, nbytes: int
    ) -> None:
        self._file = file
        self._errands = errands
        self._width = layout.width
        slots = _slots(buckets)
        unit = _unit(nbytes // slots)
        stride = slot_bytes(layout.width, buckets, nbytes)
        self.nbytes = slots * stride
        """What the slots take."""
        self._far = False
        self._before = len(file)
        begin = -(-self._before // unit) * unit
        self._scattering = Scattering(
            errands,
            file.fileno,
            file.far,
            begin,
            layout.widths,
            shift,
            buckets,
            stride,
            own_pages(self.nbytes, huge=True),
        )
        self._chunks = [Places(lists) for _ in range(buckets)]

    def add(self, words: Words, fields: list[Bytes]) -> None:
        """More rows, as ``Layout.fields`` gives them."""
        end = self._scattering.end_with(len(words))
        self._file.grow(end)
        if end > self._file.far and not self._far:
            self._far = True
            self._errands.allow(_AT_ONCE)
            self._scattering.begin_far(self._file.open_far())
        self._write(lambda: self._scattering.add(fields))
        if self._scattering.untaken >= _NOTED:
            self._note()

    def finish(self) -> list[Places]:
        """Write what is left; where everything is, by bucket."""
        self._file.grow(self._scattering.end_at_last())
        self._write(self._scattering.finish)
        self._file.settle(self._scattering.end_with(0))
        self._note()
        return self._chunks

    def _write(self, work: Callable[[], None]) -> None:
        with self._file.writing(len(self._file) - self._before, self._before):
            try:
                work()
            except OSError:
                # Nobody may write behind what is given up.
                self._errands.stop()
                raise

    def _note(self) -> None:
        """Where pieces are that have been written, each in the list of its bucket."""
        found = np.empty((self._scattering.untaken, 4), np.int64)
        self._scattering.take(found.reshape(-1))
        found = found[np.argsort(found[:, 0], kind="stable")]
        buckets, offsets, rows, checksums = found.T
        places = np.stack([offsets, rows * self._width, rows, checksums, np.zeros_like(rows)], axis=1)
        ends = np.searchsorted(buckets, np.arange(len(self._chunks)), side="right").tolist()
        for chunks, start, stop in zip(self._chunks, [0, *ends], ends):
            if start < stop:
                chunks.extend(places[start:stop])
