"""Files that are read and written at any place, by this process and others."""

import errno
import fcntl
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

_IOV_MAX = 512


class OpenFile:
    """An open file, closed when nobody refers to it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._process = os.getpid()
        self._close = weakref.finalize(self, os.close, number)
        # At the interpreter's end the system closes it: a cache that is closed only then has rows to write, and holds
        # a lock until they are written.
        self._close.atexit = False

    @staticmethod
    def existing(path: Path) -> "OpenFile | None":
        """The file of that name, to write if that is allowed; None if there is none."""
        try:
            return OpenFile(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        except FileNotFoundError:
            return None
        except OSError:
            return OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    @staticmethod
    def locked(path: Path) -> "OpenFile | None":
        """The file of that name, made if there is none, with a lock on it; None if another process has that."""
        file = OpenFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
        try:
            fcntl.flock(file.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        return file

    def unlock(self) -> None:
        """Give up the lock, if this process took it, and the file."""
        if self.mine:
            # To close it is not enough: processes that were forked meanwhile may have it open too.
            fcntl.flock(self.number, fcntl.LOCK_UN)
        self.close()

    @property
    def size(self) -> int:
        """Bytes, at the moment."""
        return os.fstat(self.number).st_size

    @property
    def mine(self) -> bool:
        """Whether this process opened it, and not one that it was forked from."""
        return self._process == os.getpid()

    def is_at(self, path: Path) -> bool:
        """Whether that is still its name."""
        try:
            found, own = os.stat(path), os.fstat(self.number)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # Nobody can tell.
            return True
        return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)

    def read(self, offset: int, count: int) -> memoryview | None:
        """These bytes in memory of their own; None if the file ends before, or the disk cannot read them."""
        # Unlike a bytearray, not filled with zeros first, and aligned.
        view, done = np.empty(count, np.uint8).data, 0
        while done < count:
            try:
                got = os.preadv(self.number, [view[done:]], offset + done)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                got = 0
            if got == 0:
                return None
            done += got
        return view

    def write(self, offset: int, pieces: Sequence[Any]) -> None:
        """These pieces, one behind another."""
        views = [memoryview(piece).cast("B") for piece in pieces if len(piece)]
        while views:
            done = os.pwritev(self.number, views[:_IOV_MAX], offset)
            offset += done
            while views and done >= len(views[0]):
                done -= len(views.pop(0))
            if done:
                views[0] = views[0][done:]

    def append(self, end: int, pieces: Sequence[Any]) -> None:
        """The same at its end, whole or not at all."""
        try:
            self.write(end, pieces)
        except OSError:
            os.ftruncate(self.number, end)
            raise

    def close(self) -> None:
        """Give it up, and locks with it."""
        self._close()


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
