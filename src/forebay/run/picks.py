"""Which row leaves a shuffle buffer at each step, worked out on row numbers alone."""

import numpy as np

from forebay.block import Indices
from forebay.run.look_back import LookBack
from forebay.run.slot_numbers import NUMBER, SlotNumbers
from forebay.run.spill_room import SpillStore
from forebay.run.steps import Shift, Steps

# Numbers that are found in one go.
_AT_ONCE = 1 << 18
# Numbers that take up more than such a part of the budget go to disk.
_PART = 4
# A group of steps takes up about so many bytes for each, and may take up such a part of the budget.
_STEP = 64
_GROUP_PART = 8
_LEAST_GROUP = 1 << 12


def fit(slots: int, budget: int) -> bool:
    """Whether the numbers of so many slots take up a modest part of the budget."""
    return NUMBER * slots <= budget // _PART


def group(budget: int) -> int:
    """Steps that are worth going at once where numbers are on disk: the more, the nearer those that they touch lie."""
    return min(max(budget // (_GROUP_PART * _STEP), _LEAST_GROUP), _AT_ONCE)


def look_back_part(budget: int) -> int:
    """Bytes for looking back, twice."""
    return budget // (2 * _PART)


class Picks:
    """The numbers of the rows that come out, from any position on.

    Args:
        size: slots of the buffer.
        seed: of the picks, with the epoch.
        epoch: the round that this is.
        budget: bytes that the pipeline may hold.
        store: where numbers go of which that holds too few.
    """

    def __init__(self, size: int, seed: int, epoch: int, budget: int, store: SpillStore) -> None:
        self._steps = Steps(size, seed, epoch)
        self._budget = budget
        self._store = store
        self._numbers = SlotNumbers(0)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._numbers.nbytes

    @property
    def position(self) -> int:
        """The number of the next step."""
        return self._steps.position

    @property
    def live(self) -> int:
        """How many slots have a row."""
        return self._numbers.live

    @property
    def shift(self) -> Shift:
        """How far rows have moved since ``seek``."""
        return self._steps.shift

    def seek(self, position: int, total: int) -> None:
        """Go to a position among `total` rows."""
        self._numbers.close()
        filled = min(self._steps.size, total)
        full = min(position, total - filled)
        self._steps.seek(full)
        self._numbers = SlotNumbers(filled, None if fit(filled, self._budget) else self._store)
        if full:
            self._look_back(full + filled)
        at_once = group(self._budget)
        for start in range(full, min(position, total), at_once):
            self.drain(min(at_once, min(position, total) - start))
        self._steps.seek(self._steps.position)

    def exchange(self, count: int) -> Indices:
        """The rows of the next `count` steps, while as many new ones come in."""
        come = self._steps.position + self._steps.size
        out = self._numbers.exchange(self._steps.full(count), np.arange(come, come + count, dtype=np.int64))
        self._steps.advance(out)
        return out

    def drain(self, count: int) -> Indices:
        """The same when nothing comes in any more and the buffer shrinks."""
        out = self._numbers.drain(self._steps.shrinking(count, self.live))
        self._steps.advance(out)
        return out

    def close(self) -> None:
        """Free the disk space."""
        self._numbers.close()

    def _look_back(self, end: int) -> None:
        found = LookBack(self._steps, 0, end, self._store, look_back_part(self._budget))
        for low in range(found.first, end, _AT_ONCE):
            self._numbers.put(*found.between(low, min(low + _AT_ONCE, end)))
        found.close()
