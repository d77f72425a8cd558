"""How much may go to disk, and where: asked by every run, most of which never write anything."""

import os
import threading

from forebay.errors import SpillError


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

    @property
    def used(self) -> int:
        """Bytes on disk at the moment."""
        return self._used

    def reserve(self, nbytes: int) -> None:
        """Count bytes that are about to be written. SpillError if there may not be so many."""
        with self._lock:
            if self.limit is not None and self._used + nbytes > self.limit:
                raise SpillError(
                    f"Options.spill_limit is {self.limit:,} bytes; {self._used:,} are in use and {nbytes:,} more are "
                    "needed: raise it, or give the pipeline more memory"
                )
            self._used += nbytes

    def give_back(self, nbytes: int) -> None:
        """Bytes that are no longer on disk."""
        with self._lock:
            self._used -= nbytes
