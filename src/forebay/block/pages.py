"""Memory for buffers that stay: whole pages, which go back to the system with the last reference to them."""

import mmap

import numpy as np
from numpy.typing import NDArray


def own_pages(nbytes: int) -> NDArray[np.uint8]:
    """Some MiB for a buffer: pages are there from when they are first written to until nobody refers to the array.

    The C library's heap would keep them after the first time, and lay the next buffer behind what is in use by then.
    """
    pages = mmap.mmap(-1, max(nbytes, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, np.uint8)[:nbytes]
