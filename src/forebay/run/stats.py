"""Statistics of a tree of operators, and the table that shows them."""

from collections.abc import Sequence

from forebay.run.meter import StageStats
from forebay.run.operator import Operator
from forebay.sizes import size_text

WEAK = 0.1
"""A shuffle that moves rows less far than this share of what a uniform one does is worth a word."""
_ENOUGH = 1000
# Seconds below which nobody asks which step was slow.
_LONG = 0.1
_MIB = 1 << 20


class Stats(list[StageStats]):
    """One entry per step, the last one first. Printed, it is a table.

    `on_disk` are the most bytes that all steps together had on disk at once for want of room in memory, with what they
    read of rows that earlier iterations have put there.
    """

    on_disk: int = 0

    def __str__(self) -> str:
        spilled = [f"On disk: up to {size_text(self.on_disk)} that memory had no room for"] if self.on_disk else []
        return "\n".join([table(self), *slowest(self), *spilled, *weak_shuffles(self)])


def stats_of(operator: Operator, depth: int = 0) -> Stats:
    """One entry per operator, the last one first, as in a printed plan."""
    meter = operator.meter
    below = 0.0 if operator.own_thread else sum(each.meter.seconds for each in operator.inputs)
    busy = max(0.0, meter.seconds - below - meter.waited) + meter.worked
    queue, workers, executor = operator.load()
    held, full = operator.held()
    moved, among = operator.moved() or (None, 0.0)
    own = StageStats(
        name=str(operator.site),
        depth=depth,
        elements=meter.rows,
        blocks=meter.blocks,
        bytes=meter.nbytes,
        busy=busy,
        wait=meter.waited,
        queue=queue,
        workers=workers,
        executor=executor,
        held=held,
        full=full,
        moved=moved,
        among=among,
        uniform=operator.uniform,
        skipped=meter.skipped,
    )
    found = Stats([own])
    deeper = depth + (len(operator.inputs) > 1)
    for each in operator.inputs:
        found += stats_of(each, deeper)
    return found


def slowest(stats: Sequence[StageStats]) -> list[str]:
    """Which step the others wait for, if one plainly takes longer than each of them."""
    by_time = sorted(stats, key=lambda each: each.lasted, reverse=True)
    if not by_time or by_time[0].lasted < _LONG or (len(by_time) > 1 and by_time[0].lasted < 1.5 * by_time[1].lasted):
        return []
    first = by_time[0]
    share = f" on each of {first.workers} workers" if first.workers > 1 else ""
    return [f"Slowest: {first.name}, {first.lasted:.2f} s of work{share} for {first.elements:,} elements"]


def weak_shuffles(stats: Sequence[StageStats]) -> list[str]:
    """What to know about shuffles after which rows are still near their old places."""
    return [
        f"{each.name}: rows moved {each.moved:,.0f} places on average, {each.shuffled:.1%} of what a uniform shuffle "
        f"of {each.among:,.0f} would move them. If neighbours are alike, so will batches be: raise buffer_size, or "
        "leave it out to shuffle uniformly within the same memory"
        for each in stats
        if each.moved is not None and (each.shuffled or 0.0) < WEAK and each.among > _ENOUGH
    ]


def table(stats: Sequence[StageStats]) -> str:
    """The statistics, a line per step."""
    skipped = any(each.skipped for each in stats)
    head = ("step", "elements", *["skipped"] * skipped, "blocks", "MiB", "busy s", "wait s", "queue", "workers")
    lines = [head] + [
        (
            "  " * each.depth + each.name,
            f"{each.elements:,}",
            *[f"{each.skipped:,}"] * skipped,
            f"{each.blocks:,}",
            f"{each.bytes / _MIB:,.1f}",
            f"{each.busy:.3f}",
            f"{each.wait:.3f}",
            f"{each.queue}",
            f"{each.workers} {each.executor}" if each.workers else "",
        )
        for each in stats
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in (0, len(head) - 1) else cell.rjust(width) for i, (cell, width) in cells
        ).rstrip()
        for cells in (list(enumerate(zip(line, widths))) for line in lines)
    )
