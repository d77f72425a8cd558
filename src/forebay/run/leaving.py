"""How long to wait for a thread that may be inside a user's function."""

import atexit
import threading

_AT_EXIT = 1.0  # Seconds. A daemon thread that is not done by then never will be, and ends with the process.

_leaving = threading.Event()
_watching = False


def watch_for_exit() -> None:
    """Notice from now on when the interpreter ends.

    Exit functions run last in, first out: calling this after a ``weakref.finalize`` was made puts the notice before
    the finalizers, whichever of the two the process used first.
    """
    global _watching
    if not _watching:
        _watching = True
        atexit.register(_leaving.set)


def join(thread: threading.Thread) -> None:
    """Wait until the thread has ended; while the interpreter ends, not for ever."""
    # The last reference to an iterator may go on its own worker, which then cannot wait for itself.
    if threading.current_thread() is not thread:
        thread.join(_AT_EXIT if _leaving.is_set() else None)
