"""What is in use, read as often as that costs next to nothing."""

import time
from collections import deque
from collections.abc import Callable

from forebay.observe.heap import Usage

# Times what a reading takes, before the next: 2 % of a processor. It takes some µs, but 20 ms where a heap has a
# hundred thousand holes, each of which is looked at.
_REST = 50
# The same between epochs, where readings are worth more, since buffers are gone; those of less than a millisecond are
# taken in any case.
_REST_BETWEEN = 20
_QUICK = 1e-3
# Seconds of readings at every step before that: of a run that lasts no longer, each one is needed.
_FREE = 0.01


class Use:
    """The last reading.

    Args:
        read: tells usage now.
        leased: what running datasets may be holding of it.
    """

    def __init__(self, read: Callable[[], Usage], leased: Callable[[], int]) -> None:
        self._read = read
        self._leased = leased
        self._last: deque[float] = deque(maxlen=8)
        self._ended = self._took = self._spent = 0.0
        self.live = 0
        """In use, but for what running datasets hold."""
        self.kept = 0
        """Freed, and kept by allocators."""
        self._read_now()
        self._read_now()

    def look(self, between: bool = False) -> None:
        """Read again if it is time: sooner between two epochs."""
        if between and self._took < _QUICK:
            due = 0.0
        else:
            due = self._ended + (_REST_BETWEEN if between else _REST) * self._took
        if self._spent <= _FREE or time.perf_counter() >= due:
            self._read_now()

    def _read_now(self) -> None:
        began = time.perf_counter()
        usage = self._read()
        self.live, self.kept = usage.live - self._leased(), usage.kept
        self._ended = time.perf_counter()
        self._last.append(self._ended - began)
        # One that had to wait for a processor tells nothing of the next.
        self._took = min(self._last)
        self._spent += self._took
