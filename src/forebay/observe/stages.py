"""What the buffers of running Forebay datasets hold."""

import time
import weakref

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
