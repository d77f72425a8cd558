"""Whether a function keeps the interpreter lock to itself."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

from forebay._native import lock_holder, lock_wait, queued_seconds
from forebay.run.leaving import join
from forebay.uninterrupted import uninterrupted

R = TypeVar("R")

# How long the probe sleeps before it asks for the lock again.
_NAP = 0.0005
# How many such naps it takes first, where it can look who has the lock without asking for it.
_LOOKS = 8
# Below this, the figures are mostly chance.
_ENOUGH_SECONDS = 0.02
_ENOUGH_NAPS = 7
_ENOUGH_LOOKS = 30
# What is to be seen of a call that neither computes all the time nor waits all the time.
_DOUBTFUL_SECONDS = 0.25


@dataclass(slots=True)
class Seen:
    """What is known of a function's calls. One iteration may be too short for that; the next one then adds to it."""

    rows: int = 0
    cpu: float = 0.0
    most_rows: int = 0
    """Of one call."""
    wall: float = 0.0  # The caller's,
    in_line: float = 0.0  # and the thread's, which has to have had a processor for the caller to go on.
    waits: list[float] = field(default_factory=list)
    looks: int = 0
    """How often it was looked who has the lock while the call was at work; 0 where the interpreter does not tell,"""
    holds: int = 0
    """and how often it was the call."""

    @property
    def seconds(self) -> float:
        """How long the calls took, without what a busy machine added to it."""
        # Who is made to hand over the lock goes on only when the other, too, has had a processor to take it.
        return max(self.wall - self.in_line, self.cpu)

    @property
    def enough(self) -> bool:
        """Whether it tells what it is there to tell."""
        if self.seconds < _ENOUGH_SECONDS:
            return False
        if self.cpu < self.seconds / 2:
            # It waits: for something of its own, or for the lock, if others have it just now.
            return self.cpu < self.seconds / 10 or self.seconds >= _DOUBTFUL_SECONDS
        return self.looks >= _ENOUGH_LOOKS if self.looks else len(self.waits) >= _ENOUGH_NAPS

    @property
    def held(self) -> float:
        """The share of the time in which nobody else could have had the lock."""
        if self.looks:
            return self.holds / self.looks
        if not self.waits:
            return 0.0
        # Short of the truth where a function often lets go of the lock for an instant, as copies of arrays do.
        # The median: a thread of some other kind that loses its processor while it has the lock makes one long wait.
        waited = sorted(self.waits)[len(self.waits) // 2]
        return waited / (waited + _NAP)


class GilProbe:
    """Runs calls and, beside them, a thread that sleeps a moment at a time and then looks who has the lock.

    Where the interpreter does not tell, it notes how long it waits for it. A function that computes in Python lets go
    of it every five milliseconds at most; one that releases it, or waits, lets it through at once.

    Time that a thread spent waiting for a processor is taken out, so that a busy machine does not count as a busy lock.
    """

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self._calls: SimpleQueue[bool] = SimpleQueue()
        self._running = False
        self._thread: threading.Thread | None = None
        self._holder = 0  # The calling thread, as it is called when it has the lock.
        self._clock: int | None = None  # What the calling thread has used of a processor; None before its first call.
        self.wanted = True

    def watch(self, function: Callable[..., R], arguments: tuple[Any, ...]) -> R:
        """Call the function with the arguments, the first of which is a block. One call at a time."""
        if self._clock is None:
            # First calls import and allocate what later ones find there.
            self._holder = lock_holder()
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
            return function(*arguments)
        self._running = True
        self._calls.put(True)
        began, cpu, queued = time.perf_counter(), time.thread_time(), queued_seconds()
        try:
            return function(*arguments)
        finally:
            self._running = False
            self.seen.rows += arguments[0].rows
            self.seen.most_rows = max(self.seen.most_rows, arguments[0].rows)
            self.seen.cpu += time.thread_time() - cpu
            self.seen.wall += time.perf_counter() - began - (queued_seconds() - queued)

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
            assert self._clock is not None
            while self._running:
                used = time.clock_gettime(self._clock)
                waited, in_line, looks, holds = lock_wait(
                    _NAP, _LOOKS if self._holder else 1, self._holder, self._clock
                )
                used = time.clock_gettime(self._clock) - used
                self.seen.in_line += in_line
                if self._holder:
                    self.seen.looks += looks
                    self.seen.holds += holds
                # A call that had no processor, or has ended meanwhile, could not have kept the lock.
                elif self._running and used > (waited + _NAP) / 2:
                    self.seen.waits.append(waited)
