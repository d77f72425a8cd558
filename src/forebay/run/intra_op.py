"""Limits on the thread pools that other libraries keep for themselves."""

import sys
from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F")


def limit_intra_op(threads: int) -> None:
    """Have libraries that are loaded use that many threads for one call, in this whole process."""
    if (cv2 := sys.modules.get("cv2")) is not None:
        cv2.setNumThreads(threads)
    if (pyarrow := sys.modules.get("pyarrow")) is not None:
        pyarrow.set_cpu_count(threads)


def make_limited(make: Callable[[], F], threads: int) -> F:
    """What `make` makes, which may load such libraries, with the limit set."""
    made = make()
    limit_intra_op(threads)
    return made
