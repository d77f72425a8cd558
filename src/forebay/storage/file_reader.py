"""One Arrow IPC file of a saved dataset, read with pread and checked against its checksums.

Reading through a mapping would leave pages in the process's resident memory (see sources/mapped.py); reads from the
file go through the same page cache and leave nothing behind.
"""

import os
import weakref
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import read_ranges, read_rows
from forebay.block import Indices
from forebay.block.aligned import aligned_empty
from forebay.errors import DataError
from forebay.storage.arrow import arrow
from forebay.storage.arrow_pool import UNBOUNDED, ArrowMemory
from forebay.storage.checked import checksum, checksum_text, read_checked
from forebay.storage.file_writer import MAGIC
from forebay.storage.manifest import FileInfo, check_size

Bytes = NDArray[np.uint8]


class Source(ABC):
    """Bytes by their place in a file."""

    @abstractmethod
    def fill(self, start: int, out: Bytes) -> None:
        """Fill `out` with the bytes from that place on."""

    def read(self, start: int, stop: int) -> Bytes:
        """The bytes from start to stop, in memory of their own."""
        out = aligned_empty((stop - start,), place=start)
        if len(out):
            self.fill(start, out)
        return out


class BatchInMemory(Source):
    """The bytes of one record batch, which were read to be checked: no need to read them again."""

    def __init__(self, data: Bytes, start: int) -> None:
        self._data = data
        self._start = start

    def fill(self, start: int, out: Bytes) -> None:
        """A copy."""
        out[:] = self._data[start - self._start : start - self._start + len(out)]


class StoredFile(Source):
    """An open file. What stands around the batches is checked now, a batch whenever it is read as a whole."""

    def __init__(self, path: str, info: FileInfo) -> None:
        self.path = path
        self.info = info
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise DataError(f"{path} is missing: the saved dataset is not complete, or was replaced since") from None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error}") from error
        self._close = weakref.finalize(self, os.close, self._file)
        # At the interpreter's end the system closes it: iterators that are closed after it may still read here.
        self._close.atexit = False
        check_size(path, info, os.fstat, self._file)
        found = os.fstat(self._file)
        self.identity = (found.st_dev, found.st_ino, found.st_mtime_ns)
        """Of the file itself, whatever its path leads to later."""
        last = info.batch_ends[-1] if info.batch_ends else info.head
        head = self.read(0, info.head)
        if checksum_text(checksum(head, self.read(last, info.size))) != info.frame:
            raise DataError(f"{path} is damaged: its schema or footer is not what was saved")
        self._begin = head[len(MAGIC) :]
        self.schema = arrow().ipc.read_schema(arrow().py_buffer(self._begin))

    def fill(self, start: int, out: Bytes) -> None:
        """One read."""
        self.read_rows(np.array([start]), out)

    def read_rows(self, starts: Indices, out: Bytes) -> None:
        """Pieces of equal length that begin at these places."""
        try:
            read_rows(self._file, 0, 1, starts, out)
        except (EOFError, OSError) as error:
            raise self._failed(error) from error

    def read_ranges(self, starts: Indices, stops: Indices, out: Bytes) -> None:
        """Pieces from these places to those."""
        try:
            read_ranges(self._file, starts, stops, out)
        except (EOFError, OSError) as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> DataError:
        why = "it has become shorter" if isinstance(error, EOFError) else str(error)
        return DataError(f"{self.path} cannot be read: {why}")

    def batch_bytes(self, batch: int) -> Bytes:
        """A batch as it lies in the file, checked. DataError if it is not what was saved."""
        start, stop = self.info.span(batch)
        data = aligned_empty((stop - start,), place=start)
        try:
            found = read_checked(self._file, start, data)
        except OSError as error:
            raise self._failed(error) from error
        if found is None:
            raise self._failed(EOFError())
        if checksum_text(found) != self.info.checksums[batch]:
            raise DataError(f"{self.path} is damaged: the checksum of record batch {batch} is not what was saved")
        return data

    def record_batch(self, batch: int, memory: ArrowMemory = UNBOUNDED) -> Any:
        """A batch as Arrow has it, in memory of its own."""
        return self.parse(self.batch_bytes(batch), memory)

    def parse(self, data: Bytes, memory: ArrowMemory = UNBOUNDED) -> Any:
        """The record batch that these checked bytes are."""
        pa = arrow()
        try:
            if memory.threads:
                return pa.ipc.read_record_batch(pa.ipc.read_message(pa.py_buffer(data)), self.schema)
            # As a stream of this batch alone: what reads a lone one decodes its columns on threads in any case.
            stream = pa.BufferReader(pa.py_buffer(np.concatenate([self._begin, data])))
            options = pa.ipc.IpcReadOptions(use_threads=False)
            return pa.ipc.open_stream(stream, options=options).read_next_batch()
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.path} does not hold what its manifest says: {error}") from error
