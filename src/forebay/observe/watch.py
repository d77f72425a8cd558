"""``watch``: does a training loop leak?"""

import gc
import sys
import threading
import time
from collections.abc import Callable
from os import PathLike
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import IO

from forebay.block import Block
from forebay.errors import PlanError
from forebay.forks import tell_children
from forebay.observe.allocations import Allocations
from forebay.observe.bins import Bins
from forebay.observe.census import Census, census
from forebay.observe.children import Children
from forebay.observe.conclude import Evidence, conclude, without_garbage
from forebay.observe.heap import usage_reader
from forebay.observe.holders import named
from forebay.observe.judge import ALONE
from forebay.observe.memory import ResidentMemory
from forebay.observe.recorder import Recorder, Source
from forebay.observe.report import report
from forebay.observe.stages import Stages
from forebay.observe.use import Use
from forebay.observe.verdict import Verdict
from forebay.plan.check import flag
from forebay.run import observers
from forebay.run.leaving import join
from forebay.run.observers import Observed
from forebay.uninterrupted import uninterrupted

_INTERVAL = 0.05  # Seconds between two looks of the thread.
_CHILDREN_SHARE = 0.01  # Of a processor's time, for looking at child processes ...
_CENSUS_SHARE = 0.01  # ... and for counting objects.


class Watch:
    """A watch over the memory of this process and its children; made by ``watch``."""

    def __init__(self, types: bool, tracemalloc: bool) -> None:
        self._memory = ResidentMemory()
        self._stages = Stages()
        usage = usage_reader()
        use = Use(usage, self._stages.leased) if usage is not None else None
        self._recorder = Recorder(self._memory.read, lambda: self._stages.held, use, lambda: self._memory.shared)
        self._children = Children()
        self._children_bins = Bins()
        self._types = types
        self._allocations = Allocations() if tracemalloc else None
        self._censuses: list[Census] = []
        self._census_seconds = 0.0
        self._census_memory = 0
        self._counting = threading.Lock()
        self._commands: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._look_around, name="forebay watch", daemon=True)
        self._hook = _Hook(self._recorder, self._stages, self._epoch_ends)
        self._began = 0.0
        self._baseline = self._shared_memory = 0
        self._verdict: Verdict | None = None
        self._state = "new"
        tell_children(self)

    def in_child(self) -> None:
        """Called by itself in a forked child."""
        self._counting = threading.Lock()

    def __enter__(self) -> "Watch":
        if self._state != "new":
            raise PlanError("a watch is for one run: call fb.watch() again")
        self._state = "running"
        self._children.look()
        if self._allocations is not None:
            self._allocations.begin()
        self._count_objects()
        self._began = time.monotonic()
        # Last of all, so that what the watch itself needs is not counted.
        self._shared_memory = self._memory.shared_memory()
        self._baseline = self._recorder.begin()
        observers.add(self._hook)
        uninterrupted(self._thread.start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._state != "running":
            raise PlanError("a watch ends once, and not before it begins: use it as `with fb.watch() as w:`")
        observers.remove(self._hook)
        self._commands.put(None)
        join(self._thread)
        try:
            # Much may have come since the thread looked last, if the loop was brief or the machine is busy.
            self._look_at_children()
            self._verdict = self._conclude()
            if self._verdict.kind == "leak" and self._verdict.where == "process":
                self._verdict = without_garbage(self._verdict, self._garbage())
        finally:
            self._state = "over"
            if self._allocations is not None:
                self._allocations.end()
            self._memory.close()

    def step(self) -> None:
        """Say that a training step is over. Without it, elements that Forebay iterators hand out are the steps.

        From the first call on, these calls are the only steps. A call takes a few microseconds.

        >>> import forebay as fb
        >>> with fb.watch() as w:
        ...     for _ in range(30):
        ...         w.step()
        >>> w.verdict.steps
        30
        """
        self._only_while_running("step")
        self._recorder.step(Source.USER)

    def epoch(self) -> None:
        """Say that an epoch is over. Without it, a Forebay iterator that has come to its end is an epoch.

        What fills up and is emptied again within every epoch can then be told from a leak.

        >>> import forebay as fb
        >>> with fb.watch() as w:
        ...     for _ in range(3):
        ...         for _ in range(10):
        ...             w.step()
        ...         w.epoch()
        >>> w.verdict.epochs
        3
        """
        self._only_while_running("epoch")
        self._epoch_ends()
        self._recorder.epoch(Source.USER)

    @property
    def verdict(self) -> Verdict:
        """What has been found out: so far, while the block runs, and in the end.

        >>> import forebay as fb
        >>> with fb.watch() as w:
        ...     for batch in fb.Dataset.range(1000).batch(10):
        ...         pass
        >>> w.verdict.kind in ("plateau", "growth", "leak", "unclear")
        True
        >>> w.verdict.steps, w.verdict.epochs
        (100, 1)
        """
        if self._state == "new":
            raise PlanError("nothing has been watched yet: with fb.watch() as w: ...")
        return self._verdict if self._verdict is not None else self._conclude()

    def report(self, file: IO[str] | None = None) -> None:
        """Print the verdict, the figures behind it, what grew, and what to do about it.

        Returns None; give it a `file` to have the text, or ask ``verdict`` for the figures.

        Args:
            file: where to print; the standard output by default.

        >>> import io
        >>> import forebay as fb
        >>> with fb.watch() as w:
        ...     for batch in fb.Dataset.range(1000).batch(10):
        ...         pass
        >>> text = io.StringIO()
        >>> w.report(text)
        >>> "What to do:" in text.getvalue()
        True
        """
        print(report(self.verdict), file=file or sys.stdout)

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw memory over steps into a file; its ending says in which format. Needs matplotlib.

        The band is between the lowest and the highest reading, the dashed line is the slope of the verdict, what is
        shaded counts as warm-up, dotted lines are ends of epochs.

        >>> import tempfile
        >>> import forebay as fb
        >>> with fb.watch() as w:
        ...     for batch in fb.Dataset.range(1000).batch(10):
        ...         pass
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     w.plot(f"{folder}/memory.png")
        """
        from forebay.observe.plot import plot

        recorder = self._recorder
        resident, children = recorder.memory.curve(), self._children_bins.curve()
        plot(path, self.verdict, resident, recorder.readings(), children, recorder.marks)

    def _only_while_running(self, name: str) -> None:
        if self._state != "running":
            raise PlanError(f"{name}() is for inside the block: with fb.watch() as w: ...")

    def _conclude(self) -> Verdict:
        final = self._memory.read()
        shared = self._memory.shared - self._recorder.shared_before
        self._stages.look()
        if self._types:
            self._count_objects()
        return conclude(
            Evidence(
                recorder=self._recorder,
                stages=self._stages,
                children=self._children,
                children_curve=self._children_bins.curve(),
                censuses=tuple(self._censuses),
                lines=self._allocations.grown() if self._allocations is not None else (),
                baseline=self._baseline,
                final=final,
                shared=shared,
                in_shared_memory=self._memory.shared_memory() - self._shared_memory,
            )
        )

    def _garbage(self) -> int:
        """What a collection frees: in a loop that makes few other objects, Python may put it off for long."""
        usage = usage_reader()
        before = usage().live if usage is not None else self._memory.read()
        gc.collect()
        return before - (usage().live if usage is not None else self._memory.read())

    def _count_objects(self) -> None:
        # A thread and the loop may both find that it is time.
        if not self._types or not self._counting.acquire(blocking=False):
            return
        try:
            began = time.monotonic()
            # The first, the last, and two between, which come at doubling distances.
            if len(self._censuses) > 3:
                del self._censuses[1]
            found = census(self._recorder.memory.count)
            if self._censuses:
                found = named(self._censuses[0], found, self._censuses[-1])
            self._censuses.append(found)
            self._census_memory = self._memory.read()
            self._census_seconds += time.monotonic() - began
        finally:
            self._counting.release()

    def _epoch_ends(self) -> None:
        """Count what there is before the buffers of an epoch go, and with them, or with the loop, what keeps it."""
        if self._memory.read() - self._census_memory < ALONE:
            return
        if len(self._censuses) < 2 or self._census_is_due(time.monotonic()):
            self._count_objects()

    def _look_around(self) -> None:
        """The thread: what is too slow for every step, and steps themselves where nobody counts them."""
        next_children = 0.0
        while True:
            try:
                self._commands.get(timeout=_INTERVAL)
                return
            except Empty:
                pass
            self._recorder.step(Source.CLOCK)
            now = time.monotonic()
            if now >= next_children:
                next_children = now + self._look_at_children() / _CHILDREN_SHARE
            if self._census_is_due(now):
                self._count_objects()

    def _look_at_children(self) -> float:
        """Take a reading of each; how many seconds that took."""
        below, took = self._children.look()
        self._children_bins.add(below)
        return took

    def _census_is_due(self, now: float) -> bool:
        if not self._types:
            return False
        expected = self._census_seconds / len(self._censuses)
        afford = _CENSUS_SHARE * (now - self._began)
        doubled = self._recorder.memory.count >= 2 * max(self._censuses[-1].step, 8)
        return doubled and expected * len(self._censuses) <= afford


class _Hook:
    """What running iterators tell, turned into steps and epochs."""

    def __init__(self, recorder: Recorder, stages: Stages, ends: Callable[[], None]) -> None:
        self._recorder = recorder
        self._stages = stages
        self._ends = ends
        self._leader: str | None = None  # Whose ends are epochs: not those of an evaluation in between.
        self._open = False  # Whether one of the leader's has begun and not ended.

    def block(self, iterator: Observed, block: Block) -> None:
        where = iterator.where
        self._leader = self._leader or where
        self._stages.handed(iterator, block)
        if self._stages.block(iterator) and where == self._leader:
            if self._open:
                self._recorder.epoch(Source.ITERATORS)  # The one before was left before its end.
            self._open = True

    def element(self) -> None:
        self._recorder.step(Source.ITERATORS)

    def ended(self, iterator: Observed) -> None:
        self._stages.ended(iterator)
        if iterator.where == self._leader:
            self._open = False
            self._ends()
            self._recorder.epoch(Source.ITERATORS)

    def closed(self) -> None:
        self._recorder.settled()


def watch(*, types: bool = True, tracemalloc: bool = False) -> Watch:
    """Watch the memory of a training loop, and tell a leak from what only looks like one.

    Put it around any loop, with Forebay datasets in it or without. Steps and epochs are taken from Forebay iterators
    that run inside; ``w.step()`` and ``w.epoch()`` say them for other loops. With neither, a thread looks at memory
    twenty times a second and each look counts as a step.

    The verdict is "plateau", "growth" (buffers that fill, with an end), "leak", or "unclear" if the run was too short
    to tell: at least thirty steps are needed, and a rise of 2 MiB. It rests on the Theil-Sen slope and the
    Mann-Kendall test of what allocators say is in use, between epochs and in groups of steps; resident memory, which
    goes up with every peak and stays there, only has to agree. ``forebay.observe.judge`` has the rules.

    A step costs some 7 µs, or 2 to 4 % of its time. Child processes and objects are looked at by a thread that takes
    at most 3 % of the time.

    Args:
        types: count Python objects by type to tell which grew: at the beginning, at the end, once after an epoch that
            added 12 MiB, and in between if it takes less than a hundredth of the time. Takes a tenth of a second per
            100,000 objects.
        tracemalloc: also find the lines of your code whose allocations grew. This makes Python several times slower.

    >>> import forebay as fb
    >>> kept = []
    >>> with fb.watch() as w:
    ...     for batch in fb.Dataset.range(100_000).batch(1000).map(lambda x: np.ones((len(x), 50))):
    ...         kept.append(batch)
    >>> w.verdict.types[0].name, len(kept)
    ('numpy.ndarray', 100)
    """
    return Watch(flag("fb.watch", "types", types), flag("fb.watch", "tracemalloc", tracemalloc))
