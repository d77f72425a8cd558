"""How far a process's resident memory rose while a block of code ran."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

PAGE = os.sysconf("SC_PAGE_SIZE")
INTERVAL = 0.01
WORKERS_EVERY = 10


def resident() -> int:
    """Resident bytes of this process, now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def _reset_high_water_mark() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _high_water_mark() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the kernel reports no VmHWM")


def descendants(pid: int) -> list[int]:
    """The processes below that one, at any depth."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except FileNotFoundError:
            # The thread has ended since it was listed.
            continue
        for child in children:
            found += [int(child), *descendants(int(child))]
    return found


def _private(pid: int) -> int:
    """Bytes that belong to this process alone, so that pages shared with the parent count once."""
    total = 0
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(("Private_Clean:", "Private_Dirty:")):
            total += int(line.split()[1]) * 1024
    return total


def worker_memory() -> int:
    """Bytes that the processes below this one hold for themselves."""
    total = 0
    for pid in descendants(os.getpid()):
        try:
            total += _private(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended between being listed and being read
    return total


class PeakMemory:
    """Peak resident bytes above the level at entry, worker processes included.

    The kernel's own high-water mark is exact and costs nothing, but resetting it needs a permission that a
    container may withhold; sampling is the fallback. Workers are always sampled, and only if asked for:
    reading their page tables is too dear to do for a contender that has none.
    """

    def __init__(self, workers: bool = False) -> None:
        self._workers = workers
        self._stop = threading.Event()
        self._sampler: threading.Thread | None = None
        self._highest = 0
        self._workers_highest = 0
        self.method = ""
        self.before = 0
        self.growth = 0

    def __enter__(self) -> PeakMemory:
        exact = _reset_high_water_mark()
        self.method = "high-water mark" if exact else "sampled"
        self.before = self._highest = resident()
        if self._workers or not exact:
            self._sampler = threading.Thread(target=self._sample, name="peak-memory", daemon=True)
            self._sampler.start()
        return self

    def _sample(self) -> None:
        tick = 0
        while not self._stop.wait(INTERVAL):
            self._highest = max(self._highest, resident())
            if self._workers and tick % WORKERS_EVERY == 0:
                self._workers_highest = max(self._workers_highest, worker_memory())
            tick += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sampler is not None:
            self._stop.set()
            self._sampler.join()
        highest = max(self._highest, resident())
        if self.method == "high-water mark":
            highest = max(highest, _high_water_mark())
        self.growth = highest - self.before + self._workers_highest
