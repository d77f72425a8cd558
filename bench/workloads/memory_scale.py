"""Memory against the size of the data: the same pipeline over 1x, 4x and 16x, under the same budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench import big_rows
from bench.big_rows import BATCH, MIB, ROW
from bench.memory import PeakMemory
from bench.spec import Contender, Flat, Sample, Task, Unit, Workload

ROWS = 1 << 18
FACTORS = (1, 4, 16)
# Of the smallest data: even that has to go to disk.
BUDGET_SHARE = 4


def prepare(folder: Path, rows: int) -> None:
    big_rows.write(folder / "rows", max(FACTORS) * rows)


def forebay(factor: int) -> Callable[[Task], Sample]:
    def measure(task: Task) -> Sample:
        import forebay as fb

        rows = factor * task.rows
        options = fb.Options(memory=task.rows * ROW // BUDGET_SHARE, spill_dir=task.files)
        # Over rows in 16 pieces: a stream, which nobody can read by number.
        dataset = fb.Dataset.range(16).flat_map(
            lambda piece: fb.Dataset.from_tensor_slices(
                big_rows.mapped(task.files / "rows", int(piece) * rows // 16, rows // 16)
            )
        )
        dataset = dataset.cache().shuffle().batch(BATCH).prefetch(2).with_options(options)
        with PeakMemory() as memory:
            for _ in range(2):
                big_rows.consume_shuffled(dataset, rows, max(FACTORS) * task.rows)
        peak = memory.before + memory.growth
        return {
            "value": peak / MIB,
            "growth_bytes": memory.growth,
            "before_bytes": memory.before,
            "memory_method": memory.method,
            "verified": True,
        }

    return measure


WORKLOADS = (
    Workload(
        name="scale",
        title="a stream of 1 KiB rows .cache().shuffle().batch(256).prefetch(2), two epochs, Options.memory=64MiB",
        unit=Unit("MiB peak RSS", higher_is_better=False),
        rows=ROWS,
        quick_rows=ROWS // 8,
        parameters={"row_bytes": ROW, "batch": BATCH, "budget_bytes": ROWS * ROW // BUDGET_SHARE},
        prepare=prepare,
        ratios_of=(),
        contenders=tuple(
            Contender(f"forebay {factor}x", "forebay", forebay(factor), note=f"{factor * ROWS * ROW // MIB:,} MiB")
            for factor in FACTORS
        ),
        targets=(Flat(tuple(f"forebay {factor}x" for factor in FACTORS), 0.05),),
        notes="A quick run has an eighth of the data and of the budget.",
    ),
)
