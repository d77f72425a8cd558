"""What a plan will hold in memory and on disk while it runs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from forebay.block import Block, TensorSpec, flatten
from forebay.block.dense import Dense
from forebay.errors import PlanError
from forebay.ledger import Ledger
from forebay.plan.explain import with_drawn
from forebay.plan.node import INFINITE, UNKNOWN, Holding, Node, Sizes
from forebay.plan.spec import static_spec
from forebay.run import Setup
from forebay.sizes import size_text


@dataclass(frozen=True, slots=True)
class StepForecast:
    """One step: what it holds at most, for every size of data asked about.

    `memory` is what it takes if others leave it that much; `least` is that part of it which it cannot do without.
    `disk` is None where that depends on how many elements there are, and nobody knows. `element` is what one of its
    elements takes.
    """

    step: str
    memory: tuple[int, ...]
    disk: tuple[int | None, ...]
    why: str
    least: int = 0
    element: int = 0


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What ``Dataset.memory_report`` tells. Printed, it is a table.

    Args:
        budget: the bytes that buffers may hold together.
        scales: how many times the data each column is for.
        steps: the steps, the last one first.
        shared: whether other datasets may have parts of the budget, which is that of a ``Ledger``.
        by_default: whether nobody gave one.
        uneven: the steps whose elements are taken to be as large as their first one, though others may differ.
    """

    budget: int
    scales: tuple[int, ...]
    steps: tuple[StepForecast, ...]
    shared: bool = False
    by_default: bool = False
    uneven: tuple[str, ...] = ()

    def memory(self, scale: int) -> int:
        """Bytes of all steps together at that many times the data: at most the budget.

        Only if that has no room for an element of every step is it more. For a moment there may be a block or two
        beside it that a step cannot do without.
        """
        return min(self._wanted(scale), max(self.budget, self._least))

    def disk(self, scale: int) -> int | None:
        """Bytes of all steps together on disk; None if that cannot be told of one of them."""
        column = self._column(scale)
        known = [step.disk[column] for step in self.steps]
        return None if None in known else sum(each for each in known if each is not None)

    def _wanted(self, scale: int) -> int:
        column = self._column(scale)
        return sum(step.memory[column] for step in self.steps)

    def _column(self, scale: int) -> int:
        if scale not in self.scales:
            has = ", ".join(map(str, self.scales))
            raise PlanError(f"this report is for {has} times the data: memory_report(scales=[{scale!r}]) has that one")
        return self.scales.index(scale)

    @property
    def _least(self) -> int:
        return sum(step.least for step in self.steps)

    def __str__(self) -> str:
        head = ["step", *(f"{scale}x data" for scale in self.scales), "why"]
        lines = [head]
        for step in self.steps:
            cells = [_shown(memory, disk) for memory, disk in zip(step.memory, step.disk)]
            lines.append([step.step, *cells, step.why])
        lines.append(["all steps", *(_shown(self.memory(scale), self.disk(scale)) for scale in self.scales), ""])
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        table = [
            "  ".join(cell.ljust(width) if i in (0, len(head) - 1) else cell.rjust(width) for i, (cell, width) in row)
            for row in (list(enumerate(zip(line, widths))) for line in lines)
        ]
        given = "half of what is left; Options.memory sets another" if self.by_default else "Options.memory"
        if self.shared:
            given = "the fb.Ledger in Options.memory, shared by all that run on it"
        report = [f"budget {size_text(self.budget)} ({given})", *(line.rstrip() for line in table)]
        large = next((step for step in reversed(self.steps) if step.element > self.budget), None)
        if large is not None:
            report.append(
                f"an element of {large.step} takes {size_text(large.element)}, and the budget has no room for it. That "
                "is an error: raise the budget, or make elements smaller, for example with smaller batches"
            )
        elif self._least > self.budget:
            report.append(
                "more than the budget, which has no room for an element of every step; only an element larger than the "
                "budget would be an error"
            )
        elif max(map(self._wanted, self.scales)) > self.budget:
            report.append(
                "steps share the budget: each is shown with what it takes if others leave it that much, and together "
                "they hold no more than the budget; one that is refused works less far ahead, or goes to disk"
            )
        if self.uneven:
            report.append(
                f"elements are taken to be as large as the first one of {' and '.join(self.uneven)}: where they are "
                "larger on average, so is what goes to disk, and what is held up to the budget"
            )
        return "\n".join(report)


def forecast(
    plan: Node,
    setup: Setup,
    scales: Sequence[int],
    look: Callable[[Node], Block | None],
    drawn: Collection[int] = (),
    given: object = None,
) -> MemoryReport:
    """Every step's own account of what it will hold.

    `look` has an element of a step, in a block; `drawn` are the seeds that nobody gave; `given` is ``Options.memory``.
    """
    steps = _Steps(setup, scales, look, drawn)
    steps.visit(plan, False)
    shared, uneven = isinstance(given, Ledger), tuple(dict.fromkeys(reversed(steps.uneven)))
    return MemoryReport(setup.ledger.budget, tuple(scales), tuple(steps.found), shared, given is None, uneven)


class _Steps:
    """The steps of a plan. Not functions that call themselves: what those refer to would stay until it is collected."""

    def __init__(
        self, setup: Setup, scales: Sequence[int], look: Callable[[Node], Block | None], drawn: Collection[int]
    ) -> None:
        self._setup = setup
        self._scales = scales
        self._look = look
        self._drawn = drawn
        self._seen: dict[int, Block | None] = {}
        self._within: dict[int, Holding | None] = {}
        self.found: list[StepForecast] = []
        self.uneven: list[str] = []

    def visit(self, node: Node, scattered: bool) -> int:
        """Add a step and those below it; bytes of an element of the step."""
        place = len(self.found)
        self.found.append(StepForecast("", (), (), ""))
        # Whoever passes numbers on, passes them on as they come.
        by_number = node.scatters or (scattered and node.access() is not None)
        inputs = [self.visit(child, by_number) for child in node.inputs]
        own = node.element_bytes(*inputs) or self._element_bytes(node)
        below = node.input if node.inputs else node
        look, inside = partial(self._looked, below), partial(self._inside, node)
        sizes = Sizes(own, inputs[0] if inputs else own, None, self._setup, scattered, look, inside)
        holdings = [_at(node, sizes, scale) for scale in self._scales]
        self.found[place] = StepForecast(
            with_drawn(node.describe(), self._drawn),
            tuple(holding.memory for holding in holdings),
            tuple(holding.disk for holding in holdings),
            holdings[0].why,
            min(own, *(holding.memory for holding in holdings)),
            int(min(own, _whole(node, *inputs))),
        )
        return own

    def _inside(self, node: Node, make: Callable[[Block], Node], setup: Setup) -> Holding | None:
        if id(node) not in self._within:
            # Once for all scales: to make a plan calls a function of the user's.
            first = self._look(node.input)
            self._within[id(node)] = None if first is None else self._beside_blocks(make(first), setup)
        return self._within[id(node)]

    def _beside_blocks(self, plan: Node, setup: Setup) -> Holding:
        steps = _Steps(setup, (1,), self._look, self._drawn)
        steps.visit(plan, False)
        memory = sum(max(0, step.memory[0] - 2 * max(step.element, setup.block_bytes)) for step in steps.found)
        known = [step.disk[0] for step in steps.found]
        return Holding(memory, "", None if None in known else sum(each for each in known if each is not None))

    def _element_bytes(self, node: Node) -> int:
        block = self._looked(node)
        return 0 if block is None else block.nbytes

    def _looked(self, node: Node) -> Block | None:
        if node.inputs and node.traits.same_elements:
            # One that comes out may be far behind those that do not.
            return self._looked(node.input)
        if node.element_bytes(*(0 for _ in node.inputs)) is not None:
            # It would take many to make one.
            return None
        if id(node) not in self._seen:
            found = self._seen[id(node)] = self._look(node)
            if found is not None and _may_differ(node, found):
                self.uneven.append(node.describe())
        return self._seen[id(node)]


def _may_differ(node: Node, block: Block) -> bool:
    """Whether other elements of a step may take more memory than the one in this block, or less."""
    told = static_spec(node)
    shapes = [leaf.shape for leaf in flatten(told, (TensorSpec,))[0]] if told is not None else [None]
    known = None not in shapes and all(None not in shape for shape in shapes if shape is not None)
    # Numbers are all of a size. Arrays are, if that is known without looking at one.
    return any(not isinstance(column, Dense) or (column.values.ndim > 1 and not known) for column in block.columns)


def _rows(node: Node) -> int | None:
    """How many rows its input has, or it has itself if there is none."""
    rows = node.input.cardinality() if node.inputs else node.cardinality()
    return None if rows in (INFINITE, UNKNOWN) else rows


def _whole(node: Node, *inputs: int) -> float:
    """Bytes that an element of a step which makes one of many can take at most: a batch of all there is."""
    rows = _rows(node)
    return inf if rows is None or not inputs or node.element_bytes(*inputs) is None else rows * inputs[0]


def _at(node: Node, sizes: Sizes, scale: int) -> Holding:
    rows = _rows(node)
    known = None if rows is None else rows * scale
    holding = node.holds(replace(sizes, rows=known))
    most = max(sizes.setup.ledger.budget, sizes.setup.block_bytes)
    return replace(holding, memory=min(holding.memory, most))


def _shown(memory: int, disk: int | None) -> str:
    return size_text(memory) + (" + ? disk" if disk is None else f" + {size_text(disk)} disk" if disk else "")
