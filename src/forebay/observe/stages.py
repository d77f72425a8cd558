"""What the buffers of running Forebay datasets hold."""

import time
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import Block
from forebay.ledger import ELSEWHERE
from forebay.observe.verdict import StageGrowth
from forebay.run.observers import Observed

_REMEMBERED = 256  # Steps; datasets that are written anew in a loop must not add up here.


class Stages:
    """Follows iterators for as long as they live, without keeping them alive. `held` is the sum over all buffers."""

    def __init__(self, interval: float = 0.02) -> None:
        self._running: weakref.WeakSet[Observed] = weakref.WeakSet()
        self._found: dict[str, StageGrowth] = {}
        self._interval = interval
        self._next_look = 0.0
        self._handed: dict[str, tuple[weakref.ref[Observed], list[weakref.ref[NDArray[Any]]]]] = {}
        self.workers = False
        """Whether worker processes have been seen, with which memory is shared."""
        self.held = 0
        self.budget = 0
        """The most that datasets running at the same time may hold together."""

    def block(self, iterator: Observed) -> bool:
        """A block has come out of it; whether it is the first that was seen."""
        new = iterator not in self._running
        if new:
            self._running.add(iterator)
        if new or time.monotonic() >= self._next_look:
            self.look()
        return new

    def handed(self, iterator: Observed, block: Block) -> None:
        """These rows are being handed out. Elements that are cut out of an array keep all of it."""
        whole = [column.buffers()[0] for column in block.columns if column.rows_alias]
        where = iterator.where
        if where not in self._handed and len(self._handed) >= _REMEMBERED:
            del self._handed[next(iter(self._handed))]
        self._handed[where] = weakref.ref(iterator), [weakref.ref(_root(each)) for each in whole]

    def _in_hand(self) -> int:
        """Blocks that are kept by the last element of an iterator that has ended: in a loop's variable, until the next.

        They differ in size, and each epoch leaves one.
        """
        arrays = [
            array()
            for iterator, those in list(self._handed.values())
            if (one := iterator()) is None or one not in self._running
            for array in those
        ]
        return sum(array.nbytes for array in arrays if array is not None)

    def ended(self, iterator: Observed) -> None:
        """It will be closed now: look a last time at what it holds."""
        self.look()
        self._running.discard(iterator)
        self.held = sum(self._look_at(each) for each in list(self._running))

    def look(self) -> None:
        """See what is held now."""
        # Looking costs some µs per step of the dataset, so it waits for its turn.
        running = list(self._running)
        self.held = sum(self._look_at(each) for each in running)
        self.budget = max(self.budget, sum(ledger.budget for ledger in {each.ledger for each in running}))
        self._next_look = time.monotonic() + self._interval

    def leased(self) -> int:
        """What datasets hold in this process by their ledgers: every row under way, also beside the buffers.

        More than there is, since buffers ask before they grow; but up to date at any moment. After their end it is the
        block that the last element was cut out of, if that is still there.
        """
        here = 0
        for ledger in {each.ledger for each in list(self._running)}:
            for owner, held in ledger.holders().items():
                if owner.endswith(ELSEWHERE):
                    self.workers = True
                else:
                    here += held
        return max(self.held, here) + self._in_hand()

    def _look_at(self, iterator: Observed) -> int:
        total = 0
        for stage in iterator.stats():
            if stage.held == 0 and stage.name not in self._found:
                continue
            total += stage.held
            before = self._found.get(stage.name)
            if before is None:
                if len(self._found) >= _REMEMBERED:
                    del self._found[next(iter(self._found))]
                before = StageGrowth(stage.name, 0, 0, 0.0)
            self._found[stage.name] = StageGrowth(
                stage.name, stage.held, max(before.peak, stage.held), max(before.full, stage.full)
            )
        return total

    @property
    def peak(self) -> int:
        """The most that all of them held, if they did so at the same time."""
        return sum(stage.peak for stage in list(self._found.values()))

    def growth(self) -> tuple[StageGrowth, ...]:
        """Steps that held something, the largest first."""
        return tuple(sorted(self._found.values(), key=lambda stage: -stage.peak))


def _root(array: NDArray[Any]) -> NDArray[Any]:
    """The array that views of it lead to."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
