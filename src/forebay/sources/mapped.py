"""Rows of a memory-mapped array, read from its file instead of through the mapping.

Reading through a mapping leaves the pages in the process's resident memory, and the system maps sixteen of them
around each one touched: a shuffled pass over a file soon counts as having all of it in memory. Reads from the file
itself go through the same page cache and leave nothing behind.
"""

import os
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import read_rows
from forebay.block import Column, Indices, column_from_array
from forebay.block.aligned import aligned_empty
from forebay.block.dense import Dense
from forebay.errors import DataError, FileError
from forebay.plan.mapping import mapped_at, memory_map, root_of
from forebay.sources.strided import read_strided

_SAMPLED_ROWS = 256
_SAMPLED_BYTES = 1 << 18


class MappedRows(ABC):
    """The rows of an array whose memory is a mapped file, as columns that are made when they are read."""

    @staticmethod
    def behind(column: Column) -> "MappedRows | None":
        """The file behind a column; None if there is none."""
        array = column.values if isinstance(column, Dense) else None
        mapped = memory_map(array)
        if array is None or mapped is None or not array.nbytes:
            return None
        return _file_behind(array, mapped) or Mapping(array, mapped)

    @abstractmethod
    def gather(self, indices: Indices) -> Column:
        """The rows with these numbers."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Column:
        """Rows start to stop."""

    @abstractmethod
    def sample(self) -> Any:
        """What tells this data from other data."""


class FileRows(MappedRows):
    """Rows that are read from the file."""

    def __init__(self, file: int, path: str, offset: int, array: NDArray[Any]) -> None:
        self._file = file
        self._path = path
        self._offset = offset
        self._strides = array.strides
        self._length, *shape = array.shape
        self._shape = tuple(shape)
        self._dtype = array.dtype
        # Of one row; `array[0]` would read it if it is a number.
        self._whole = array[:1].flags.c_contiguous
        self._close = weakref.finalize(self, os.close, file)
        # At the interpreter's end the system closes it: iterators that are closed after it may still read here.
        self._close.atexit = False

    def gather(self, indices: Indices) -> Column:
        """With one read for each, where they lie in one piece."""
        return column_of_file(self._gather(indices), self._path)

    def _gather(self, indices: Indices) -> NDArray[Any]:
        rows = aligned_empty((len(indices), *self._shape), self._dtype)
        if self._whole and rows.nbytes:
            self._read_whole(indices, rows)
        elif rows.nbytes:
            self._read_parts(self._offset, rows, indices)
        return rows

    def read(self, start: int, stop: int) -> Column:
        """In one piece where they lie in one piece."""
        stride = self._strides[0]
        begin = self._offset + start * stride
        rows = aligned_empty((stop - start, *self._shape), self._dtype, begin)
        if self._whole and rows.nbytes == (stop - start) * stride:
            self._read_whole(np.array([start]), rows)
        elif self._whole and stride >= self._row_bytes:
            self._read_whole(np.arange(start, stop), rows)
        elif rows.nbytes:
            self._read_parts(begin, rows)
        return column_of_file(rows, self._path)

    def sample(self) -> NDArray[Any]:
        """A few rows from all over the file; none of rows that are huge."""
        count = min(self._length, _SAMPLED_ROWS, _SAMPLED_BYTES // max(self._row_bytes, 1))
        return self._gather(np.linspace(0, self._length - 1, count).astype(np.int64))

    @property
    def _row_bytes(self) -> int:
        return int(self._dtype.itemsize * prod(self._shape))

    def _read_whole(self, indices: Indices, rows: NDArray[Any]) -> None:
        offset, stride = self._offset, self._strides[0]
        if stride < 0:
            # From the row that lies first in the file.
            indices = self._length - 1 - indices
            offset, stride = offset + (self._length - 1) * stride, -stride
        with self._errors():
            read_rows(self._file, offset, stride, np.ascontiguousarray(indices), rows.reshape(-1).view(np.uint8))

    def _read_parts(self, place: int, rows: NDArray[Any], indices: Indices | None = None) -> None:
        with self._errors():
            read_strided(self._file, place, self._strides, rows, indices)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except EOFError:
            raise _shorter(self._path) from None
        except OSError as error:
            raise DataError(f"{self._path} cannot be read: {error}") from error


class Mapping(MappedRows):
    """Rows that only the mapping has: private ones, and those of files that are no longer under their name.

    Touching what a file no longer has ends the process, so that its size is looked at before every read. It can still
    become shorter between the two.
    """

    def __init__(self, array: NDArray[Any], mapped: "np.memmap[Any, Any]") -> None:
        self._array = array
        self._path = str(mapped.filename or "a mapped file")
        root, self._pages = root_of(mapped)
        # Where the bytes of the first row end in the file.
        inside = sum(max(0, stride * (size - 1)) for stride, size in zip(array.strides[1:], array.shape[1:]))
        self._end = root.offset + array.ctypes.data - root.ctypes.data + inside + array.itemsize

    def gather(self, indices: Indices) -> Column:
        """Copies."""
        self._check(int(indices.min()), int(indices.max()))
        return column_of_file(self._array.take(indices, axis=0), self._path)

    def read(self, start: int, stop: int) -> Column:
        """Copies too: what is looked at later might not be there any more."""
        self._check(start, stop - 1)
        return column_of_file(self._array[start:stop].copy(), self._path)

    def sample(self) -> NDArray[Any]:
        """All of it is here."""
        self._check(0, len(self._array) - 1)
        return self._array

    def _check(self, first: int, last: int) -> None:
        if self._pages.size() < self._end + max(first * self._array.strides[0], last * self._array.strides[0]):
            raise _shorter(self._path)


def _file_behind(array: NDArray[Any], mapped: "np.memmap[Any, Any]") -> FileRows | None:
    """None if the file cannot be read in place of the mapping. Private maps hold writes that the file does not."""
    if mapped.mode not in ("r", "r+", "w+") or not isinstance(mapped.filename, (str, os.PathLike)):
        return None
    piece = mapped_at(array.ctypes.data)
    if piece is None:
        return None
    try:
        file = os.open(mapped.filename, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    if not piece.is_of(os.fstat(file)):
        # The name stands for another file by now; the mapping still has the old one.
        os.close(file)
        return None
    return FileRows(file, os.fspath(mapped.filename), piece.place(array.ctypes.data), array)


def column_of_file(rows: NDArray[Any], name: str) -> Column:
    """A column of what was read from a file of that name. FileError if that is text with anything but characters."""
    if rows.dtype.kind == "U":
        codes = rows.reshape(-1).view(np.dtype(np.uint32).newbyteorder(rows.dtype.byteorder))
        if codes.max(initial=0) > sys.maxunicode:
            raise FileError(name, f"text of type {rows.dtype} holds {hex(codes.max())}, which is no character")
    return column_from_array(rows, owned=True)


def _shorter(path: str) -> DataError:
    return DataError(f"{path} has become shorter than it was when the dataset was made")
