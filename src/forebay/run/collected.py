"""Closing what nobody refers to any more, from wherever that is noticed.

The garbage collector runs in the middle of anything: on a thread that is to be joined, or on one that holds a lock
for which such a thread waits. Nothing may be waited for there, and no lock be taken. So what is found there is closed
on a thread of its own.
"""

import _thread
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

from forebay.run.leaving import is_leaving

NAME = "forebay"
"""What the names of all threads begin with that work for datasets."""
# Whoever asks for a collection finds all of it gone afterwards. Not for ever: it may hold what the thread waits for.
_PATIENCE = 2.0


def close_when_collected(owner: Any, close: Callable[[], object]) -> "weakref.finalize[..., Any]":
    """Have `close` called when the owner is gone, or the interpreter ends."""
    return weakref.finalize(owner, _close, close)


def _close(close: Callable[[], object]) -> None:
    ours = threading.current_thread().name.startswith(NAME)
    if is_leaving() or not (ours or _is_collecting()):
        close()
        return
    closed = _thread.allocate_lock()
    closed.acquire()
    # Not a Thread at once: to start one takes locks, which this very thread may hold.
    _thread.start_new_thread(_hand_over, (close, closed))
    if not ours:
        closed.acquire(timeout=_PATIENCE)


def _is_collecting() -> bool:
    """Whether the garbage collector is at work; if it does not tell, yes.

    A collection counts one up for the next older generation, but is left out while another is under way. Not by
    ``gc.callbacks``: a Ctrl-C that happens to be noticed in one of these is lost.
    """
    before = gc.get_count()[1]
    gc.collect(0)
    return gc.get_count()[1] == before


def _hand_over(close: Callable[[], object], closed: "_thread.LockType") -> None:
    def run() -> None:
        try:
            close()
        finally:
            closed.release()

    threading.Thread(target=run, name=f"{NAME} closing", daemon=True).start()
