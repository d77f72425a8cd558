"""What an open file is to those who read it, and what failures are called."""

import errno
import re
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.errors import FileError
from forebay.ledger import Lease

Bytes = NDArray[np.uint8]

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+(://|::)")
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
    descriptor: int | None = None
    """What the system knows it by, where its bytes are to be had from there."""

    @abstractmethod
    def read_at(self, offset: int, into: Bytes) -> int:
        """Fill `into` with the bytes from `offset` on; how many there were: fewer only where the file ends."""

    def read(self) -> bytes:
        """All bytes; FileError if there are fewer than when it was opened."""
        data: Any = np.empty(self.size, np.uint8)
        self._all_there(self.read_at(0, data))
        return bytes(data.data)

    def _all_there(self, got: int) -> None:
        if got < self.size:
            raise FileError(self.path, f"has become shorter: {got:,} bytes of {self.size:,} are there", got)

    def read_ranges(self, starts: NDArray[np.int64], stops: NDArray[np.int64], into: Bytes) -> None:
        """The bytes of these ranges behind one another, all of which must be there."""
        done = 0
        for start, stop in zip(starts.tolist(), stops.tolist()):
            if self.read_at(start, into[done : done + stop - start]) < stop - start:
                raise FileError(self.path, "has become shorter", start)
            done += stop - start

    def in_order(self, lease: Lease) -> "InputFile":
        """The same file for one reader that goes from front to back.

        What is read before it is asked for has a lease beside that one. It is closed before the file itself.
        """
        return self

    @abstractmethod
    def close(self) -> None:
        """Let go of it. May be called again."""


def is_url(path: str) -> bool:
    """Whether a path is left to fsspec."""
    return _URL.match(path) is not None


def file_error(path: str, cause: Exception, offset: int | None = None) -> FileError:
    """What an exception of the system or of a library means to whoever reads the file."""
    if isinstance(cause, FileError):
        return cause
    number = cause.errno if isinstance(cause, OSError) else None
    if isinstance(cause, FileNotFoundError):
        number = errno.ENOENT
    elif isinstance(cause, PermissionError):
        number = errno.EACCES
    hint = "; Dataset.list_files() finds those that match a pattern" if number == errno.ENOENT and "*" in path else ""
    return FileError(path, _REASONS.get(number or 0, cause_text(cause)) + hint, offset)


def cause_text(cause: BaseException) -> str:
    """What an exception says, in one line."""
    told = (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__
    return " ".join(str(told).split())
