"""How much memory is in use, and how much is only kept by allocators: what resident memory cannot tell apart.

Resident memory is a high-water mark. What was freed mostly stays with the process, in holes that the next array may or
may not fit, one heap for some threads and another for others; so in a program that keeps nothing it still goes up now
and then, and hardly ever down. What is in use goes both ways.
"""

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass

from forebay._native import beyond_spare, kept_spare

# Small objects come out of pools of Python's own, which only count their pieces. These are of 16 to 512 bytes; lists,
# dictionaries and numbers of a loop come to some 70 on average.
_PYTHON_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes in use, and bytes that were freed and kept."""

    live: int
    kept: int


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def usage_reader() -> Callable[[], Usage] | None:
    """What tells the usage now, in some microseconds; None where the C library cannot be asked (it is not glibc 2.33).

    Counted are glibc's heaps, Python's small objects and Arrow's default pool. What libraries map by themselves is not.

    >>> read = usage_reader()
    >>> read is None or read().live > 1 << 20
    True
    """
    try:
        # Without letting go of the interpreter: a step would have to wait for its turn to have it back.
        mallinfo = ctypes.PyDLL(None).mallinfo2
    except (OSError, TypeError, AttributeError):
        return None
    mallinfo.restype = _Mallinfo
    mallinfo.argtypes = []

    def read() -> Usage:
        heaps = mallinfo()
        spare = kept_spare()
        # Blocks have a little room that nobody asked for: beside a cache that fills, it would look like a small leak.
        used = heaps.uordblks + heaps.hblkhd - spare - beyond_spare()
        live = used + _PYTHON_BLOCK * sys.getallocatedblocks() + _arrow()
        return Usage(live, heaps.fordblks + spare)

    return read


def _arrow() -> int:
    arrow = sys.modules.get("pyarrow")
    try:
        if arrow is None or arrow.default_memory_pool().backend_name == "system":
            return 0  # Counted with the heaps.
        return int(arrow.total_allocated_bytes())
    except AttributeError:  # It is just being imported.
        return 0
