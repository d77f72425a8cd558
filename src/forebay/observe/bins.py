"""A series of any length in a fixed amount of memory: what watches memory must not grow."""

from array import array
from dataclasses import dataclass

import numpy as np

from forebay.observe.trend import Floats


@dataclass(frozen=True, slots=True)
class Curve:
    """A series as far as it is remembered; x is the number of the reading in the middle of each bin."""

    x: Floats
    low: Floats
    high: Floats

    def __len__(self) -> int:
        return len(self.x)

    def between(self, begin: float, end: float = np.inf) -> "Curve":
        """The bins whose middles lie there."""
        kept = (self.x >= begin) & (self.x < end)
        return Curve(self.x[kept], self.low[kept], self.high[kept])


class Bins:
    """Lowest and highest of every so many readings. When all bins are full, pairs become one and take twice as many.

    >>> bins = Bins(capacity=4)
    >>> for reading in range(8):
    ...     bins.add(reading)
    >>> curve = bins.curve()
    >>> curve.low.tolist(), curve.high.tolist(), curve.x.tolist()
    ([0.0, 2.0, 4.0, 6.0], [1.0, 3.0, 5.0, 7.0], [0.5, 2.5, 4.5, 6.5])
    """

    def __init__(self, capacity: int = 512) -> None:
        self._lows = array("q", bytes(8 * capacity))
        self._highs = array("q", bytes(8 * capacity))
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.count = 0  # Readings.
        self._stride = 1  # Readings per bin.
        self._full = 0  # Bins.
        self._inside = 0  # Readings in the bin that is being filled.
        self._low = self._high = 0

    def add(self, reading: int) -> None:
        """One more."""
        self.add_range(reading, reading)

    def add_range(self, low: int, high: int) -> None:
        """One more, which was itself a range."""
        if self._inside == 0:
            self._low, self._high = low, high
        else:
            if low < self._low:
                self._low = low
            if high > self._high:
                self._high = high
        self.count += 1
        self._inside += 1
        if self._inside >= self._stride:
            if self._full == len(self._lows):
                self._halve()
                return
            self._lows[self._full] = self._low
            self._highs[self._full] = self._high
            self._full += 1
            self._inside = 0

    def _halve(self) -> None:
        """Make room; the bin just completed goes on as the first half of one that is twice as long."""
        self._full //= 2
        for i in range(self._full):
            self._lows[i] = min(self._lows[2 * i], self._lows[2 * i + 1])
            self._highs[i] = max(self._highs[2 * i], self._highs[2 * i + 1])
        self._stride *= 2

    def curve(self) -> Curve:
        """All complete bins."""
        full = self._full
        middles = (np.arange(full, dtype=np.float64) + 0.5) * self._stride - 0.5
        return Curve(middles, np.array(self._lows[:full], np.float64), np.array(self._highs[:full], np.float64))
