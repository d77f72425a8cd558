"""``load()`` beside plain reading: the first epoch checks every record batch, later ones do not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import big_rows
from bench.big_rows import BATCH, ROW
from bench.busy import Busy
from bench.memory import PeakMemory
from bench.pipeline import WrongData
from bench.spec import ROWS_PER_SECOND, Contender, Sample, Task, Workload

ROWS = 2 << 20
PASSES = 3


def prepare(folder: Path, rows: int) -> None:
    big_rows.write(folder / "rows", rows)


def forebay(build: Callable[[Any], Any], shuffled: bool) -> Callable[[Task], Sample]:
    def measure(task: Task) -> Sample:
        import forebay as fb

        saved = task.files / "saved"
        if not saved.exists():
            fb.Dataset.from_tensor_slices(big_rows.mapped(task.files / "rows")).save(saved)
        for each in saved.iterdir():
            big_rows.warm(each)
        dataset = build(fb.Dataset.load(saved)).batch(BATCH)
        run = _shuffled if shuffled else _in_order
        with PeakMemory() as memory:
            first = run(dataset, task.rows)
            with Busy() as busy:
                seconds = [run(dataset, task.rows) for _ in range(PASSES)]
        return {
            "value": task.rows * len(seconds) / sum(seconds),
            "first_value": task.rows / first,
            "epoch_seconds": seconds,
            "cpu_us_per_row": busy.own / (task.rows * len(seconds)) * 1e6,
            "others_share": busy.others,
            "growth_bytes": memory.growth,
            "before_bytes": memory.before,
            "memory_method": memory.method,
            "verified": True,
        }

    return measure


def floor(task: Task) -> Sample:
    path = task.files / "rows"
    big_rows.warm(path)
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with Busy() as busy:
        seconds = [big_rows.sequential_read(file) for _ in range(PASSES)]
    os.close(file)
    return {
        "value": task.rows * len(seconds) / sum(seconds),
        "epoch_seconds": seconds,
        "cpu_us_per_row": busy.own / (task.rows * len(seconds)) * 1e6,
        "others_share": busy.others,
    }


def _shuffled(dataset: Any, rows: int) -> float:
    return big_rows.consume_shuffled(dataset, rows)


def _in_order(dataset: Any, rows: int) -> float:
    count = 0
    began = time.perf_counter()
    for batch in dataset:
        first, last = big_rows.ends(batch)
        if first != count or last != count + len(batch) - 1:
            raise WrongData(f"row {first} came as number {count}")
        count += len(batch)
    seconds = time.perf_counter() - began
    if count != rows:
        raise WrongData(f"{count:,} rows, expected {rows:,}")
    return seconds


WORKLOADS = (
    Workload(
        name="load",
        title="2 GiB of 1 KiB rows, load(path).batch(256)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=ROWS // 16,
        parameters={"row_bytes": ROW, "batch": BATCH, "passes": PASSES},
        prepare=prepare,
        ratios_of=("forebay load",),
        contenders=(
            Contender("read", "numpy", floor, reference=True, note="1 MiB at a time from the page cache"),
            Contender("forebay load", "forebay", forebay(lambda saved: saved, False)),
            Contender("forebay load, shuffled", "forebay", forebay(lambda saved: saved.shuffle(), True)),
        ),
        notes="All from the page cache. The first epoch, in which every batch is checked, is apart.",
    ),
)
