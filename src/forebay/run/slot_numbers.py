"""A number for every slot of a shuffle buffer, in memory or on disk."""

import numpy as np

from forebay._native import drain, exchange
from forebay.block import Indices
from forebay.run.slot_table import SlotTable, record_bytes
from forebay.run.spill_room import SpillStore

NUMBER = 8
"""Bytes of one in memory."""
# Those that are written in one go at first.
_AT_ONCE = 1 << 16


class SlotNumbers:
    """At first every slot has its own number.

    On disk, a group of steps reads the numbers of the slots that it touches, works on these, and writes them back.

    Args:
        live: how many slots there are.
        store: where to keep the numbers on disk; None to have them in memory.
    """

    def __init__(self, live: int, store: SpillStore | None = None) -> None:
        self.live = live
        self._memory: Indices = np.arange(0 if store else live, dtype=np.int64)
        self._table = SlotTable(store, NUMBER) if store else None
        for start in range(0, live if store else 0, _AT_ONCE):
            slots = np.arange(start, min(start + _AT_ONCE, live))
            self.put(slots, slots)

    @staticmethod
    def spilled(live: int) -> int:
        """What so many numbers take up on disk."""
        return live * record_bytes(NUMBER)

    @property
    def nbytes(self) -> int:
        """What is in memory."""
        return self._memory.nbytes

    def get(self, slots: Indices) -> Indices:
        """The numbers of these slots."""
        if self._table is None or not len(slots):
            return self._memory[slots]
        return np.ascontiguousarray(self._table.take(slots)[:, :NUMBER]).view(np.int64)[:, 0]

    def put(self, slots: Indices, numbers: Indices) -> None:
        """Give these slots, of which none is named twice, other numbers."""
        if self._table is None:
            self._memory[slots] = numbers
        elif len(slots):
            records = self._table.blank(len(slots))
            records[:, :NUMBER] = np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, NUMBER)
            self._table.put(slots, records)

    def exchange(self, slots: Indices, incoming: Indices) -> Indices:
        """For each slot in turn: take its number out and put the incoming one there."""
        out = np.empty(len(slots), np.int64)
        if self._table is None:
            exchange(self._memory, slots, incoming, out)
        else:
            touched, places = np.unique(slots, return_inverse=True)
            numbers = self.get(touched)
            exchange(numbers, places, incoming, out)
            self.put(touched, numbers)
        return out

    def drain(self, slots: Indices) -> Indices:
        """For each slot in turn: take its number out and put that of the last slot there, which is then gone."""
        out = np.empty(len(slots), np.int64)
        left = self.live - len(slots)
        if self._table is None:
            drain(self._memory, slots, out)
            self._memory = self._memory[:left]
        else:
            low, places = np.unique(slots[slots < left], return_inverse=True)
            # The last slots are behind one another among those that are touched, as they are among all.
            numbers = self.get(np.concatenate([low, np.arange(left, self.live)]))
            within = slots - (left - len(low))
            within[slots < left] = places
            drain(numbers, within, out)
            self.put(low, numbers[: len(low)])
        self.live = left
        return out

    def close(self) -> None:
        """Free the disk space."""
        if self._table is not None:
            self._table.close()
