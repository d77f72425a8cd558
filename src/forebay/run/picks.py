"""Which row leaves a shuffle buffer at each step, worked out on row numbers alone.

A buffer of n slots is filled with the first n rows. Each step picks a slot at random, gives out the row in it,
and puts the next row there; when no row is left, the last slot's row moves into the gap. The pick of step t is
a keyed random number, not a draw from a stream. So what a slot holds at step t follows from the last step that
picked it: the whole buffer at any position is found by looking back about n * ln(n) picks, however far from
the start that is. That is why a shuffled position can be saved as one number.
"""

from collections.abc import Iterator

import numpy as np

from forebay._native import drain, exchange
from forebay.block import Indices
from forebay.run.keys import key_of, uniforms

# How far rows move is measured on one in so many.
_SAMPLED = 16
# Numbers that are looked at in one go: arrays as long as the buffer are as large as narrow rows are.
_AT_ONCE = 1 << 18


class Picks:
    """The numbers of the rows that come out, from any position on."""

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        self._key = key_of(seed, epoch, "shuffle")
        self._size = size
        self.position = 0
        self.buffer: Indices = np.empty(0, np.int64)
        """The row number in each slot; as long as rows are left to come, slots are all filled."""
        self._distance = self._looked_at = 0
        # The lowest row's number and the bits of a place, once the buffer's numbers have both in them.
        self._noted: tuple[int, int] | None = None

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
        self._noted = None
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
        """The same when nothing comes in any more and the buffer shrinks. After ``note_places``, places for slots."""
        live = len(self.buffer)
        sizes = np.arange(live, live - count, -1)
        slots = (uniforms(self._key, self.position, count) * sizes).astype(np.int64)
        out = np.empty(count, np.int64)
        drain(self.buffer, slots, out)
        self.buffer = self.buffer[: live - count]
        if self._noted is not None:
            base, bits = self._noted
            slots = out & ((1 << bits) - 1)
            out = (out >> bits) + base
        self._measure(out, self.position)
        self.position += count
        return out, slots

    def note_places(self) -> bool:
        """Have ``drain`` tell from now on in which slot each row is now: rows move, but not where they are kept.

        Row and slot share a number, since two arrays would take up twice the memory. False if they are too many for it.
        """
        if not len(self.buffer):
            return False
        base, bits = self.oldest, len(self.buffer).bit_length()
        if (int(self.buffer.max()) - base) >> (62 - bits):
            return False
        for start, part in self._parts(self.buffer):
            part -= base
            part <<= bits
            part |= np.arange(start, start + len(part))
        self._noted = (base, bits)
        return True

    def sort_rows(self) -> bool:
        """Have the buffer's rows in the order of their numbers, for ``between``. False as in ``note_places``."""
        if not self.note_places():
            return False
        self.buffer.sort()
        return True

    def between(self, low: int, high: int) -> tuple[Indices, Indices]:
        """Slots and numbers of the rows from `low` to before `high`, by number, after ``sort_rows``."""
        assert self._noted is not None
        base, bits = self._noted
        # Rows before the lowest or behind the highest may be asked for, and must not overflow.
        ends = [min(max(row - base, 0), 1 << (62 - bits)) << bits for row in (low, high)]
        begin, end = np.searchsorted(self.buffer, ends)
        some = self.buffer[begin:end]
        return some & ((1 << bits) - 1), (some >> bits) + base

    @property
    def sorted(self) -> bool:
        """Whether they are."""
        return self._noted is not None

    def unsort_rows(self) -> None:
        """Have every row's number in its slot again. Sorted in place, as there may be no room for another array."""
        assert self._noted is not None
        (base, bits), self._noted = self._noted, None
        row_bits = (int(self.buffer.max()) >> bits).bit_length()
        for _, part in self._parts(self.buffer):
            part[:] = (part >> bits) | ((part & ((1 << bits) - 1)) << row_bits)
        self.buffer.sort()
        for _, part in self._parts(self.buffer):
            part &= (1 << row_bits) - 1
            part += base

    @property
    def oldest(self) -> int:
        """The lowest row number in the buffer, which is not empty."""
        base, bits = self._noted or (0, 0)
        return (int(self.buffer.min()) >> bits) + base

    @staticmethod
    def _parts(buffer: Indices) -> Iterator[tuple[int, Indices]]:
        for start in range(0, len(buffer), _AT_ONCE):
            yield start, buffer[start : start + _AT_ONCE]

    def _slots(self, start: int, count: int, size: int) -> Indices:
        return (uniforms(self._key, start, count) * size).astype(np.int64)

    def _look_back(self, position: int, filled: int) -> Indices:
        buffer = np.full(filled, -1, np.int64)
        end = position
        while end > 0 and any((part < 0).any() for _, part in self._parts(buffer)):
            # Asking costs one pass over the buffer, so as many picks as it has slots are looked at in between.
            stop = max(0, end - max(filled, 4096))
            while end > stop:
                begin = max(stop, end - _AT_ONCE)
                slots = self._slots(begin, end - begin, self._size)
                # Later picks of a slot were seen in an earlier round of this loop, and within one round the last
                # pick counts: assignment by index keeps the last one.
                first_seen = np.flatnonzero(buffer[slots] < 0)
                buffer[slots[first_seen]] = first_seen + (begin + self._size)
                end = begin
        for start, part in self._parts(buffer):
            untouched = np.flatnonzero(part < 0)
            part[untouched] = untouched + start
        return buffer
