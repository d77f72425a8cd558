"""Whether a function keeps the interpreter lock to itself."""

import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from forebay.run.leaving import join
from forebay.run.uninterrupted import uninterrupted

R = TypeVar("R")

# How long the probe sleeps before it asks for the lock again.
_NAP = 0.0005
# Below this, the figures are mostly chance.
_ENOUGH_SECONDS = 0.02
_ENOUGH_NAPS = 3


class GilProbe:
    """Runs calls and, beside them, a thread that sleeps a moment at a time and notes how late it comes back.

    It comes back when it has the lock. A function that computes in Python lets go of it every five milliseconds at
    most; one that releases it, or waits, lets it through at once. Time that a thread spent waiting for a processor is
    taken out, so that a busy machine does not count as a busy lock.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[bool] = SimpleQueue()
        self._running = False
        self._thread: threading.Thread | None = None
        self._first = True
        self._naps = 0
        self._late = 0.0
        self.wanted = True
        self.rows = 0
        self.seconds = 0.0
        self.cpu = 0.0

    @property
    def enough(self) -> bool:
        """Whether it knows what it is there to find out."""
        return self.seconds >= _ENOUGH_SECONDS and self._naps >= _ENOUGH_NAPS

    @property
    def held(self) -> float:
        """The share of the time in which nobody else could have had the lock."""
        return self._late / (self._late + self._naps * _NAP)

    def watch(self, function: Callable[..., R], arguments: tuple[Any, ...]) -> R:
        """Call the function with the arguments, the first of which is a block. One call at a time."""
        if self._first:
            # First calls import and allocate what later ones find there.
            self._first = False
            return function(*arguments)
        self._running = True
        self._calls.put(True)
        began, cpu, queued = time.perf_counter(), time.thread_time(), _queued()
        try:
            return function(*arguments)
        finally:
            self._running = False
            self.rows += arguments[0].rows
            self.cpu += time.thread_time() - cpu
            self.seconds += max(0.0, time.perf_counter() - began - (_queued() - queued))

    def start(self) -> None:
        """Have the thread ready."""
        self._thread = threading.Thread(target=self._run, name="forebay probe", daemon=True)
        uninterrupted(self._thread.start)

    def stop(self) -> None:
        """End the thread. Calls are made without it from now on."""
        self.wanted = self._running = False
        if self._thread is not None:
            self._calls.put(False)
            join(self._thread)
            self._thread = None

    def _run(self) -> None:
        while self._calls.get():
            while self._running:
                began, queued = time.perf_counter(), _queued()
                time.sleep(_NAP)
                late = time.perf_counter() - began - _NAP - (_queued() - queued)
                if self._running:
                    self._late += max(0.0, late)
                    self._naps += 1


def _queued() -> float:
    """Seconds in which this thread could have run, had a processor been free; 0 where the system does not tell."""
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except OSError:
        return 0.0
    try:
        return int(os.read(file, 64).split()[1]) / 1e9
    finally:
        os.close(file)
