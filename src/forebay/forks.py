"""What a forked child sets right before it goes on: its parent's other threads are not there to release a lock."""

import os
import weakref
from threading import Lock, RLock
from typing import Protocol

_known: "weakref.WeakSet[Forked]" = weakref.WeakSet()


class Forked(Protocol):
    """Has a lock that threads of this process share."""

    def in_child(self) -> None:
        """Called in a forked child, where nobody else is: have a free lock, and nothing that is half done."""


def tell_children(owner: Forked) -> None:
    """Have it told in every child that is forked while it is there. As the last step of making it.

    In a child that is forked meanwhile, nobody will ever have what is half made, and one that fails to be told would
    keep others from it.
    """
    _known.add(owner)


def is_torn(lock: "Lock | RLock") -> bool:
    """Whether a thread that is not there has that lock, and so may have left undone what it was about to do."""
    free = lock.acquire(blocking=False)
    if free:
        lock.release()
    return not free


def _in_child() -> None:
    for owner in list(_known):
        owner.in_child()


os.register_at_fork(after_in_child=_in_child)
