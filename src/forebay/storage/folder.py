"""A folder that appears whole or not at all, whatever happens to the process that writes it.

Files are written into ``.<name>.forebay-<random>/data`` beside the target, and that folder is renamed when it is
complete. Its owner holds a lock that dies with the process; a folder whose lock can be had was left by a crash, and
whoever saves to the same target next removes it.
"""

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable
from functools import cache

from forebay.errors import DataError, PlanError
from forebay.full_disk import not_written
from forebay.storage.input_file import is_url
from forebay.storage.manifest import is_saved_dataset
from forebay.storage.side_files import unfinished_prefix

_AT_FDCWD, _EXCHANGE = -100, 2
# What the folder of one who writes is called behind the prefix, and what may be in it.
_TOKEN = re.compile("[0-9a-f]{12}")
_PARTS = frozenset({"lock", "data", "old"})


def local_folder(call: str, path: str) -> str:
    """A path of this machine, also where it begins with ``file://`` or ``~``. PlanError for other URLs."""
    # A folder that is called ~ would be deleted by a command that deletes much more.
    path = os.path.expanduser(path.removeprefix("file://"))
    if is_url(path):
        raise PlanError(
            f"{call}({path!r}): the folder must be on a disk of this machine, since files of it are locked, exchanged "
            "and read in place; give a local path, and copy what is written there if others are to have it"
        )
    try:
        os.stat(path)
    except ValueError:
        raise PlanError(f"{call}({path!r}): no folder can have that name") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise PlanError(f"{call}({path!r}): the name is too long") from None
    return path


def _absolute(path: str) -> str:
    # Not by `abspath`: for that, what is above a link is where the link is, and not where it points to.
    return os.path.join("" if os.path.isabs(path) else os.getcwd(), path)


def from_root(call: str, path: str, how: Callable[[str], str] = _absolute) -> str:
    """The path from the root on. PlanError if that cannot be told."""
    try:
        return how(path)
    except FileNotFoundError:
        raise PlanError(f"{call}({path!r}): the current folder has been removed; give an absolute path") from None


class NewFolder:
    """What is written to `data` until ``commit`` puts it in the place of `path`.

    What `replaces` is true of may stand there in any case.
    """

    def __init__(
        self, path: str, call: str, overwrite: bool, replaces: Callable[[str], bool] = lambda folder: False
    ) -> None:
        # What a link points to is replaced, not the link.
        self.path = from_root(call, path, os.path.realpath)
        self._call = call
        self._overwrite = overwrite
        self._replaces = replaces
        self._process = os.getpid()
        parent = os.path.dirname(self.path)
        try:
            self.check_target()
            os.makedirs(parent, exist_ok=True)
            sweep(self.path)
            self._own, self._lock = _owned_folder(unfinished_prefix(self.path))
            self.data = os.path.join(self._own, "data")
            os.mkdir(self.data)
        except OSError as error:
            raise DataError(f"{call}({path!r}): cannot write there: {not_written(error, path)}") from error

    def check_target(self) -> None:
        """PlanError if something stands there that is not to be replaced."""
        if not os.path.lexists(self.path):
            return
        if not os.path.isdir(self.path):
            raise PlanError(f"{self._call}({self.path!r}): there is something else than a folder")
        if self._replaces(self.path):
            return
        if is_saved_dataset(self.path):
            if not self._overwrite:
                raise PlanError(f"{self._call}({self.path!r}): there is a saved dataset already, and overwrite=False")
        elif os.listdir(self.path):
            raise PlanError(
                f"{self._call}({self.path!r}): the folder holds other files, which would be removed; give a new one"
            )

    def commit(self) -> None:
        """Put the new folder in place, then remove what it replaced."""
        sync_folder(self.data)
        while True:
            try:
                # Onto nothing, or onto an empty folder.
                os.rename(self.data, self.path)
                break
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise DataError(
                        f"{self._call}({self.path!r}): cannot put it there: {not_written(error, self.path)}"
                    ) from error
            self.check_target()
            if exchange(self.data, self.path):
                break
        sync_folder(os.path.dirname(self.path))
        self.close()

    def close(self) -> None:
        """Remove what is left: everything, unless it was committed. A forked child leaves it to its parent."""
        if self._process == os.getpid():
            _remove(self._own)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep(path: str) -> None:
    """Remove what crashed processes left behind when they saved to this path."""
    parent = os.path.dirname(path)
    for entry in os.listdir(parent):
        folder = os.path.join(parent, entry)
        if not _is_unfinished(folder, unfinished_prefix(path)):
            continue
        lock = _locked(folder)
        if lock is None:
            continue
        try:
            old = os.path.join(folder, "old")
            if os.path.isdir(old) and not os.path.lexists(path):
                # Its owner died between the two renames that a file system without an exchange needs.
                os.rename(old, path)
            _remove(folder)
        finally:
            os.close(lock)


def _is_unfinished(folder: str, prefix: str) -> bool:
    """Whether it is called as such folders are and holds nothing else: others may begin their names in the same way."""
    if not folder.startswith(prefix) or not _TOKEN.fullmatch(folder, len(prefix)):
        return False
    try:
        return _PARTS.issuperset(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _owned_folder(prefix: str) -> tuple[str, int]:
    """A new folder and the lock on it. A sweeper may come between the two steps: then once more."""
    while True:
        folder = prefix + secrets.token_hex(6)
        os.mkdir(folder)
        lock = _locked(folder)
        if lock is not None:
            return folder, lock


def _locked(folder: str) -> int | None:
    """The lock of a folder, or None if another process has it or the folder is gone."""
    name = os.path.join(folder, "lock")
    try:
        lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except (FileNotFoundError, NotADirectoryError):
        # Files without a name have such names too.
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(name).st_ino == os.fstat(lock).st_ino:
            return lock
    except (BlockingIOError, FileNotFoundError):
        os.close(lock)
        return None
    os.close(lock)
    return None


def _remove(folder: str) -> None:
    """Everything in a folder, the lock last: as long as that exists, nobody else touches the rest."""
    for entry in ("data", "old"):
        shutil.rmtree(os.path.join(folder, entry), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def exchange(new: str, old: str) -> bool:
    """Let two folders change places, in one step where the system can. False if `old` has gone meanwhile."""
    swap = _renameat2()
    if swap is not None:
        if swap(_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old), _EXCHANGE) == 0:
            return True
        code = ctypes.get_errno()
        if code == errno.ENOENT:
            return False
        if code not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise DataError(f"{old} cannot be replaced: {os.strerror(code)}")
    aside = os.path.join(os.path.dirname(new), "old")
    try:
        os.rename(old, aside)
    except FileNotFoundError:
        return False
    os.rename(new, old)
    return True


@cache
def _renameat2() -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def sync_folder(path: str) -> None:
    """See the names in a folder on the disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
