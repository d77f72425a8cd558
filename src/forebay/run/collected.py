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

_collecting: int | None = None
"""The thread on which the garbage collector runs. There is one at a time."""


def close_when_collected(owner: Any, close: Callable[[], object]) -> "weakref.finalize[..., Any]":
    """Have `close` called when the owner is gone, or the interpreter ends."""
    if _note not in gc.callbacks:
        gc.callbacks.append(_note)
    return weakref.finalize(owner, _close, close)


def _note(phase: str, _: dict[str, int]) -> None:
    global _collecting
    _collecting = _thread.get_ident() if phase == "start" else None


def _close(close: Callable[[], object]) -> None:
    ours = threading.current_thread().name.startswith(NAME)
    if is_leaving() or not (ours or _collecting == _thread.get_ident()):
        close()
        return
    closed = _thread.allocate_lock()
    closed.acquire()
    # Not a Thread at once: to start one takes locks, which this very thread may hold.
    _thread.start_new_thread(_hand_over, (close, closed))
    if not ours:
        closed.acquire(timeout=_PATIENCE)


def _hand_over(close: Callable[[], object], closed: "_thread.LockType") -> None:
    def run() -> None:
        try:
            close()
        finally:
            closed.release()

    threading.Thread(target=run, name=f"{NAME} closing", daemon=True).start()
