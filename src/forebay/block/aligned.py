"""Memory that files are read into."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIGN = 64
"""Arrays begin at multiples of this many bytes in memory, and what is to be read into them does in files of ours.

Large arrays that ``np.empty`` makes lie 16 bytes behind the start of a page. Copied there from the start of another
page, as the system does when it reads a file, every store looks to some processors as if the next loads depended on
it: reading then takes five times as long (measured on Zen 3).
"""


_LEAST = 16


def aligned_empty(
    shape: tuple[int, ...], dtype: "np.dtype[Any] | type[np.generic]" = np.uint8, place: int = 0
) -> NDArray[Any]:
    """Like ``np.empty``, for what is about to be read from that place of a file."""
    kind = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    memory = np.empty(size + ALIGN, np.uint8)
    # As the file has it, unless values would no longer be where processors like them. The memory's own place is asked
    # for in a way that is ten times cheaper than `ctypes`.
    start = ((0 if place % _LEAST else place) - memory.__array_interface__["data"][0]) % ALIGN
    return np.ndarray(shape, kind, memory.data, start)
