"""How much of the machine this process had, and how much went to others meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType

from bench.memory import descendants

TICK = os.sysconf("SC_CLK_TCK")


def _machine() -> float:
    """CPU seconds spent on all cores since boot by anybody, other guests of a hypervisor included."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / TICK


def _own() -> float:
    times = os.times()
    ended = times.user + times.system + times.children_user + times.children_system
    return ended + sum(map(_of_process, descendants(os.getpid())))


def _of_process(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # it ended between being listed and being read
    return (int(fields[11]) + int(fields[12])) / TICK


class Busy:
    """``own``: CPU seconds of this process and those below it; ``others``: the rest, as a share."""

    own = 0.0
    others = 0.0

    def __enter__(self) -> Busy:
        self._wall, self._all, self._mine = time.perf_counter(), _machine(), _own()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wall = time.perf_counter() - self._wall
        self.own = _own() - self._mine
        cores = os.cpu_count() or 1
        self.others = max(0.0, (_machine() - self._all - self.own) / (wall * cores))
