"""Memory that rows are read and copied into."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import spare_bytes

ALIGN = 64
"""Arrays begin at multiples of this many bytes in memory, and what is to be read into them does in files of ours.

Large arrays that ``np.empty`` makes lie 16 bytes behind the start of a page. Copied there from the start of another
page, as the system does when it reads a file, every store looks to some processors as if the next loads depended on
it: reading then takes five times as long (measured on Zen 3). At the same place of a page as in the file, which large
ones are given, it takes 5 % less than anywhere else.
"""


_LEAST = 16
_PAGE = 1 << 12
# Smaller ones the C library takes from its heap, whose pages stay mapped.
_LARGE = 1 << 16


def aligned_empty(
    shape: tuple[int, ...],
    dtype: "np.dtype[Any] | type[np.generic]" = np.uint8,
    place: int = 0,
    roomy: bool = False,
) -> NDArray[Any]:
    """Like ``np.empty``, for what is about to be read from that place of a file, in memory that may have been used.

    A `roomy` array may lie in memory that was made for one a little larger.
    """
    kind = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    if not size or kind.hasobject:
        return np.empty(shape, kind)
    # As the file has it, unless values would no longer be where processors like them.
    start = 0 if place % _LEAST else place % _PAGE
    if size >= _LARGE:
        # Begins at a page.
        return np.ndarray(shape, kind, spare_bytes(start + size, roomy), start)
    memory = np.empty(size + ALIGN, np.uint8)
    # The memory's own place is asked for in a way that is ten times cheaper than `ctypes`.
    start = (start - memory.__array_interface__["data"][0]) % ALIGN
    return np.ndarray(shape, kind, memory, start)


def joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """``np.concatenate`` of arrays of one dtype, into such memory."""
    first = arrays[0]
    out = aligned_empty((sum(map(len, arrays)), *first.shape[1:]), first.dtype)
    return np.concatenate(arrays, out=out)
