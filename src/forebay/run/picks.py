"""Which row leaves a shuffle buffer at each step, worked out on row numbers alone.

A buffer of n slots is filled with the first n rows. Each step picks a slot at random, gives out the row in it,
and puts the next row there; when no row is left, the last slot's row moves into the gap. The pick of step t is
a keyed random number, not a draw from a stream. So what a slot holds at step t follows from the last step that
picked it: the whole buffer at any position is found by looking back about n * ln(n) picks, however far from
the start that is. That is why a shuffled position can be saved as one number.
"""

import numpy as np

from forebay._native import drain, exchange
from forebay.block import Indices
from forebay.run.keys import key_of, uniforms

# How far rows move is measured on one in so many.
_SAMPLED = 16


class Picks:
    """The numbers of the rows that come out, from any position on."""

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        self._key = key_of(seed, epoch, "shuffle")
        self._size = size
        self.position = 0
        self.buffer: Indices = np.empty(0, np.int64)
        """The row number in each slot; as long as rows are left to come, slots are all filled."""
        self._distance = self._looked_at = 0

    @property
    def moved(self) -> float | None:
        """By how many places rows have moved on average since ``seek``; None before any has."""
        return self._distance / self._looked_at if self._looked_at else None

    def _measure(self, out: Indices, begin: int) -> None:
        some = out[::_SAMPLED]
        self._distance += int(np.abs(some - np.arange(begin, begin + len(out), _SAMPLED)).sum())
        self._looked_at += len(some)

    def seek(self, position: int, total: int | None) -> None:
        """Go to a position. `total` is the number of rows; None if it is not known but at least position + size."""
        filled = self._size if total is None else min(self._size, total)
        last_full = position if total is None else min(position, total - filled)
        self.position = last_full
        self.buffer = self._look_back(last_full, filled)
        if total is not None and position > last_full:
            self.drain(min(position, total) - last_full)
        self._distance = self._looked_at = 0

    def exchange(self, count: int) -> tuple[Indices, Indices]:
        """The rows of the next `count` steps and the slots they leave, while as many new ones come in."""
        begin = self.position
        slots = self._slots(begin, count, self._size)
        incoming = np.arange(begin + self._size, begin + self._size + count, dtype=np.int64)
        out = np.empty(count, np.int64)
        exchange(self.buffer, slots, incoming, out)
        self._measure(out, begin)
        self.position += count
        return out, slots

    def drain(self, count: int) -> tuple[Indices, Indices]:
        """The same when nothing comes in any more and the buffer shrinks."""
        live = len(self.buffer)
        sizes = np.arange(live, live - count, -1)
        slots = (uniforms(self._key, self.position, count) * sizes).astype(np.int64)
        out = np.empty(count, np.int64)
        drain(self.buffer, slots, out)
        self.buffer = self.buffer[: live - count]
        self._measure(out, self.position)
        self.position += count
        return out, slots

    def _slots(self, start: int, count: int, size: int) -> Indices:
        return (uniforms(self._key, start, count) * size).astype(np.int64)

    def _look_back(self, position: int, filled: int) -> Indices:
        buffer = np.full(filled, -1, np.int64)
        end = position
        while end > 0 and (buffer < 0).any():
            begin = max(0, end - max(filled, 4096))
            slots = self._slots(begin, end - begin, self._size)
            # Later picks of a slot were seen in an earlier round of this loop, and within one round the last
            # pick counts: assignment by index keeps the last one.
            first_seen = np.flatnonzero(buffer[slots] < 0)
            buffer[slots[first_seen]] = first_seen + (begin + self._size)
            end = begin
        untouched = np.flatnonzero(buffer < 0)
        buffer[untouched] = untouched
        return buffer
