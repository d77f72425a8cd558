"""Which rows are in a shuffle buffer at some step, found by looking back over the picks before it."""

import numpy as np
from numpy.typing import NDArray

from forebay._native import keep_last
from forebay.block import Indices
from forebay.run.slot_table import SlotTable
from forebay.run.spill_room import SpillStore
from forebay.run.steps import Steps

# Picks that are looked at in one go.
_AT_ONCE = 1 << 18


class LookBack:
    """Of the rows from `first` to before `end`, those that are in the buffer when `end` - 1 was the last to come in.

    One bit is kept for each row that is looked at, on disk if they take up more than `room` bytes. While they are found
    there is one for each slot too; if that is more than there is room for, the picks are looked at several times.
    """

    def __init__(
        self, steps: Steps, first: int, end: int, store: SpillStore, room: int, at_once: int = _AT_ONCE
    ) -> None:
        self._steps = steps
        self._store = store
        self._room = max(room, 1)
        self._at_once = at_once
        self._end = end
        self._begin = first
        # By chunk of rows, of which the last rows are the first.
        self._bits: dict[int, NDArray[np.uint8]] = {}
        self._table: SlotTable | None = None
        self._chunks = 0  # How many were looked at.
        slots = min(steps.size, end)
        for low in range(0, slots, 8 * self._room):
            self._find(low, min(low + 8 * self._room, slots))

    @property
    def first(self) -> int:
        """The lowest of these rows, or one before it."""
        return max(self._end - self._chunks * self._at_once, self._begin)

    @property
    def nbytes(self) -> int:
        """What is in memory."""
        return sum(map(len, self._bits.values()))

    def between(self, low: int, high: int) -> tuple[Indices, Indices]:
        """Slots and numbers of those from `low` to before `high`, by number."""
        kept = [np.empty(0, np.int64)]
        for chunk in range((self._end - low - 1) // self._at_once, (self._end - high) // self._at_once - 1, -1):
            start, stop = self._rows_of(chunk)
            begin = max(low, start)
            bits = np.unpackbits(self._chunk(chunk), bitorder="little")
            kept.append(np.flatnonzero(bits[begin - start : min(high, stop) - start]) + begin)
        rows = np.concatenate(kept)
        return self._steps.entered(low, high)[rows - low], rows

    def close(self) -> None:
        """Free the disk space."""
        if self._table is not None:
            self._table.close()

    def _rows_of(self, chunk: int) -> tuple[int, int]:
        stop = self._end - chunk * self._at_once
        return max(stop - self._at_once, self._begin), stop

    def _find(self, low: int, high: int) -> None:
        """Those that are in the slots from `low` to before `high`."""
        seen = np.zeros(-(-(high - low) // 8), np.uint8)
        left, chunk = high - low, 0
        while left and self._rows_of(chunk)[1] > self._begin:
            start, stop = self._rows_of(chunk)
            bits = self._chunk(chunk)
            found = keep_last(seen, low, self._steps.entered(start, stop), bits)
            if found or chunk == self._chunks:
                self._keep(chunk, bits)
            left -= found
            chunk += 1

    def _chunk(self, chunk: int) -> NDArray[np.uint8]:
        start, stop = self._rows_of(chunk)
        size = -(-(stop - start) // 8)
        if chunk >= self._chunks:
            return np.zeros(size, np.uint8)
        if self._table is None:
            return self._bits[chunk]
        return np.ascontiguousarray(self._table.take(np.array([chunk]))[0, :size])

    def _keep(self, chunk: int, bits: NDArray[np.uint8]) -> None:
        self._bits[chunk] = bits
        self._chunks = max(self._chunks, chunk + 1)
        if self._table is None and self.nbytes > self._room:
            self._table = SlotTable(self._store, self._at_once // 8)
        if self._table is not None:
            for known, some in self._bits.items():
                record = self._table.blank(1)
                record[0, : len(some)] = some
                self._table.put(np.array([known]), record)
            self._bits.clear()
