"""What a plan will hold in memory and on disk while it runs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from forebay.plan.explain import with_drawn
from forebay.plan.node import INFINITE, UNKNOWN, Holding, Node, Sizes
from forebay.run import Setup


@dataclass(frozen=True, slots=True)
class StepForecast:
    """One step: what it holds at most, for every size of data asked about."""

    step: str
    memory: tuple[int, ...]
    disk: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What ``Dataset.memory_report`` tells. Printed, it is a table.

    Args:
        budget: the bytes that buffers may hold together.
        scales: how many times the data each column is for.
        steps: the steps, the last one first.
    """

    budget: int
    scales: tuple[int, ...]
    steps: tuple[StepForecast, ...]

    def memory(self, scale: int) -> int:
        """Bytes of all steps together at that many times the data."""
        column = self.scales.index(scale)
        return sum(step.memory[column] for step in self.steps)

    def __str__(self) -> str:
        head = ["step", *(f"{scale}x data" for scale in self.scales), "why"]
        lines = [head]
        for step in self.steps:
            cells = [_shown(memory, disk) for memory, disk in zip(step.memory, step.disk)]
            lines.append([step.step, *cells, step.why])
        lines.append(["all steps", *(_shown(self.memory(scale), 0) for scale in self.scales), ""])
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        table = [
            "  ".join(cell.ljust(width) if i in (0, len(head) - 1) else cell.rjust(width) for i, (cell, width) in row)
            for row in (list(enumerate(zip(line, widths))) for line in lines)
        ]
        report = [f"budget {_size(self.budget)} (Options.memory)", *(line.rstrip() for line in table)]
        if max(map(self.memory, self.scales)) > self.budget:
            report.append(
                "more than the budget, which holds all the same: steps work less far ahead, and buffers go to disk; "
                "only an element larger than the budget is an error"
            )
        return "\n".join(report)


def forecast(
    plan: Node, setup: Setup, scales: Sequence[int], element_bytes: Callable[[Node], int], drawn: Collection[int] = ()
) -> MemoryReport:
    """Every step's own account of what it will hold.

    `element_bytes` tells how large a step's elements are; `drawn` are the seeds that nobody gave.
    """
    steps: list[StepForecast] = []

    def visit(node: Node, scattered: bool) -> int:
        place = len(steps)
        steps.append(StepForecast("", (), (), ""))
        # Whoever passes numbers on, passes them on as they come.
        below = node.scatters or (scattered and node.access() is not None)
        inputs = [visit(child, below) for child in node.inputs]
        own = node.element_bytes(*inputs) or element_bytes(node)
        holdings = [_at(node, setup, scale, own, inputs[0] if inputs else own, scattered) for scale in scales]
        steps[place] = StepForecast(
            with_drawn(node.describe(), drawn),
            tuple(holding.memory for holding in holdings),
            tuple(holding.disk for holding in holdings),
            holdings[0].why,
        )
        return own

    visit(plan, False)
    return MemoryReport(setup.ledger.budget, tuple(scales), tuple(steps))


def _at(node: Node, setup: Setup, scale: int, own: int, below: int, scattered: bool) -> Holding:
    rows = node.input.cardinality() if node.inputs else node.cardinality()
    known = None if rows in (INFINITE, UNKNOWN) else rows * scale
    holding = node.holds(Sizes(own, below, known, setup, scattered))
    most = max(setup.ledger.budget, setup.block_bytes)
    return replace(holding, memory=min(holding.memory, most))


def _shown(memory: int, disk: int) -> str:
    return _size(memory) + (f" + {_size(disk)} disk" if disk else "")


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError
