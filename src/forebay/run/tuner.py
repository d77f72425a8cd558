"""Moves the number of workers, and how far ahead they work, where the user left it to AUTOTUNE."""

import time
import weakref
from dataclasses import dataclass, field
from typing import Protocol

from forebay.run.meter import Meter

# Long enough for a change to show, short enough to be done with a dozen of them in some seconds.
_INTERVAL = 0.15
# Below this share of the time, waiting for a step is not worth more workers.
_WAITING = 0.05
# Workers that are idle for more than half of the time are too many; those of a step that everything waits for work for
# more than this share of it.
_IDLE = 0.5
_BUSY = 0.8
# A function that computes for less than this share of its time waits for something else than a processor.
_COMPUTING = 0.3
# What more workers have to bring to be kept; of those that compute, also this part of what they could bring at best:
# each of them takes a processor from others, and rates differ by a few percent from one interval to the next.
_GAIN = 1.05
_OF_POSSIBLE = 0.3
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
    rest: int = 0  # Intervals to leave it as it is.
    idle: bool = False  # Whether its workers had little to do.


@dataclass(slots=True)
class _Look:
    """What a step did in the last interval: rows a second, the share of the time that its consumer waited for it and
    that its workers were busy, and the share of their time that they computed. Other steps leave it `cpus` processors.
    `was_idle` is what `idle` was before.
    """

    step: Tunable
    past: _Past
    rate: float
    waited: float
    used: float
    share: float
    cpus: float
    was_idle: bool = False

    @property
    def holds_up(self) -> bool:
        """Whether others wait for it although its workers do what they can."""
        return self.waited > _WAITING and self.used > _IDLE

    def more(self) -> tuple[int, float] | None:
        """How many workers to try, and how many times as much they have to do; None if there is no use for more."""
        workers = self.step.tuned_workers
        if not self.holds_up or self.past.rest or workers >= self.step.most_workers:
            return None
        if self.share < _COMPUTING:
            return min(workers * 2, self.step.most_workers), _GAIN
        # What they would use if all worked: some may be starting still, or wait for a processor.
        if self.cpus - workers * self.share > 0.5:
            return workers + 1, max(_GAIN, 1 + _OF_POSSIBLE / workers)
        return None

    @property
    def idle(self) -> bool:
        """Whether fewer workers would do."""
        return self.waited < _WAITING / 5 and 0 < self.used < _IDLE and self.step.tuned_workers > 1


@dataclass(slots=True)
class _Trial:
    """More workers, of which it is not yet known whether they are any good: how many there were before in each step,
    what the first of the steps did then, and how many times as much it has to do now."""

    rate: float
    gain: float = 1.0
    before: list[tuple[weakref.ref[Tunable], int]] = field(default_factory=list)
    settling: bool = True  # The interval of the change itself shows nothing.

    def extend(self, look: _Look, workers: int, gain: float) -> None:
        """Give a step more workers, too."""
        self.before.append((weakref.ref(look.step), look.step.tuned_workers))
        self.gain = max(self.gain, gain)
        self.settling = True
        look.step.tuned_workers = workers

    def steps(self) -> list[Tunable | None]:
        """Those that were given more; None for one that has ended since."""
        return [step() for step, _ in self.before]

    def take_back(self) -> None:
        """Have as many workers as before."""
        for step, (_, workers) in zip(self.steps(), self.before):
            if step is not None:
                step.tuned_workers = workers


class Tuner:
    """Looks at every step once in an interval, and tries more workers in one step at a time.

    A step that its consumer waits for, and whose workers are all busy, gets more of them: twice as many if they
    mostly wait themselves, one more if they compute and the processors are not used up yet. If that brings nothing
    because now another step holds everything up, that one gets more as well. If it still brings nothing, all are taken
    back. Workers that idle are let go.
    """

    def __init__(self, cpus: int, enabled: bool) -> None:
        self._cpus = cpus
        self.enabled = enabled
        self._steps: weakref.WeakKeyDictionary[Tunable, _Past | None] = weakref.WeakKeyDictionary()
        self._trial: _Trial | None = None
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
            self._move(self._looks(elapsed))

    def _looks(self, elapsed: float) -> list[_Look]:
        looks = []
        computing = 0.0
        for step, past in list(self._steps.items()):
            meter = step.meter
            now = _Past(meter.rows, meter.waited, meter.worked, meter.cpu)
            self._steps[step] = now
            if past is None or elapsed > 50 * _INTERVAL:
                continue
            now.rest = max(0, past.rest - 1)
            worked, cpu = now.worked - past.worked, now.cpu - past.cpu
            computing += cpu / elapsed
            looks.append(
                _Look(
                    step,
                    now,
                    rate=(now.rows - past.rows) / elapsed,
                    waited=(now.waited - past.waited) / elapsed,
                    used=worked / elapsed / max(step.tuned_workers, 1),
                    share=cpu / worked if worked else 0.0,
                    cpus=self._cpus + cpu / elapsed,
                    was_idle=past.idle,
                )
            )
        for look in looks:
            look.cpus -= computing
        return looks

    def _move(self, looks: list[_Look]) -> None:
        """Change workers, or leave them."""
        trial = self._trial
        found = {id(look.step): look for look in looks}
        tried = [found.pop(id(step)) for step in (trial.steps() if trial is not None else []) if id(step) in found]
        others = list(found.values())
        if trial is not None:
            self._judge(trial, tried, others)
        for look in others:
            # With two trials at once, the gain of one would speak for the other.
            if self._trial is None and trial is None and (more := look.more()) is not None:
                self._trial = _Trial(look.rate)
                self._trial.extend(look, *more)
            else:
                # Twice in a row: whoever asks for rows may have paused for once, to save or to evaluate something.
                if look.idle and look.was_idle:
                    look.step.tuned_workers -= 1
                look.past.idle = look.idle

    def _judge(self, trial: _Trial, tried: list[_Look], others: list[_Look]) -> None:
        if trial.settling:
            trial.settling = False
            return
        if tried and tried[0].rate >= trial.rate * trial.gain:
            self._trial = None
            return
        if len(tried) == len(trial.before) and not any(look.holds_up and look.used > _BUSY for look in tried):
            for look in others:
                if (more := look.more()) is not None:
                    trial.extend(look, *more)
                    return
        trial.take_back()
        for look in tried:
            look.past.rest = _PATIENCE
        self._trial = None
