"""Memory that we and the allocator keep after it was freed, given back to the system."""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from forebay._native import clear_spare

# The allocator keeps about this much for good, and pages of less than we keep for ourselves while we run cost more to
# have back at the next epoch than they are worth.
WORTH_IT = 12 << 20


@functools.cache
def _malloc_trim() -> Callable[[int], Any] | None:
    # Where the C library is another one it is not to be found, and memory goes back in other ways.
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (OSError, TypeError):
        return None


def give_back(held: int) -> None:
    """After so many bytes were held and freed.

    glibc hands arrays of some MiB straight back at first. With each of these it learns to keep larger ones, up to
    32 MiB, in its heap, where one small object behind them is enough to hold them all.
    """
    clear_spare()
    if held >= WORTH_IT:
        trim = _malloc_trim()
        if trim is not None:
            trim(0)
