"""Memory that Arrow's allocator keeps after it was freed, given back to the system."""

import threading

from forebay.storage.arrow import arrow

# What Arrow's threads keep, each in a heap of its own that nobody else can empty, was up to 100 MiB: budgets from here
# on have room for that.
_ROOM_FOR_THREADS = 512 << 20
# To have the pages back takes time, so they are given back after so many bytes, or this part of the budget.
_LEAST, _PART = 1 << 20, 64


class _Thread(threading.local):
    decoded = 0
    """Bytes, since it has last given something back."""


_thread = _Thread()


class ArrowMemory:
    """What is decoded within a budget by one reader: by the thread that asks, and given back as it goes on.

    Arrow's own count of its bytes says nothing about that: with 10 MiB in use, its allocator (mimalloc) had 90, and
    more with every row group. It gives back only what the thread that asks has allocated.
    """

    def __init__(self, budget: int | None = None) -> None:
        self.threads = budget is None or budget >= _ROOM_FOR_THREADS
        """Whether columns may be decoded side by side."""
        self._often = None if budget is None else max(_LEAST, budget // _PART)

    def count(self, nbytes: int) -> None:
        """So many bytes have been decoded."""
        _thread.decoded += nbytes
        if self._often is not None and _thread.decoded >= self._often:
            self.give_back()

    def give_back(self) -> None:
        """All that is free by now."""
        if self._often is not None:
            _thread.decoded = 0
            arrow().default_memory_pool().release_unused()


UNBOUNDED = ArrowMemory()
"""For what is decoded without a budget."""
