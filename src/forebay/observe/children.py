"""The memory of child processes."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from forebay.observe.bins import Bins
from forebay.observe.judge import ALONE, Finding, Series, follow
from forebay.observe.verdict import ChildGrowth

_REMEMBERED = 64  # Workers that are started anew in each epoch must not add up here.
_LOADED = 1 << 18  # Bytes of code, by which a process that is still being started grows from one look to the next.


@dataclass(slots=True)
class _Child:
    name: str
    first: int
    last: int
    code: int
    readings: Bins = field(default_factory=lambda: Bins(128))


class Children:
    """Memory of all processes below this one: what is theirs alone, since what they share is counted here already.

    So a forked worker that only reads what its parent loaded takes nothing, and takes more and more as the pages it
    shares are written to: the usual "leak" of forked data loaders, which resident memory does not show.

    Each is judged by itself: workers that are started one after the other are no growth of any of them. Nor is what a
    process takes while it loads libraries, which is over when the code in its memory no longer becomes more.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Child] = {}

    def read(self) -> int:
        """Their memory now, and remember each one's."""
        return sum(self._note(pid) for pid in _below(os.getpid()))

    def _note(self, pid: int) -> int:
        found = _own_memory(pid)
        if found is None:  # It has ended since it was listed.
            return 0
        code = _code(pid)
        child = self._seen.get(pid)
        if child is None:
            if len(self._seen) >= _REMEMBERED:
                del self._seen[next(iter(self._seen))]
            child = self._seen[pid] = _Child(_name(pid), found, found, code)
        child.last = found
        if code > child.code + _LOADED:
            child.code = code
            child.readings.clear()
        child.readings.add(found)
        return found

    def growth(self) -> tuple[ChildGrowth, ...]:
        """Those seen last, the fastest growing first."""
        found = [ChildGrowth(pid, child.name, child.first, child.last) for pid, child in self._seen.items()]
        return tuple(sorted(found, key=lambda child: child.first - child.last))

    def course(self) -> tuple[Finding | None, float]:
        """How the one that leaks most goes, if any does, and the slope of all that grow, per look."""
        none = Bins(1).curve()
        findings = [follow(Series(child.readings.curve(), none)) for child in list(self._seen.values())]
        rising = sorted((each for each in findings if each.rise), key=lambda each: each.rise)
        # Nobody tells how much of it is in use there.
        leaks = rising and rising[-1].rise >= ALONE
        return rising[-1] if leaks else None, sum(each.trend.slope for each in rising if each.trend is not None)


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
        return Path(path).read_text()
    except OSError:
        return ""  # The thread or process has ended.


def _own_memory(pid: int) -> int | None:
    if sys.platform == "linux":
        lines = _text(f"/proc/{pid}/smaps_rollup").splitlines()
        private = [int(line.split()[1]) for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:"))]
        if private:
            return sum(private) * 1024
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def _name(pid: int) -> str:
    try:
        return str(psutil.Process(pid).name())
    except psutil.Error:
        return "process"


def _code(pid: int) -> int:
    """What it has of files in its memory: its libraries."""
    for line in _text(f"/proc/{pid}/status").splitlines():
        if line.startswith("RssFile:"):
            return int(line.split()[1]) * 1024
    return 0
