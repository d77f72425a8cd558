"""Memory for buffers that stay: whole pages, which go back to the system with the last reference to them."""

import mmap
import sys
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

# References to memory that nobody uses: the list that it is in, the variable, and the count itself.
_UNUSED = 3
# Where pages may be larger, those are for arrays from this size on, as in NumPy.
_HUGE = 1 << 22


def own_pages(nbytes: int, huge: bool = False) -> NDArray[np.uint8]:
    """Some MiB for a buffer: pages are there from when they are first written to until nobody refers to the array.

    The C library's heap would keep them after the first time, and lay the next buffer behind what is in use by then.
    Those that are `huge` are there sooner, some MiB at once: for what is filled from front to back.
    """
    try:
        pages = mmap.mmap(-1, max(nbytes, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        # As for arrays of NumPy: an OSError would look like one of files and disks.
        raise MemoryError(f"no memory for a buffer of {nbytes:,} bytes: {error.strerror}") from error
    if huge and nbytes >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # A system without them.
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)


class PagePool:
    """Memory for blocks that come and go. What nobody refers to any more is used again.

    Pages that come from the system have to be cleared first, which takes longer than to fill them.
    """

    def __init__(self) -> None:
        self._kept: list[NDArray[np.uint8]] = []

    def take(self, count: int, nbytes: int) -> list[NDArray[np.uint8]]:
        """So many pieces of that size. Arrays that are made in one have to refer to it itself."""
        unused, used = [], []
        for each in self._kept:
            if sys.getrefcount(each) > _UNUSED:
                used.append(each)
            elif len(each) == nbytes:
                unused.append(each)
        # Those that are in use now may not be so next time, but what is kept for longer is not ours to look after. What
        # is not needed goes before there is more.
        self._kept = used[-2 * count :]
        taken = unused[:count]
        del unused
        taken += [own_pages(nbytes) for _ in range(count - len(taken))]
        self._kept += taken
        return taken

    @property
    def nbytes(self) -> int:
        """What all of it takes."""
        return sum(map(len, self._kept))
