"""How long to wait for a thread that may be inside a user's function."""

import atexit
import threading
import time

# Seconds for all of them. A daemon thread that is not done by then never will be, and ends with the process.
_AT_EXIT = 1.0
_NAP = 0.005

_until: float | None = None
_watching = False


def watch_for_exit() -> None:
    """Notice from now on when the interpreter ends.

    Exit functions run last in, first out: calling this after a ``weakref.finalize`` was made puts the notice before
    the finalizers, whichever of the two the process used first.
    """
    global _watching
    if not _watching:
        _watching = True
        atexit.register(_leave)


def _leave() -> None:
    global _until
    _until = time.monotonic() + _AT_EXIT


def is_leaving() -> bool:
    """Whether the interpreter ends."""
    return _until is not None


def rest_if_leaving() -> None:
    """On a daemon thread of a program that ends, wait for that.

    What such a thread raises is printed, and to be ended in the middle of printing is a crash to Python.
    """
    if is_leaving() and threading.current_thread().daemon:
        threading.Event().wait()


def join(thread: threading.Thread) -> None:
    """Wait until the thread has ended; while the interpreter ends, not for ever."""
    # The last reference to an iterator may go on its own worker, which then cannot wait for itself.
    if threading.current_thread() is thread:
        return
    thread.join(None if _until is None else max(0.0, _until - time.monotonic()))
    # Where a Ctrl-C ends a join, Python 3.11 takes the thread for stopped while it still runs, and later joins return
    # at once. It is listed until it has come to its end.
    while thread in threading.enumerate() and (_until is None or time.monotonic() < _until):
        time.sleep(_NAP)
