"""W6b: the second epoch from a cache of 4 GiB on disk, under a budget of 128 MiB, beside reading a file."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import big_rows
from bench.big_rows import BATCH, MIB, ROW
from bench.busy import Busy
from bench.memory import PeakMemory
from bench.pipeline import WrongData
from bench.spec import ROWS_PER_SECOND, Contender, PairedAtLeast, Sample, Task, ValueBelow, Workload

ROWS = 4 << 20
PIECE = 1 << 16
BUDGET = "128MiB"
BUDGET_MIB = 128
PASSES = 3


def prepare(folder: Path, rows: int) -> None:
    big_rows.write(folder / "rows", PIECE)


def forebay(path: bool, ahead: bool = False, cold: bool = False) -> Callable[[Task], Sample]:
    def measure(task: Task) -> Sample:
        import forebay as fb

        folder = task.files / "cache"
        shutil.rmtree(folder, ignore_errors=True)
        source = fb.Dataset.from_tensor_slices(big_rows.mapped(task.files / "rows")).repeat(task.rows // PIECE)
        options = fb.Options(memory=BUDGET, spill_dir=task.files)
        dataset = source.cache(str(folder) if path else "").batch(BATCH)
        dataset = (dataset.prefetch(2) if ahead else dataset).with_options(options)
        seconds = []
        with PeakMemory() as memory:
            first = _pass(dataset, task.rows)
            _sync_own_files()
            with Busy() as busy:
                for _ in range(PASSES):
                    for file in folder.iterdir() if cold else ():
                        big_rows.evict(file)
                    seconds.append(_pass(dataset, task.rows))
        shutil.rmtree(folder, ignore_errors=True)
        return {
            **_sample(task, seconds, busy),
            "first_value": task.rows / first,
            "growth_bytes": memory.growth,
            "before_bytes": memory.before,
            "memory_method": memory.method,
            "verified": True,
        }

    return measure


def floor(cold: bool) -> Callable[[Task], Sample]:
    def measure(task: Task) -> Sample:
        path = task.files / "floor"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
        big_rows.sequential_write(file, task.rows * ROW)
        os.fsync(file)
        seconds = []
        with Busy() as busy:
            for _ in range(PASSES):
                if cold:
                    big_rows.evict(path)
                seconds.append(big_rows.sequential_read(file))
        os.close(file)
        path.unlink()
        return _sample(task, seconds, busy)

    return measure


def _sample(task: Task, seconds: list[float], busy: Busy) -> Sample:
    return {
        # Not the mean: in one epoch of five or so, whoever reads, a virtual machine is kept waiting for its memory.
        "value": task.rows / statistics.median(seconds),
        "epoch_seconds": seconds,
        "cpu_us_per_row": busy.own / (task.rows * len(seconds)) * 1e6,
        "others_share": busy.others,
    }


def _pass(dataset: Any, rows: int) -> float:
    """Seconds of an epoch. WrongData unless it is the rows of the file, over and over."""
    count = 0
    began = time.perf_counter()
    for batch in dataset:
        first, last = big_rows.ends(batch)
        if first != count % PIECE or last != (count + len(batch) - 1) % PIECE:
            raise WrongData(f"row {first} came as number {count}")
        count += len(batch)
    seconds = time.perf_counter() - began
    if count != rows:
        raise WrongData(f"{count:,} rows, expected {rows:,}")
    return seconds


def _sync_own_files() -> None:
    """Have on the disk what was written: nobody is timed while the system is still at it."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.stat(f"/proc/self/fd/{name}").st_mode):
                os.fsync(int(name))


WORKLOADS = (
    Workload(
        name="w6b",
        title="4 GiB of 1 KiB rows, second epoch of cache().batch(256), Options.memory=128MiB",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=ROWS // 16,
        parameters={"row_bytes": ROW, "batch": BATCH, "budget": BUDGET, "passes": PASSES},
        prepare=prepare,
        ratios_of=("forebay cache()", "forebay cache(path)"),
        contenders=(
            Contender("read", "numpy", floor(False), reference=True, note="1 MiB at a time from the page cache"),
            Contender("forebay cache()", "forebay", forebay(False)),
            Contender("forebay cache(path)", "forebay", forebay(True)),
            Contender("forebay cache(), ahead", "forebay", forebay(False, ahead=True), note="with prefetch(2)"),
            Contender("forebay cache(path), ahead", "forebay", forebay(True, ahead=True), note="with prefetch(2)"),
            Contender("read, cold", "numpy", floor(True), reference=True, note="the same, evicted before"),
            Contender(
                "forebay cache(path), cold",
                "forebay",
                forebay(True, ahead=True, cold=True),
                note="evicted, prefetch(2)",
            ),
        ),
        targets=(
            PairedAtLeast("forebay cache()", 0.6, "read"),
            PairedAtLeast("forebay cache(path)", 0.6, "read"),
            PairedAtLeast("forebay cache(path), cold", 0.6, "read, cold"),
            ValueBelow(
                "forebay cache()", BUDGET_MIB + 48, "MiB", "memory above the start", fact="growth_bytes", scale=MIB
            ),
        ),
        notes="The first epoch, which fills the cache, is apart. What was written is synced before the second. Reading "
        "from the page cache keeps a processor busy, and a thread ahead only adds the handing over; it is of use where "
        "the disk is waited for.",
    ),
)
