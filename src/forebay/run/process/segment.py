"""Anonymous shared memory in which one message at a time crosses between two processes."""

import mmap
import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from forebay.errors import TransferError

Part = bytes | memoryview
Bytes = Any
"""A bytearray, or an array of bytes: anything with a buffer, which types can say from Python 3.12 on."""

SMALLEST = 1 << 20
# Fresh pages cost about as much as the copy into them, so memory is only given back after it was far too large for
# this many messages in a row, and only where there is much to give back.
PATIENCE = 32
LARGE = 16 << 20

_ALIGNMENT = 64
# Below this a copy takes less time than preparing NumPy for it.
_QUICK = 16 << 10
_NUMBER = struct.Struct("<Q")
_HEADER = 8
"""Bytes ahead of the message; the first is the mark."""


class Segment:
    """A file that exists only in memory and has no name, so that nothing of it can outlive the two processes.

    The two sides use it in turns. Whoever writes chooses the size and tells the other side, which must hand that
    size to ``read``. No view of the memory ever leaves this class: resizing would fail while there is one.
    """

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, os.fstat(fd).st_size)
        self._unused = 0

    @staticmethod
    def create() -> tuple["Segment", int]:
        """A new segment and its file descriptor, which can be closed once the other process has it."""
        fd = os.memfd_create("forebay", os.MFD_CLOEXEC)
        try:
            _sized(SMALLEST, partial(os.ftruncate, fd))
            return Segment(fd), fd
        except BaseException:
            os.close(fd)
            raise

    def __len__(self) -> int:
        return len(self._memory)

    def close(self) -> None:
        """Give the memory back, once the other side has done so too."""
        self._memory.close()

    @property
    def begun(self) -> bool:
        """A mark that stays whatever else is written, so that it tells how far a process came that is dead now."""
        return bool(self._memory[0])

    @begun.setter
    def begun(self, value: bool) -> None:
        self._memory[0] = value

    def write(self, parts: Sequence[Part]) -> int:
        """Put a message there; returns the size that the other side needs for reading it."""
        lengths = [len(part) for part in parts]
        starts, end = _layout(lengths)
        self._fit(end)
        struct.pack_into(f"<{len(parts) + 1}Q", self._memory, _HEADER, len(parts), *lengths)
        for start, part in zip(starts, parts):
            if len(part) < _QUICK:
                self._memory[start : start + len(part)] = part
            else:
                # NumPy lets other threads run while it copies.
                np.frombuffer(self._memory, np.uint8, len(part), start)[:] = np.frombuffer(part, np.uint8)
        return len(self._memory)

    def read(self, size: int) -> list[Bytes]:
        """Copy the message out into memory that may be written to; the segment is free for another one then."""
        if size != len(self._memory):
            _sized(size, self._memory.resize)
        count = _NUMBER.unpack_from(self._memory, _HEADER)[0]
        lengths = struct.unpack_from(f"<{count}Q", self._memory, _HEADER + _NUMBER.size)
        starts, end = _layout(lengths)
        self._note(end)
        return [
            bytearray(self._memory[start : start + length])
            if length < _QUICK
            else np.frombuffer(self._memory, np.uint8, length, start).copy()
            for start, length in zip(starts, lengths)
        ]

    def _fit(self, needed: int) -> None:
        self._note(needed)
        size = len(self._memory)
        if needed > size or (size > LARGE and self._unused > PATIENCE):
            self._unused = 0
            _sized(max(SMALLEST, needed + needed // 4), self._memory.resize)

    def _note(self, needed: int) -> None:
        self._unused = self._unused + 1 if needed < len(self._memory) // 4 else 0


def _sized(size: int, resize: Callable[[int], object]) -> None:
    try:
        resize(size)
    except OSError as error:
        # The system counts this memory as a file too.
        raise TransferError(
            f"{size:,} bytes of shared memory cannot be had ({error}): raise the limits on memory or on the size of "
            "files (ulimit -f), or make elements smaller"
        ) from error


def _layout(lengths: Sequence[Any]) -> tuple[list[int], int]:
    """Where each part starts, and where the last one ends."""
    starts = []
    end = _HEADER + _NUMBER.size * (len(lengths) + 1)
    for length in lengths:
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        starts.append(start)
        end = start + length
    return starts, end
