"""What AUTOTUNE reaches, beside the best of a grid of settings chosen by hand.

A pipeline runs under AUTOTUNE for ten seconds. Then every setting of the grid has a short window, and the best of
them is measured again in turns with the tuned one, which goes on where it was: the best of several noisy windows
is too good by chance, and only a second look shows by how much.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.busy import Busy
from bench.spec import Contender, Sample, Task, Unit, ValueAbove, Workload

SHARE = Unit("% of the best setting", higher_is_better=True)
BAR = 90
TUNING_SECONDS = 10
GRID_SECONDS = 0.7
WINDOW_SECONDS = 1.0
TURNS = 2
SETTLING = 0.3
"""At the start of a window come rows that were made before it; so long they are not counted."""

IO_SECONDS = 0.005
BLOCK = bytes(range(256)) * 1024

Setting = tuple[int, ...]
Build = Callable[[Setting], Any]


def wait(x: Any) -> Any:
    time.sleep(IO_SECONDS)
    return x


def digest(x: Any) -> Any:
    """Lets go of the interpreter lock, for a few hundred microseconds."""
    return hashlib.sha256(BLOCK).digest()[0] + x


def io_bound(calls: Setting) -> Any:
    import forebay as fb

    return fb.Dataset.counter().map(wait, num_parallel_calls=calls[0], executor="thread")


def cpu_bound(calls: Setting) -> Any:
    import forebay as fb

    return fb.Dataset.counter().map(digest, num_parallel_calls=calls[0], executor="thread")


def mixed(calls: Setting) -> Any:
    return io_bound(calls[:1]).map(digest, num_parallel_calls=calls[1], executor="thread")


def rate(iterator: Iterator[Any], seconds: float) -> float:
    """Rows a second over a window that begins when those made before it are used up."""
    begin = time.perf_counter() + SETTLING
    while time.perf_counter() < begin:
        next(iterator)
    rows, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds:
        next(iterator)
        rows += 1
    return rows / elapsed


def measure(task: Task, build: Build, grid: tuple[Setting, ...]) -> Sample:
    """``rows`` are the seconds that the tuner has."""
    with Busy() as busy, iter(build((-1,) * len(grid[0]))) as tuned:
        until = time.perf_counter() + task.rows
        trace = []
        while time.perf_counter() < until:
            trace.append(rate(tuned, min(0.7, task.rows / 4)))
        found = {}
        for setting in grid:
            with iter(build(setting)) as iterator:
                found[setting] = rate(iterator, GRID_SECONDS)
        best = max(found, key=lambda setting: found[setting])
        ours, theirs = [], []
        with iter(build(best)) as iterator:
            for _ in range(TURNS):
                theirs.append(rate(iterator, WINDOW_SECONDS))
                ours.append(rate(tuned, WINDOW_SECONDS))
        workers = {stage.name: stage.workers for stage in tuned.stats() if stage.workers}
    return {
        "value": sum(ours) / sum(theirs) * 100,
        "tuned_rates": ours,
        "best_rates": theirs,
        "best_setting": best,
        "grid_rates": {str(setting): value for setting, value in found.items()},
        "rates_while_tuning": trace,
        "tuned_workers": workers,
        "others_share": busy.others,
    }


def workload(name: str, title: str, build: Build, grid: tuple[Setting, ...]) -> Workload:
    return Workload(
        name=f"tuner-{name}",
        title=f"AUTOTUNE after ten seconds beside the best of a grid: {title}",
        unit=SHARE,
        rows=TUNING_SECONDS,
        quick_rows=1,
        parameters={"grid": grid},
        ratios_of=(),
        contenders=(
            Contender("forebay", "forebay", partial(measure, build=build, grid=grid), f"{len(grid)} settings by hand"),
        ),
        targets=(ValueAbove("forebay", BAR, "%", "of the best setting"),),
    )


WORKLOADS = (
    workload("io", "5 ms of waiting a row", io_bound, ((2,), (8,), (16,), (32,), (64,))),
    workload("cpu", "SHA-256 of 256 KiB a row", cpu_bound, ((1,), (2,), (3,), (4,))),
    workload("mixed", "5 ms of waiting, then SHA-256", mixed, ((4, 1), (8, 2), (16, 2), (32, 2), (64, 2), (32, 4))),
)
