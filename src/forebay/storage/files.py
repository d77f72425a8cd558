"""Files by path or URL: their size, and any range of their bytes."""

import errno
import os
import re
import stat
import weakref
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import read_ranges
from forebay.errors import FileError

Bytes = NDArray[np.uint8]

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+(://|::)")
# What one read should ask for: a system call costs little, a request to a server a lot.
_LOCAL_PIECE = 1 << 20
_REMOTE_PIECE = 4 << 20
# What a failure may be called by. Everything else is shown as the system tells it.
_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
}


class InputFile(ABC):
    """An open file. Several threads may read from it.

    `size` is the number of bytes, `piece` how many of them are best asked for at once, and `version` a text that
    changes when the file does, or None if nothing tells.
    """

    path: str
    size: int
    piece: int
    version: str | None

    @abstractmethod
    def read_at(self, offset: int, into: Bytes) -> int:
        """Fill `into` with the bytes from `offset` on; how many there were: fewer only where the file ends."""

    def read_ranges(self, starts: NDArray[np.int64], stops: NDArray[np.int64], into: Bytes) -> None:
        """The bytes of these ranges behind one another, all of which must be there."""
        done = 0
        for start, stop in zip(starts.tolist(), stops.tolist()):
            if self.read_at(start, into[done : done + stop - start]) < stop - start:
                raise FileError(self.path, "has become shorter", start)
            done += stop - start

    @abstractmethod
    def close(self) -> None:
        """Let go of it. May be called again."""


def open_file(path: str) -> InputFile:
    """The file at a path, or at any URL that fsspec knows. FileError if it cannot be opened."""
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    return _RemoteFile(path) if is_url(path) else _LocalFile(path)


def is_url(path: str) -> bool:
    """Whether a path is left to fsspec."""
    return _URL.match(path) is not None


class _LocalFile(InputFile):
    def __init__(self, path: str) -> None:
        self.path = path
        self.piece = _LOCAL_PIECE
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise file_error(path, error) from error
        # At the latest when nobody refers to it: an index keeps its file open for as long as there is one.
        self._close = weakref.finalize(self, os.close, self._file)
        status = os.fstat(self._file)
        if stat.S_ISDIR(status.st_mode):
            self.close()
            raise FileError(path, "is a folder")
        self.size = status.st_size
        self.version = f"{status.st_size} {status.st_mtime_ns}"

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
        self._close()


class _RemoteFile(InputFile):
    """Ranges of a file that fsspec reads. Nothing is kept: what is read is read again if it is asked for again."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.piece = _REMOTE_PIECE
        try:
            import fsspec

            self._system, self._name = fsspec.core.url_to_fs(path)
            info: dict[str, Any] = self._system.info(self._name)
        except Exception as error:
            # File systems raise what their libraries raise.
            raise file_error(path, error) from error
        if info.get("type") == "directory":
            raise FileError(path, "is a folder")
        if not isinstance(info.get("size"), int):
            raise FileError(path, "its size is not known; copy it to a place that tells")
        self.size = info["size"]
        known = [str(info[key]) for key in ("ETag", "etag", "mtime", "LastModified", "created") if info.get(key)]
        self.version = f"{self.size} {' '.join(known)}" if known else None

    def read_at(self, offset: int, into: Bytes) -> int:
        """One request."""
        stop = min(offset + len(into), self.size)
        if stop <= offset:
            return 0
        try:
            data = self._system.cat_file(self._name, start=offset, end=stop)
        except Exception as error:
            raise file_error(self.path, error, offset) from error
        if len(data) != stop - offset:
            raise FileError(self.path, f"gave {len(data):,} bytes where {stop - offset:,} were asked for", offset)
        into[: len(data)] = np.frombuffer(data, np.uint8)
        return len(data)

    def close(self) -> None:
        """There is nothing to close: fsspec keeps connections by itself."""


def file_error(path: str, cause: Exception, offset: int | None = None) -> FileError:
    """What an exception of the system or of a library means to whoever reads the file."""
    number = cause.errno if isinstance(cause, OSError) else None
    if isinstance(cause, FileNotFoundError):
        number = errno.ENOENT
    elif isinstance(cause, PermissionError):
        number = errno.EACCES
    text = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
    return FileError(path, _REASONS.get(number or 0, text), offset)
