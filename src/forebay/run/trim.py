"""Memory that we and the allocator keep after it was freed, given back to the system."""

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

from forebay._native import clear_spare
from forebay.run.cpus import available_cpus

# The allocator keeps about this much for good, as we do for the next epoch: pages of less cost more to have back than
# they are worth.
_WORTH_IT = 16 << 20
# If another epoch follows after so few seconds, this many: to have the pages back took a tenth of its time.
_BRIEF = 0.25
_WORTH_IT_OFTEN = 32 << 20


# Of glibc's mallopt().
_ARENA_MAX = -8


@functools.cache
def _of_c_library(name: str) -> Callable[..., Any] | None:
    # Where the C library is another one it is not to be found, and memory goes back in other ways.
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except (OSError, TypeError):
        return None


@functools.cache
def share_arenas() -> None:
    """Before threads are started that make rows: no more heaps than processors, unless the user has said how many.

    glibc has eight for each processor. What was freed in one is of no use in the others, so that the results of many
    threads would take up several times the memory that they need.
    """
    mallopt = _of_c_library("mallopt")
    if mallopt is not None and not {"MALLOC_ARENA_MAX", "GLIBC_TUNABLES"} & os.environ.keys():
        mallopt(_ARENA_MAX, max(2, available_cpus()))


def give_back(held: int, epoch: float | None = None) -> None:
    """After so many bytes were held and freed. What we keep ourselves stays after an `epoch` of so many seconds.

    glibc hands arrays of some MiB straight back at first. With each of these it learns to keep larger ones, up to
    32 MiB, in its heap, where one small object behind them is enough to hold them all.
    """
    if epoch is None:
        clear_spare()
    if held >= (_WORTH_IT_OFTEN if epoch is not None and epoch < _BRIEF else _WORTH_IT):
        trim = _of_c_library("malloc_trim")
        if trim is not None:
            trim(0)
