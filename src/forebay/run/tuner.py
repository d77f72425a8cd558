"""Moves the number of workers, and how far ahead they work, where the user left it to AUTOTUNE."""

import time
import weakref
from dataclasses import dataclass
from typing import Protocol

from forebay.run.meter import Meter

# Long enough for a change to show, short enough to be done with a dozen of them in some seconds.
_INTERVAL = 0.15
# Below this share of the time, waiting for a step is not worth more workers.
_WAITING = 0.05
# Workers that are idle for more than half of the time are too many.
_IDLE = 0.5
# A function that computes for less than this share of its time waits for something else than a processor.
_COMPUTING = 0.3
# What more workers have to bring to be kept.
_GAIN = 1.05
# Intervals after which a step that did not gain from more workers may try again.
_PATIENCE = 25


class Tunable(Protocol):
    """A step whose workers the tuner may change. Takes the new number up itself, when it is next pulled from."""

    meter: Meter
    tuned_workers: int
    most_workers: int


@dataclass(slots=True)
class _Past:
    """What was known of a step when it was last looked at."""

    rows: int
    waited: float
    worked: float
    cpu: float
    rate: float = 0.0
    trial: "_Trial | None" = None
    rest: int = 0  # Intervals to leave it as it is.


@dataclass(slots=True)
class _Trial:
    """More workers, of which it is not yet known whether they are any good."""

    workers: int  # How many there were before,
    rate: float  # and what they did.
    settling: bool = True  # The interval of the change itself shows nothing.


class Tuner:
    """Looks at every step once in an interval and changes one thing at a time in each.

    A step that its consumer waits for, and whose workers are all busy, gets more of them: twice as many if they
    mostly wait themselves, one more if they compute and the processors are not used up yet. If that brings nothing,
    they are taken back. Workers that idle are let go.
    """

    def __init__(self, cpus: int, enabled: bool) -> None:
        self._cpus = cpus
        self.enabled = enabled
        self._steps: weakref.WeakKeyDictionary[Tunable, _Past | None] = weakref.WeakKeyDictionary()
        self._due = 0.0
        self._last = 0.0

    def add(self, step: Tunable) -> None:
        """Look after this step, for as long as it lives."""
        if self.enabled:
            self._steps[step] = None
            self._due = min(self._due, time.perf_counter() + _INTERVAL) or time.perf_counter() + _INTERVAL

    def tick(self) -> None:
        """Called with every block; does something once in an interval."""
        if self._steps and (now := time.perf_counter()) >= self._due:
            elapsed, self._last, self._due = now - self._last, now, now + _INTERVAL
            self._look(elapsed)

    def _look(self, elapsed: float) -> None:
        computing = 0.0
        found = []
        for step, past in list(self._steps.items()):
            meter = step.meter
            now = _Past(meter.rows, meter.waited, meter.worked, meter.cpu)
            self._steps[step] = now
            if past is None or elapsed > 50 * _INTERVAL:
                continue
            now.rate = (now.rows - past.rows) / elapsed
            now.trial, now.rest = past.trial, max(0, past.rest - 1)
            computing += (now.cpu - past.cpu) / elapsed
            found.append((step, past, now))
        for step, past, now in found:
            own = (now.cpu - past.cpu) / elapsed
            self._move(step, past, now, elapsed, self._cpus - (computing - own))

    @staticmethod
    def _move(step: Tunable, past: _Past, now: _Past, elapsed: float, cpus: float) -> None:
        """Change its workers, or leave them. Other steps leave it so many processors."""
        worked = now.worked - past.worked
        waited = (now.waited - past.waited) / elapsed
        share = (now.cpu - past.cpu) / worked if worked else 0.0
        workers = step.tuned_workers
        used = worked / elapsed / max(workers, 1)
        if now.trial is not None:
            if now.trial.settling:
                now.trial.settling = False
                return
            if now.rate < now.trial.rate * _GAIN:
                step.tuned_workers = now.trial.workers
                now.rest = _PATIENCE
            now.trial = None
        elif waited > _WAITING and used > _IDLE and not now.rest and workers < step.most_workers:
            if share < _COMPUTING:
                wanted = workers * 2
            elif cpus - workers * share > 0.5:
                # What they would use if all worked: some may be starting still, or wait for a processor.
                wanted = workers + 1
            else:
                return
            now.trial = _Trial(workers, now.rate)
            step.tuned_workers = min(wanted, step.most_workers)
        elif waited < _WAITING / 5 and used < _IDLE and workers > 1 and worked:
            step.tuned_workers = workers - 1
