"""Files that have no name yet: they are called ``.<name>.forebay-<owner>`` in the folder that they are meant for.

An owner is a file ``.forebay-<owner>.lock`` beside them, one for all that a process writes into a folder at a time. Its
lock dies with the process: files whose owner can be locked, or is gone, were left by a crash, and whoever writes a file
of the same name next removes them.
"""

import contextlib
import fcntl
import os
import re
import secrets
import threading
from collections.abc import Iterator

_LOCK = re.compile(r"\.forebay-([0-9a-f]{8})\.lock")
_FILE = re.compile(r"\..+\.forebay-([0-9a-f]{8})", re.DOTALL)

_mutex = threading.Lock()
_owners: dict[tuple[int, str], list["_Owner"]] = {}
# A child that is forked while another thread has it would wait for ever.
os.register_at_fork(before=_mutex.acquire, after_in_parent=_mutex.release, after_in_child=_mutex.release)


class Unnamed:
    """The place of a file until it has its name. ``release`` when it has it, or was removed.

    OSError if nothing can be written there.
    """

    def __init__(self, path: str) -> None:
        folder, self._name = os.path.split(path)
        # A forked child has owners of its own: its parent may be done before it.
        self._key = (os.getpid(), os.path.abspath(folder))
        with _mutex:
            known = _owners.get(self._key, [])
            owner = next((each for each in known if self._name not in each.names), None)
            if owner is None:
                owner = _Owner(self._key[1])
                _owners[self._key] = [*known, owner]
            owner.names.add(self._name)
            self._owner: _Owner | None = owner
            owner.sweep(self._name)
        self.path = os.path.join(folder, _file_name(self._name, owner.token))

    def release(self) -> None:
        """Nothing is there any more."""
        with _mutex:
            owner, self._owner = self._owner, None
            if owner is None:
                return
            owner.names.discard(self._name)
            if owner.names or self._key[0] != os.getpid():
                return
            owner.close()
            _owners[self._key].remove(owner)
            if not _owners[self._key]:
                del _owners[self._key]


class _Owner:
    """The lock, the names of files that are being written, and what others had left in the folder before."""

    def __init__(self, folder: str) -> None:
        self.names: set[str] = set()
        self._folder = folder
        while True:
            self.token = secrets.token_hex(4)
            self._path = self._lock_of(self.token)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            # Somebody who sweeps may come between these two steps: then once more.
            if _lock(self._file) is not False and os.path.exists(self._path):
                break
            os.close(self._file)
        self._left: dict[str, set[str]] = {}
        # Where files can be written and not listed, those that were left stay.
        with contextlib.suppress(PermissionError):
            self._look()

    def _look(self) -> None:
        """The folder is listed once, not for each of many files."""
        locks = set()
        for entry in os.listdir(self._folder):
            if found := _FILE.fullmatch(entry):
                self._left.setdefault(found[1], set()).add(entry)
            elif found := _LOCK.fullmatch(entry):
                locks.add(found[1])
        for token in locks - {self.token} - set(self._left):
            self._remove(token, None)

    def sweep(self, name: str) -> None:
        """Remove what crashed processes left of files of this name."""
        for token, entries in self._left.items():
            if _file_name(name, token) in entries:
                self._remove(token, _file_name(name, token))

    def _remove(self, token: str, entry: str | None) -> None:
        """A file, and the lock if that was the last one, unless somebody has the lock."""
        left = self._left.get(token, set())
        with contextlib.suppress(OSError), _dead(self._lock_of(token)) as dead:
            if dead and entry is not None:
                os.unlink(os.path.join(self._folder, entry))
                left.discard(entry)
            if dead and not left:
                os.unlink(self._lock_of(token))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        os.close(self._file)

    def _lock_of(self, token: str) -> str:
        return os.path.join(self._folder, f".forebay-{token}.lock")


def _file_name(name: str, token: str) -> str:
    return f".{name}.forebay-{token}"


@contextlib.contextmanager
def _dead(path: str) -> Iterator[bool]:
    """Whether the owner with that lock is gone; it cannot come to life meanwhile."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        yield _lock(file) is True
    finally:
        os.close(file)


def _lock(file: int) -> bool | None:
    """False if another has it; None where files cannot be locked, so that nothing can be told of others."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
