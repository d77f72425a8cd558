"""Rows of a memory-mapped array, read from its file instead of through the mapping.

Reading through a mapping leaves the pages in the process's resident memory, and the system maps sixteen of them
around each one touched: a shuffled pass over a file soon counts as having all of it in memory. Reads from the file
itself go through the same page cache and leave nothing behind.
"""

import mmap
import os
import weakref
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import read_rows
from forebay.block import Column, Indices
from forebay.block.aligned import aligned_empty
from forebay.block.dense import Dense
from forebay.errors import DataError

_SAMPLED_ROWS = 256
_SAMPLED_BYTES = 1 << 18


class FileRows:
    """The rows of an array whose memory is a mapped file."""

    def __init__(self, file: int, path: str, offset: int, array: NDArray[Any]) -> None:
        self._file = file
        self._path = path
        self._offset = offset
        self._stride = array.strides[0]
        self._length, *shape = array.shape
        self._shape = tuple(shape)
        self._dtype = array.dtype
        self._close = weakref.finalize(self, os.close, file)

    @staticmethod
    def behind(column: Column) -> "FileRows | None":
        """The file behind a column; None if there is none, or it cannot be read in place of the mapping."""
        array = column.values if isinstance(column, Dense) else None
        mapped = _shared_map(array)
        if array is None or mapped is None or not array.size or array.strides[0] < 0:
            return None
        if not array[0].flags.c_contiguous or not isinstance(mapped.filename, (str, os.PathLike)):
            return None
        found = _mapped_at(array.ctypes.data)
        if found is None:
            return None
        offset, inode = found
        try:
            file = os.open(mapped.filename, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        if os.fstat(file).st_ino != inode:
            # The name stands for another file by now; the mapping still has the old one.
            os.close(file)
            return None
        return FileRows(file, os.fspath(mapped.filename), offset, array)

    def gather(self, indices: Indices) -> Dense:
        """The rows with these numbers."""
        rows = aligned_empty((len(indices), *self._shape), self._dtype)
        if rows.nbytes:
            self._read(np.ascontiguousarray(indices), self._stride, rows)
        return Dense(rows)

    def read(self, start: int, stop: int) -> Dense:
        """Rows start to stop, in one piece where they lie in one piece."""
        rows = aligned_empty((stop - start, *self._shape), self._dtype, self._offset + start * self._stride)
        if rows.nbytes == (stop - start) * self._stride:
            self._read(np.array([start]), self._stride, rows)
        elif rows.nbytes:
            self._read(np.arange(start, stop), self._stride, rows)
        return Dense(rows)

    def sample(self) -> NDArray[Any]:
        """A few rows from all over the file, to tell one file's data from another's; none of rows that are huge."""
        row_bytes = self._dtype.itemsize * prod(self._shape)
        count = min(self._length, _SAMPLED_ROWS, _SAMPLED_BYTES // max(row_bytes, 1))
        return self.gather(np.linspace(0, self._length - 1, count).astype(np.int64)).values

    def _read(self, indices: Indices, stride: int, rows: NDArray[Any]) -> None:
        try:
            read_rows(self._file, self._offset, stride, indices, rows.reshape(-1).view(np.uint8))
        except EOFError:
            raise DataError(f"{self._path} has become shorter than it was when the dataset was made") from None
        except OSError as error:
            raise DataError(f"{self._path} cannot be read: {error}") from error


def _shared_map(array: Any) -> "np.memmap[Any, Any] | None":
    """The memmap behind an array. Private ones (mode "c") hold writes that the file does not."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.mode in ("r", "r+", "w+"):
            return array if _is_mapped(array) else None
        array = array.base
    return None


def _is_mapped(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap)


def _mapped_at(address: int) -> tuple[int, int] | None:
    """Offset in the file, and inode of the file, that is mapped at an address of this process; None if unknown."""
    try:
        with open("/proc/self/maps") as lines:
            for line in lines:
                span, _, offset, _, inode, *_ = line.split(maxsplit=5)
                low, high = (int(bound, 16) for bound in span.split("-"))
                if low <= address < high:
                    return (int(offset, 16) + address - low, int(inode)) if int(inode) else None
    except OSError:
        return None
    return None
