"""How much memory this process and its children take, as the system counts it, at little cost."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from forebay.observe.verdict import ChildGrowth

_PAGE = os.sysconf("SC_PAGE_SIZE")
_REMEMBERED = 64  # Children; workers that are started anew in each epoch must not add up here.


class ResidentMemory:
    """Resident memory of this process. The file that tells it is opened once, which makes a reading a few µs.

    >>> with ResidentMemory() as memory:
    ...     memory.read() > 1 << 20
    True
    """

    def __init__(self) -> None:
        self._file = -1
        self.read: Callable[[], int]
        if sys.platform == "linux":
            self._file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            self.read = self._from_file
        else:
            process = psutil.Process()
            self.read = lambda: int(process.memory_info().rss)

    def _from_file(self) -> int:
        return int(os.pread(self._file, 128, 0).split(None, 2)[1]) * _PAGE

    def close(self) -> None:
        """Close the file; ``read`` is over."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> "ResidentMemory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(slots=True)
class _Child:
    name: str
    first: int
    last: int


class Children:
    """Memory of all processes below this one: what is theirs alone, since what they share is counted here already.

    So a forked worker that only reads what its parent loaded takes nothing, and takes more and more as the pages it
    shares are written to: the usual "leak" of forked data loaders, which resident memory does not show.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Child] = {}

    def read(self) -> int:
        """Their memory now, and remember each one's."""
        total = 0
        for pid in _below(os.getpid()):
            found = _own_memory(pid)
            if found is None:  # It has ended since it was listed.
                continue
            total += found
            child = self._seen.get(pid)
            if child is None:
                if len(self._seen) >= _REMEMBERED:
                    del self._seen[next(iter(self._seen))]
                child = self._seen[pid] = _Child(_name(pid), found, found)
            child.last = found
        return total

    def growth(self) -> tuple[ChildGrowth, ...]:
        """Those seen last, the fastest growing first."""
        found = [ChildGrowth(pid, child.name, child.first, child.last) for pid, child in self._seen.items()]
        return tuple(sorted(found, key=lambda child: child.first - child.last))


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


def free_memory() -> int:
    """What can still be taken before the machine, or the container this runs in, has no more."""
    free = int(psutil.virtual_memory().available)
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        most, now = _text(limit).strip(), _text(used).strip()
        if most.isdigit() and now.isdigit():
            free = min(free, max(0, int(most) - int(now)))
    return free
