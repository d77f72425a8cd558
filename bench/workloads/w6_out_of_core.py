"""W6: 8 GiB of rows, shuffled uniformly by a process that may have 512 MiB.

Once under RLIMIT_DATA, which leaves the page cache out: on a machine with much memory the floor is then one of memory,
and no disk is waited for. Once in a control group, where the page cache counts too, and data is really out of core.

The bar for the external shuffle is what the disk allows: everything written once and read once, in the same run. The
stream is one of many datasets in a row (``flat_map`` over pieces of the file), which cannot be read by number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench import big_rows, control_group
from bench.big_rows import BATCH, MIB, ROW
from bench.busy import Busy
from bench.memory import PeakMemory
from bench.spec import ROWS_PER_SECOND, Contender, PairedAtLeast, Sample, Task, ValueBelow, Workload

ROWS = 8 << 20
BUDGET = "256MiB"
BUDGET_MIB = 256
LIMIT = 512 * MIB
PIECES = 64
# Every row is a read from the disk of its own; the rate does not change with more of them.
COLD_ROWS = 1 << 16


def prepare(folder: Path, rows: int) -> None:
    big_rows.write(folder / "rows", rows)


def _options(folder: Path) -> Any:
    import forebay as fb

    return fb.Options(memory=BUDGET, spill_dir=folder)


def external(folder: Path, rows: int) -> Any:
    import forebay as fb

    path, size = folder / "rows", rows // PIECES

    def piece(number: Any) -> Any:
        return fb.Dataset.from_tensor_slices(big_rows.mapped(path, int(number) * size, size))

    return fb.Dataset.range(PIECES).flat_map(piece).shuffle().batch(BATCH).with_options(_options(folder))


def permuted(folder: Path, rows: int) -> Any:
    import forebay as fb

    array = big_rows.mapped(folder / "rows")
    return fb.Dataset.from_tensor_slices(array).shuffle().take(rows).batch(BATCH).with_options(_options(folder))


Limit = Callable[[int], None]


def forebay(
    build: Callable[[Path, int], Any], cold: bool = False, limit: Limit = big_rows.limit_data
) -> Callable[[Task], Sample]:
    def measure(task: Task) -> Sample:
        folder = task.files
        _begin(folder, limit, LIMIT, cold)
        import forebay  # noqa: F401 - so that its memory counts as there before

        dataset = build(folder, task.rows)
        return _timed(task, lambda: dataset)

    return measure


def tf_data(task: Task, limit: Limit = big_rows.limit_data) -> Sample:
    import tensorflow as tf

    rows = (task.files / "rows").stat().st_size // ROW
    # Its own code and threads take more than half a gigabyte before there is any data: the limit is on top of that.
    before = big_rows.data_bytes() if limit is big_rows.limit_data else 0
    _begin(task.files, limit, before + LIMIT)
    dataset = tf.data.FixedLengthRecordDataset(str(task.files / "rows"), ROW)
    dataset = dataset.map(lambda row: tf.io.decode_raw(row, tf.uint8)).shuffle(rows).batch(BATCH)
    return _timed(task, dataset.as_numpy_iterator)


def floor(task: Task, limit: Limit = big_rows.limit_data) -> Sample:
    _begin(task.files, limit, LIMIT)
    file = big_rows.anonymous(task.files)
    with Busy() as busy:
        write = big_rows.sequential_write(file, task.rows * ROW)
        read = big_rows.sequential_read(file)
    return {
        "value": task.rows / (write + read),
        "write_seconds": write,
        "read_seconds": read,
        "cpu_us_per_row": busy.own / task.rows * 1e6,
        "others_share": busy.others,
    }


def _begin(folder: Path, limit: Limit, nbytes: int, cold: bool = False) -> None:
    """The same for all contenders, so that as much of the memory is taken, and as much is at hand."""
    settle = big_rows.evict if cold else big_rows.warm
    big_rows.empty_page_cache()
    settle(folder / "rows")
    big_rows.claim_memory()
    # About a hundredth of the file has left the page cache again: to wait for a disk that is being written to, for a
    # tenth of the time of whoever reads the file.
    settle(folder / "rows")
    limit(nbytes)


def _timed(task: Task, open_epoch: Callable[[], Any]) -> Sample:
    with PeakMemory() as memory, Busy() as busy:
        seconds = big_rows.consume_shuffled(open_epoch(), task.rows, (task.files / "rows").stat().st_size // ROW)
    return {
        "value": task.rows / seconds,
        "epoch_seconds": [seconds],
        "cpu_us_per_row": busy.own / task.rows * 1e6,
        "others_share": busy.others,
        "growth_bytes": memory.growth,
        "before_bytes": memory.before,
        "memory_method": memory.method,
        "verified": True,
    }


TARGETS = (
    PairedAtLeast("forebay external", 0.7, "floor"),
    ValueBelow("forebay external", BUDGET_MIB + 48, "MiB", "memory above the start", fact="growth_bytes", scale=MIB),
)

WORKLOADS = (
    Workload(
        name="w6",
        title="8 GiB of 1 KiB rows, uniform shuffle, batch(256), Options.memory=256MiB, RLIMIT_DATA 512 MiB",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=ROWS // 32,
        parameters={"row_bytes": ROW, "batch": BATCH, "budget": BUDGET, "limit_bytes": LIMIT},
        prepare=prepare,
        ratios_of=("forebay external",),
        contenders=(
            Contender(
                "floor",
                "numpy",
                floor,
                reference=True,
                note="no shuffle: the same bytes written once and read once, 1 MiB at a time",
            ),
            Contender("forebay external", "forebay", forebay(external), note="of a stream: flat_map over 64 pieces"),
            Contender("forebay external, cold", "forebay", forebay(external, cold=True), note="and evicted before"),
            Contender("forebay permuted", "forebay", forebay(permuted), note="of a memory-mapped array"),
            Contender(
                "forebay permuted, cold",
                "forebay",
                forebay(permuted, cold=True),
                note="and evicted before; the first rows only",
                rows=COLD_ROWS,
            ),
            Contender("tf.data", "tensorflow", tf_data, note="shuffle(all rows); 512 MiB above what it imports"),
        ),
        targets=TARGETS,
        notes="No contender syncs; the file of rows is in the page cache, which the limit does not cover, unless cold. "
        "Before each of them begins, root empties the page cache of all else, and memory that the machine had given "
        "back is there again.",
    ),
    Workload(
        name="w6-group",
        title="the same in a control group of 512 MiB, where the page cache counts too",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=ROWS // 8,
        parameters={"row_bytes": ROW, "batch": BATCH, "budget": BUDGET, "limit_bytes": LIMIT},
        prepare=prepare,
        ratios_of=("forebay external",),
        contenders=(
            Contender(
                "floor",
                "numpy",
                partial(floor, limit=control_group.enter),
                reference=True,
                note="no shuffle: the same bytes written once and read once, 1 MiB at a time",
            ),
            Contender(
                "forebay external",
                "forebay",
                forebay(external, limit=control_group.enter),
                note="of a stream: flat_map over 64 pieces",
            ),
            Contender(
                "forebay permuted",
                "forebay",
                forebay(permuted, limit=control_group.enter),
                note="of a memory-mapped array, which others have in the page cache",
            ),
            Contender(
                "tf.data",
                "tensorflow",
                partial(tf_data, limit=control_group.enter),
                note="shuffle(all rows); 512 MiB above what it imports",
            ),
        ),
        targets=TARGETS,
        notes="Needs root. No contender syncs; the file of rows is in the page cache of others, and nothing else "
        "before each of them begins; memory that the machine had given back is there again.",
    ),
)
