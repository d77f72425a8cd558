"""Checksums of what is on disk, worked out as the bytes pass by.

XXH3 is some ten times faster than zlib's CRC-32, whose speed is about that of a disk: with it, reading from the page
cache took twice as long as without.
"""

import os
from typing import Any

# Bytes that are read are added to the checksum while the processor still has them at hand; in smaller steps, the calls
# would cost more than that saves.
_STEP = 1 << 20


def hasher() -> Any:
    """A new checksum of 64 bits."""
    # A quarter of a millisecond, which `import forebay` need not take.
    import xxhash

    return xxhash.xxh3_64()


def checksum(*parts: Any) -> int:
    """The checksum of some bytes, one part behind another."""
    state = hasher()
    for part in parts:
        state.update(part)
    return int(state.intdigest())


def read_checked(file: int, offset: int, out: Any) -> int | None:
    """Fill `out` from that place of a file on; the checksum of what was read, or None if the file ends before."""
    state, view, done = hasher(), memoryview(out).cast("B"), 0
    while done < len(view):
        got = os.preadv(file, [view[done : done + _STEP]], offset + done)
        if got == 0:
            return None
        state.update(view[done : done + got])
        done += got
    return int(state.intdigest())
