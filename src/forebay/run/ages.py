"""How old the oldest row of a shuffle buffer is, known without looking at all of them."""

import numpy as np

from forebay.block import Indices


class Ages:
    """Counts the rows in a buffer by their numbers, `width` of these together."""

    def __init__(self, width: int) -> None:
        self._width = max(width, 1)
        self._low = 0  # The first group that is counted ...
        self._counts = np.zeros(0, np.int64)  # ... and how many rows of each are there.

    def add(self, rows: Indices) -> None:
        """Rows that come in."""
        groups = rows // self._width
        if not len(self._counts):
            self._low = int(groups.min())
        missing = int(groups.max()) + 1 - self._low - len(self._counts)
        if missing > 0:
            self._counts = np.concatenate([self._counts, np.zeros(missing, np.int64)])
        self._counts += np.bincount(groups - self._low, minlength=len(self._counts))

    def remove(self, rows: Indices) -> None:
        """Rows that leave."""
        self._counts -= np.bincount(rows // self._width - self._low, minlength=len(self._counts))
        if len(self._counts) and not self._counts[0]:
            gone = int(np.argmax(self._counts > 0)) if self._counts.any() else len(self._counts)
            self._low += gone
            self._counts = self._counts[gone:].copy()

    @property
    def oldest(self) -> int:
        """No row has a lower number; one has it or one that is higher by less than the width."""
        return self._low * self._width
