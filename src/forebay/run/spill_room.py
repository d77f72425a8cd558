"""How much may go to disk, and where: asked by every run, most of which never write anything."""

import os
import sys
import threading
import weakref
from collections import deque
from typing import Protocol

from forebay.errors import SpillError
from forebay.forks import tell_children


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


class Kept(Protocol):
    """Rows that are kept from one iteration to the next, perhaps in files that an earlier one wrote."""

    def on_disk_beside(self, store: "SpillStore") -> int:
        """Bytes in files that do not count in that store."""


class SpillStore:
    """The files of one pipeline: where they are, and how much they may take up together.

    Args:
        folder: None for the system's temporary folder, or ``/var/tmp`` if that one is only memory.
        limit: the most bytes of all files together; None for as many as the disk has.
        owner: the same for all pipelines of one dataset, by which its files are told from those of others.
    """

    def __init__(
        self, folder: "str | os.PathLike[str] | None" = None, limit: int | None = None, owner: object = None
    ) -> None:
        self.folder = folder
        self.limit = limit
        self.owner = object() if owner is None else owner
        self._lock = threading.Lock()
        self._used = 0
        self._peak = 0
        self._kept: weakref.WeakSet[Kept] = weakref.WeakSet()
        # The garbage collector may close a file on a thread that has the lock, so what is given back is only left here.
        self._returned: deque[int] = deque()
        tell_children(self)

    def in_child(self) -> None:
        """Called by itself in a forked child."""
        self._lock = threading.Lock()

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

    def reads(self, kept: Kept) -> None:
        """What was kept is read here too."""
        with self._lock:
            self._kept.add(kept)

    @property
    def beside(self) -> int:
        """Bytes of what is read here and was written by others, which count in their limits."""
        with self._lock:
            kept = list(self._kept)
        return sum(each.on_disk_beside(self) for each in kept)

    def reserve(self, nbytes: int) -> None:
        """Count bytes that are about to be written. SpillError if there may not be so many."""
        with self._lock:
            used = self._settled()
            if self.limit is not None and used + nbytes > self.limit:
                raise SpillError(
                    f"Options.spill_limit is {self.limit:,} bytes; {used:,} are in use and {nbytes:,} more are "
                    "needed: raise it (memory_report() tells how much goes to disk), or give the pipeline more memory"
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
