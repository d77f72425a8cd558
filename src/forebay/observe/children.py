"""The memory of child processes."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import psutil  # type: ignore[import-untyped]

from forebay.observe.bins import Bins, Curve
from forebay.observe.judge import ALONE, FLOOR, Finding, Series, follow
from forebay.observe.verdict import ChildGrowth
from forebay.system import read_text

_REMEMBERED = 64  # Workers that are started anew in each epoch must not add up here.
_LOADED = 1 << 18  # Bytes of code, by which a process that is still being started grows from one look to the next.
_FEW = 8  # Looks, for each quarter to have two.
# Times what exact readings take, before the next: 1 % of a processor. Each walks all pages of a process, which are
# many in one that leaks; looks between them go by what the system counts anyway, in some 50 µs.
_REST = 100


@dataclass(frozen=True, slots=True)
class Counted:
    """What the system counts of a process: its own and copied pages, files in its memory, code that it has loaded."""

    anonymous: int
    files: int
    code: int


@dataclass(slots=True)
class _Child:
    name: str
    first: int
    last: int
    exact: int  # When all pages were last walked ...
    anonymous: int  # ... and what was counted then.
    code: int
    libraries: int
    loaded: int  # What it had for itself when it last loaded a library.
    readings: Bins = field(default_factory=lambda: Bins(128))


@dataclass(frozen=True, slots=True)
class ChildrenCourse:
    """How child processes go: the one that leaks most, if any does; the slope of all that grow, per look.

    `open` is how the one goes that grew most of those that neither leak nor are level, and `grown` by how much.
    """

    leak: Finding | None = None
    slope: float = 0.0
    open: Finding | None = None
    grown: int = 0


class Children:
    """Memory of all processes below this one: what is theirs alone, since what they share is counted here already.

    So a forked worker that only reads what its parent loaded takes nothing, and takes more and more as the pages it
    shares are written to: the usual "leak" of forked data loaders, which resident memory does not show. Pages of files
    that it reads count for nobody.

    Each is judged by itself: workers that are started one after the other are no growth of any of them. Nor is what a
    process takes while it loads libraries, which is over when the code in its memory no longer becomes more.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Child] = {}
        self._next_exact = 0.0
        self._exact_seconds = 0.0

    def look(self) -> tuple[int, float]:
        """Their memory now, and how much processor time it took to tell, but for what is rationed here."""
        began = time.thread_time()  # Not by the clock: waiting for one's turn costs the others nothing.
        self._exact_seconds = 0.0
        walk = time.monotonic() >= self._next_exact
        total = sum(self._note(pid, walk) for pid in _below(os.getpid()))
        if walk:
            self._next_exact = time.monotonic() + _REST * self._exact_seconds
        return total, time.thread_time() - began - self._exact_seconds

    def _note(self, pid: int, walk: bool) -> int:
        child = self._seen.get(pid)
        counted = _counted(pid)
        if walk or child is None or counted is None:
            began = time.thread_time()
            found = _own_memory(pid)
            self._exact_seconds += time.thread_time() - began
        else:
            # A page more of its own is one more to have. Those that it shared and copied are seen by the next walk.
            found = max(0, child.exact + counted.anonymous - child.anonymous)
        if not found:  # It has ended since it was listed.
            return 0
        counted = counted or Counted(0, 0, 0)
        # Of files in its memory, only so much can be code.
        code = min(counted.files, counted.code)
        if child is None:
            if len(self._seen) >= _REMEMBERED:
                del self._seen[next(iter(self._seen))]
            child = self._seen[pid] = _Child(_name(pid), found, found, found, 0, code, counted.code, found)
            walk = True
        if walk:
            child.exact, child.anonymous = found, counted.anonymous
        child.last = found
        if counted.code > child.libraries + _LOADED:
            child.libraries, child.loaded = counted.code, found
        if code > child.code + _LOADED:
            child.code = code
            child.readings.clear()
        child.readings.add(found)
        return found

    def growth(self) -> tuple[ChildGrowth, ...]:
        """Those seen last, the fastest growing first."""
        found = [ChildGrowth(pid, child.name, child.first, child.last) for pid, child in self._seen.items()]
        return tuple(sorted(found, key=lambda child: child.first - child.last))

    def course(self) -> ChildrenCourse:
        """How they go."""
        none = Bins(1).curve()
        curves = [(child.readings.curve(), child.last - child.loaded) for child in list(self._seen.values())]
        found = [(follow(Series(curve, none)), curve, grown) for curve, grown in curves]
        rising = sorted((each for each, _, _ in found if each.rise), key=lambda each: each.rise)
        slope = sum(each.trend.slope for each in rising if each.trend is not None)
        # Nobody tells how much of it is in use there.
        if rising and rising[-1].rise >= ALONE:
            return ChildrenCourse(rising[-1], slope)
        unsure = [(each, grown) for each, curve, grown in found if grown >= ALONE and _may_go_on(each, curve)]
        return ChildrenCourse(None, slope, *max(unsure, key=lambda each: each[1], default=(None, 0)))


def _may_go_on(found: Finding, curve: Curve) -> bool:
    """Whether a process that grew may do so again: not if it has since gone back to where it was after a quarter."""
    if len(curve) < _FEW:
        return True
    quarters = [float(part.min()) for part in np.array_split(curve.low, 4)]
    if found.course == "level":
        # A worker that is done with an epoch ahead of the loop rises in a few jumps, with nothing after the last.
        return quarters[3] - quarters[2] >= ALONE
    return quarters[3] - quarters[1] >= FLOOR


def _below(pid: int) -> Iterator[int]:
    if sys.platform != "linux":
        yield from (child.pid for child in psutil.Process(pid).children(recursive=True))
        return
    try:
        # A child is listed under the thread that started it.
        tasks = os.listdir(f"/proc/{pid}/task")
        found = [each for task in tasks for each in _text(f"/proc/{pid}/task/{task}/children").split()]
    except OSError:
        return
    for child in found:
        yield int(child)
        yield from _below(int(child))


def _text(path: str) -> str:
    try:
        return read_text(path)
    except OSError:
        return ""  # The thread or process has ended.


def _own_memory(pid: int) -> int | None:
    """What it has for itself, page by page: neither shared nor of a file."""
    if sys.platform == "linux":
        found = _kib(f"/proc/{pid}/smaps_rollup", "Private_Dirty:", "Anonymous:")
        if found:
            return min(found.values())
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def _counted(pid: int) -> Counted | None:
    """None where nobody counts."""
    found = _kib(f"/proc/{pid}/status", "RssAnon:", "RssFile:", "VmExe:", "VmLib:")
    if "RssAnon:" not in found:
        return None
    return Counted(found["RssAnon:"], found["RssFile:"], found["VmExe:"] + found["VmLib:"])


def _kib(path: str, *names: str) -> dict[str, int]:
    """Lines of these names, in bytes."""
    lines = _text(path).splitlines()
    return {name: 1024 * int(line.split()[1]) for line in lines for name in names if line.startswith(name)}


def _name(pid: int) -> str:
    try:
        return str(psutil.Process(pid).name())
    except psutil.Error:
        return "process"
