"""Files by path or URL: their size, and any range of their bytes."""

import os
import stat

import numpy as np
from numpy.typing import NDArray

from forebay._native import OpenedFile, read_ranges
from forebay.errors import FileError
from forebay.remote_run import check_allowed
from forebay.storage.input_file import Bytes, InputFile, file_error, is_url
from forebay.storage.remote import RemoteFile

__all__ = ["Bytes", "InputFile", "file_error", "is_url", "local_version", "open_file"]

_PIECE = 1 << 20


def open_file(path: str) -> InputFile:
    """The file at a path, or at any URL that fsspec knows. FileError if it cannot be opened."""
    check_allowed(path)
    path = path.removeprefix("file://")
    return RemoteFile(path) if is_url(path) else _LocalFile(path)


def local_version(path: str) -> str | None:
    """What ``InputFile.version`` would be, without opening the file; None of those at URLs, and if there is none."""
    try:
        return None if is_url(path.removeprefix("file://")) else _version(os.stat(path.removeprefix("file://")))
    except (OSError, ValueError):
        return None


def _version(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns}"


class _LocalFile(InputFile):
    def __init__(self, path: str) -> None:
        self.path = path
        self.piece = _PIECE
        try:
            # Without waiting for who writes to a pipe. Closed at the latest when nobody refers to it: an index keeps
            # its file open for as long as there is one.
            self._opened = OpenedFile(os.fsencode(path))
        except (OSError, ValueError) as error:
            raise file_error(path, error) from error
        self.descriptor = self._file = self._opened.number
        status = os.fstat(self._file)
        self.size = status.st_size
        self.version = _version(status)
        if stat.S_ISDIR(status.st_mode):
            reason = "is a folder"
        elif not stat.S_ISREG(status.st_mode):
            reason = "is a pipe or a device, of which nobody knows the size; write its contents to a file"
        elif not self.size and self.read_at(0, np.empty(1, np.uint8)):
            reason = "does not tell its size, as files of /proc do not; copy it to another place"
        else:
            return
        self.close()
        raise FileError(path, reason)

    def read_at(self, offset: int, into: Bytes) -> int:
        """By ``pread``, which needs no position."""
        view, done = into.data, 0
        try:
            while done < len(view):
                got = os.preadv(self._file, [view[done:]], offset + done)
                if not got:
                    break
                done += got
        except OSError as error:
            raise file_error(self.path, error, offset + done) from error
        return done

    def read(self) -> bytes:
        """By one ``pread`` where the system gives everything at once, straight into what is returned."""
        parts: list[bytes] = []
        done = 0
        try:
            while done < self.size and (part := os.pread(self._file, self.size - done, done)):
                parts.append(part)
                done += len(part)
        except OSError as error:
            raise file_error(self.path, error, done) from error
        self._all_there(done)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_ranges(self, starts: NDArray[np.int64], stops: NDArray[np.int64], into: Bytes) -> None:
        """In one call, without the interpreter's lock."""
        try:
            read_ranges(self._file, starts, stops, into)
        except EOFError:
            raise FileError(self.path, "has become shorter", int(starts[0])) from None
        except OSError as error:
            raise file_error(self.path, error, int(starts[0])) from error

    def close(self) -> None:
        """At once."""
        self._opened.close()
