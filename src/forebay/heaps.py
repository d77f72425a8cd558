"""The heaps of the C library: how many there are, and what they, and we, keep of freed memory."""

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

from forebay._native import clear_spare

# The heaps keep about this much for good, as we do for the next epoch: pages of less cost more to have back than they
# are worth.
_WORTH_IT = 16 << 20
# If another epoch follows after so few seconds, this many: to have the pages back took a tenth of its time.
_BRIEF = 0.25
_WORTH_IT_OFTEN = 32 << 20

# Of glibc's mallopt().
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
# Where arrays are mapped one by one, those from this size on; and so much may stay free at the end of a heap.
_MAPPED = 1 << 20
_KEPT = 2 << 20


@functools.cache
def _of_c_library(name: str) -> Callable[..., Any] | None:
    # Where the C library is another one it is not to be found, and memory goes back in other ways.
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except (OSError, TypeError):
        return None


def give_back(held: int, epoch: float | None = None) -> None:
    """After so many bytes were held and freed. What we keep ourselves stays after an `epoch` of so many seconds."""
    if epoch is None:
        clear_spare()
    if held >= (_WORTH_IT_OFTEN if epoch is not None and epoch < _BRIEF else _WORTH_IT):
        _trim()


def limit_heaps(count: int) -> None:
    """Have no more than so many from now on, unless the user has said how many.

    glibc has eight for each processor. What was freed in one is of no use in the others, so that the results of many
    threads would take up several times the memory that they need.
    """
    _set({_ARENA_MAX: count}, "MALLOC_ARENA_MAX")


@functools.cache
def map_large_arrays() -> None:
    """Have freed arrays of a MiB and more go straight back to the system from now on, unless the user has said which.

    glibc does so at first. With each of these it learns to keep larger ones, up to 32 MiB, in its heaps, where one
    small object behind them is enough to hold them all. To clear the pages of a new one takes longer than to fill it,
    for all of the process, so this is for when memory is short.
    """
    _set({_MMAP_THRESHOLD: _MAPPED, _TRIM_THRESHOLD: _KEPT}, "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
    _trim()


def _trim() -> None:
    trim = _of_c_library("malloc_trim")
    if trim is not None:
        trim(0)


def _set(values: dict[int, int], *variables: str) -> None:
    mallopt = _of_c_library("mallopt")
    if mallopt is not None and not os.environ.keys() & {"GLIBC_TUNABLES", *variables}:
        for parameter, value in values.items():
            mallopt(parameter, value)
