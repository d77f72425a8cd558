"""How much may go to disk, and where: asked by every run, most of which never write anything."""

import os
import sys
import threading
from collections import deque

from forebay.errors import SpillError


def check_folder(folder: "str | os.PathLike[str] | None") -> None:
    """SpillError if the folder that was asked for cannot be written to: soon, and not when memory runs out."""
    if folder is None:
        return
    if not os.path.isdir(folder):
        wrong = "is not a folder" if os.path.exists(folder) else "does not exist"
    elif not os.access(folder, os.W_OK | os.X_OK):
        wrong = "may not be written to"
    else:
        return
    raise SpillError(
        f"Options.spill_dir={os.fspath(folder)!r} {wrong}: name a folder that files can be made in, or leave it out "
        "for the system's temporary folder"
    )


class SpillStore:
    """The files of one pipeline: where they are, and how much they may take up together.

    Args:
        folder: None for the system's temporary folder, or ``/var/tmp`` if that one is only memory.
        limit: the most bytes of all files together; None for as many as the disk has.
    """

    def __init__(self, folder: "str | os.PathLike[str] | None" = None, limit: int | None = None) -> None:
        self.folder = folder
        self.limit = limit
        self._lock = threading.Lock()
        self._used = 0
        self._peak = 0
        # The garbage collector may close a file on a thread that has the lock, so what is given back is only left here.
        self._returned: deque[int] = deque()

    @property
    def used(self) -> int:
        """Bytes on disk at the moment."""
        with self._lock:
            return self._settled()

    @property
    def left(self) -> int:
        """Bytes that may still come."""
        return sys.maxsize if self.limit is None else max(0, self.limit - self.used)

    @property
    def peak(self) -> int:
        """The most that was ever there at once."""
        return self._peak

    def reserve(self, nbytes: int) -> None:
        """Count bytes that are about to be written. SpillError if there may not be so many."""
        with self._lock:
            used = self._settled()
            if self.limit is not None and used + nbytes > self.limit:
                raise SpillError(
                    f"Options.spill_limit is {self.limit:,} bytes; {used:,} are in use and {nbytes:,} more are "
                    "needed: raise it, or give the pipeline more memory"
                )
            self._used = used + nbytes
            self._peak = max(self._peak, self._used)

    def give_back(self, nbytes: int) -> None:
        """Bytes that are no longer on disk."""
        self._returned.append(nbytes)

    def _settled(self) -> int:
        while self._returned:
            self._used -= self._returned.popleft()
        return self._used
