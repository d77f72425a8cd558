"""Steps that a Ctrl-C may not cut in two, and waits that it must end."""

import signal
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

# A Ctrl-C that comes just before the main thread begins to wait is noticed only when it next runs Python code.
GLANCE = 0.3


def take(queue: "SimpleQueue[T]") -> T:
    """The next thing in the queue, however long that takes, unless Ctrl-C is pressed."""
    while True:
        try:
            return queue.get(timeout=GLANCE)
        except Empty:
            continue


def uninterrupted(step: Callable[[], object]) -> None:
    """Do it, and let a Ctrl-C that comes meanwhile be raised afterwards.

    For starting threads above all: ``Thread.start`` waits on a Condition, and an interrupt there can leave it locked,
    so that the new thread waits for ever and so does whoever joins it. Python delivers signals to the main thread
    alone, so elsewhere there is nothing to hold back.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        step()
        return
    held: list[tuple[int, FrameType | None]] = []
    try:
        signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
        step()
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])
