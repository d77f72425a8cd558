"""Arrays whose memory is that of a file: where in which one they lie, and whether it still has what they show."""

import mmap
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from forebay.system import open_text

# What the system counts of a mapping's pages that nothing but the memory has ...
_PRIVATE = ("Anonymous:", "Swap:")
# ... and of those that are still to be written to the file. Its time does not change with each write to them.
_SHARED = ("Shared_Dirty:", "Private_Dirty:")


class Piece(NamedTuple):
    """A range of addresses of this process that is mapped in one piece: from where in which file."""

    low: int
    high: int
    rights: str
    offset: int
    device: int
    inode: int

    def is_of(self, found: os.stat_result) -> bool:
        """Whether that is the file. Some file systems call their devices by several numbers, and then nobody knows."""
        return (found.st_dev, found.st_ino) == (self.device, self.inode)

    def place(self, address: int) -> int:
        """Where in the file what is at the address lies."""
        return self.offset + address - self.low


def memory_map(array: Any) -> "np.memmap[Any, Any] | None":
    """The memmap behind an array, if its memory is that of a file."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return array if isinstance(root_of(array)[1], mmap.mmap) else None
        array = array.base
    return None


def root_of(array: Any) -> tuple[Any, Any]:
    """The array that others are views of, and what its memory belongs to."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array, array.base


def mapped_at(address: int) -> Piece | None:
    """What is mapped at an address of this process; None if that is no file, or nobody knows."""
    pieces = _pieces(address, address + 1)
    return pieces[0] if pieces and pieces[0].inode else None


def stamp(array: Any) -> tuple[Any, ...] | None:
    """What tells the part of a file that an array shows from all others, unread; None if only reading it does.

    A copy of the file is another one, and so is what has taken its place: such a file may have its size and its time,
    and even its inode, but not the time at which the system noted a change. Writes to this memory that the file does
    not tell of, since they are private or its time does not move with them, are found by reading alone. What is written
    through other mappings of the file meanwhile cannot be seen: neither its time nor these pages tell of it.
    """
    mapped = memory_map(array)
    if mapped is None or not isinstance(mapped.filename, (str, os.PathLike)) or not array.nbytes:
        return None
    low = array.ctypes.data + sum(min(0, step * (size - 1)) for step, size in zip(array.strides, array.shape))
    high = array.ctypes.data + sum(max(0, step * (size - 1)) for step, size in zip(array.strides, array.shape))
    pieces = _pieces(low, high + array.itemsize)
    try:
        found = os.stat(mapped.filename)
    except (OSError, ValueError):
        return None
    if not pieces or not all(piece.is_of(found) for piece in pieces) or any(map(_is_written, pieces)):
        return None
    times = found.st_mtime_ns, found.st_ctime_ns
    return os.fspath(mapped.filename), found.st_ino, found.st_size, times, pieces[0].place(array.ctypes.data)


def _pieces(low: int, high: int) -> list[Piece]:
    """Those that have a part of these addresses, the lowest first; none if nobody knows."""
    try:
        with open_text("/proc/self/maps") as lines:
            # A process has hundreds of them, of which few are taken apart.
            spans = ((line, *_span(line)) for line in lines)
            return [_piece(line) for line, begin, end in spans if begin < high and low < end]
    except OSError:
        return []


def _span(line: str) -> tuple[int, int]:
    begin, _, rest = line.partition("-")
    return int(begin, 16), int(rest.partition(" ")[0], 16)


def _piece(line: str) -> Piece:
    _, rights, offset, device, inode, *_ = line.split(maxsplit=5)
    major, _, minor = device.partition(":")
    return Piece(*_span(line), rights, int(offset, 16), os.makedev(int(major, 16), int(minor, 16)), int(inode))


def _is_written(piece: Piece) -> bool:
    """Whether pages of it hold what the file does not have, or has without another time; True if nobody knows."""
    if "w" not in piece.rights and not piece.rights.endswith("p"):
        return False
    wanted = _PRIVATE if piece.rights.endswith("p") else _SHARED
    try:
        return any(name in wanted and size != "0" for name, size in _page_counts(piece))
    except OSError:
        return True


def _page_counts(piece: Piece) -> Iterator[tuple[str, str]]:
    """Each behind its name."""
    inside = False
    with open_text("/proc/self/smaps") as lines:
        for line in lines:
            name, value, *_ = line.split(maxsplit=2)
            if not name.endswith(":"):
                inside = _piece(line)[:2] == piece[:2]
            elif inside:
                yield name, value
