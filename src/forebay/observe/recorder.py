"""Readings per step and per epoch, whoever counts these."""

import threading
from collections.abc import Callable
from enum import IntEnum

from forebay.forks import tell_children
from forebay.observe.bins import Bins
from forebay.observe.judge import Readings, Series
from forebay.observe.use import Use

_MARKS = 256  # Ends of epochs to draw; statistics know all.


class Source(IntEnum):
    """Who says when a step or an epoch is over. A higher one takes over from a lower one, for good."""

    CLOCK = 0
    ITERATORS = 1
    USER = 2


class Recorder:
    """What has been read so far.

    Args:
        read: resident memory now.
        held: what buffers of running datasets hold.
        use: what is in use; None where that cannot be told.
        shared: what of the last reading of resident memory is shared with others.
    """

    def __init__(
        self,
        read: Callable[[], int],
        held: Callable[[], int],
        use: Use | None = None,
        shared: Callable[[], int] = lambda: 0,
    ) -> None:
        self._read = read
        self._shared = shared
        self._held = held
        self._use = use
        self._lock = threading.Lock()  # Iterators on several threads may take steps at once.
        self.memory, self._own, self._rest, self._live, self._other, self._common = (Bins() for _ in range(6))
        self._epoch_own, self._epoch_rest = Bins(), Bins()
        self._epoch_live, self._epoch_other, self._epoch_common = Bins(), Bins(), Bins()
        self.source = Source.CLOCK
        self._epoch_source = Source.CLOCK
        self.peak = self.own_peak = self.shared_peak = 0
        self.shared_before = 0
        self._clear()
        tell_children(self)

    def in_child(self) -> None:
        """Called by itself in a forked child."""
        self._lock = threading.Lock()

    def begin(self) -> int:
        """Take what there is now as where all growth begins; resident memory."""
        before = self.peak = self.own_peak = self._read()
        self.shared_before = self.shared_peak = self._shared()
        return before

    def _clear(self) -> None:
        for bins in (self.memory, self._own, self._rest, self._live, self._other, self._common):
            bins.clear()
        self._clear_epochs()
        self._begin_epoch()

    def _clear_epochs(self) -> None:
        for bins in (self._epoch_own, self._epoch_rest):
            bins.clear()
        for bins in (self._epoch_live, self._epoch_other, self._epoch_common):
            bins.clear()
        self.marks: list[int] = []
        self._first: int | None = None
        self._last = 0
        self._after = False  # Whether an epoch has ended and the next not begun: what is in use now stays from it.

    def _begin_epoch(self) -> None:
        self._low = self._rest_low = 1 << 62
        self._high = self._rest_high = 0

    def step(self, source: Source) -> None:
        """One step is over, or begins: take a reading."""
        if source < self.source:
            return
        with self._lock:
            if source > self.source:
                # What came before was counted in other steps, and is what happens before a loop anyway.
                self.source = source
                self._clear()
            now = self._read()
            shared = self._shared()
            # Where nobody tells what is in use, what is shared has to be judged with the rest.
            own = now if self._use is None else now - shared + self.shared_before
            rest = own - self._held()
            self.memory.add(now)
            self._own.add(own)
            self._rest.add(rest)
            self.peak, self.own_peak = max(self.peak, now), max(self.own_peak, own)
            self.shared_peak = max(self.shared_peak, shared)
            self._low, self._high = min(self._low, own), max(self._high, own)
            self._rest_low, self._rest_high = min(self._rest_low, rest), max(self._rest_high, rest)
            if self._use is not None:
                self._use.look()
                if self._after:
                    self._settle(self._use)
                self._live.add(self._use.live)
                self._other.add(now - shared - self._use.kept)
                self._common.add(shared)

    def epoch(self, source: Source) -> None:
        """All steps since the last such call, or the beginning, were one epoch. Nothing happens if there were none."""
        if source < self._epoch_source:
            return
        with self._lock:
            since = self.memory.count - self._last
            if source > self._epoch_source:
                self._epoch_source = source
                if since:
                    self._clear_epochs()
            if since == 0:
                return
            self._epoch_own.add_range(self._low, self._high)
            self._epoch_rest.add_range(self._rest_low, self._rest_high)
            self._begin_epoch()
            self._last = self.memory.count
            if self._first is None:
                self._first = self._last
            if len(self.marks) < _MARKS:
                self.marks.append(self._last)
            self._after = True
            if self._use is not None and source == Source.USER:
                self._use.look(between=True)
                self._settle(self._use)

    def settled(self) -> None:
        """What the epoch that ended last had in its buffers is gone."""
        with self._lock:
            if self._use is not None and self._after:
                self._use.look(between=True)
                self._settle(self._use)

    def _settle(self, use: Use) -> None:
        self._epoch_live.add(use.live)
        now = self._read()
        self._epoch_other.add(now - self._shared() - use.kept)
        self._epoch_common.add(self._shared())
        self._after = False

    @property
    def shared_growth(self) -> int:
        """How much more was shared, at the most, than in the beginning."""
        return self.shared_peak - self.shared_before

    @property
    def epochs(self) -> int:
        """How many have ended."""
        return self._epoch_own.count

    @property
    def steps_per_epoch(self) -> float:
        """On average."""
        return self._last / self.epochs if self.epochs else 0.0

    def readings(self) -> Readings:
        """All series so far."""
        with self._lock:
            memory, rest = self._series(self._own, self._epoch_own), self._series(self._rest, self._epoch_rest)
            if self._use is None:
                return Readings(memory, rest)
            if self._after:
                self._use.look(between=True)
                self._settle(self._use)
            live, other = self._series(self._live, self._epoch_live), self._series(self._other, self._epoch_other)
            return Readings(memory, rest, live, other, self._series(self._common, self._epoch_common))

    def _series(self, steps: Bins, epochs: Bins) -> Series:
        return Series(steps.curve(), epochs.curve(), self._first, self.steps_per_epoch)
