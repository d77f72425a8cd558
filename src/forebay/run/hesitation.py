"""When work is worth handing to threads."""

from forebay._native import queued_seconds

# Handing it over and back takes some 0.1 ms of processor time, most of it with the interpreter's lock in hand.
WORTH = 5e-4
"""Seconds below which that does not pay."""
# Less than this in all shows nothing: to make a dataset and open its file takes longer than to read on in it.
_ENOUGH = 2e-2
# What one that takes longer counts as: a busy machine may have been kept from it, which says nothing of the others. Not
# for so long, though.
_MOST, _SURELY = 5e-3, 0.2


class Hesitation:
    """Work that one thread does where it is asked for, until it turns out to take long.

    The first piece does not count, for which modules are loaded, nor time in which others had the processor.
    """

    def __init__(self) -> None:
        self._pieces = -1
        self._seconds = 0.0
        self._queued = 0.0  # The thread's, when that was last looked at.
        self.over = False
        """Whether it has turned out so."""

    def observe(self, seconds: float) -> None:
        """A piece has taken so long."""
        self._pieces += 1
        if self._pieces == 0:
            self._queued = queued_seconds()
            return
        self._seconds += seconds if seconds > _SURELY else min(seconds, _MOST)
        if self._seconds > max(_ENOUGH, WORTH * self._pieces):
            # Looked at only now, since it takes a few system calls.
            before, self._queued = self._queued, queued_seconds()
            self._seconds = max(self._seconds - (self._queued - before), 0.0)
            self.over = self._seconds > max(_ENOUGH, WORTH * self._pieces)

    def __str__(self) -> str:
        return f"a block takes {1e3 * self._seconds / max(self._pieces, 1):.2g} ms"
