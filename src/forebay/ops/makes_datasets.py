"""What ``flat_map`` and ``interleave`` have in common: a function that makes datasets, and who reads those."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from forebay._native import Errands
from forebay.errors import DataError, FunctionError, InternalError, PlanError
from forebay.ledger import Ledger
from forebay.ops.inner import InnerDatasets, inner_bytes
from forebay.ops.interleave_rows import InterleavedRows
from forebay.ops.interleave_schedule import Cycle
from forebay.ops.parallel import Parallel
from forebay.plan.check import arguments, function
from forebay.plan.node import UNKNOWN, Build, Holding, Sizes, Traits
from forebay.plan.skips import Skips, ignore_errors
from forebay.plan.spec import static_spec
from forebay.run import Operator, Setup

ReaderName = Literal["inline", "thread", "auto"]
M = TypeVar("M", bound="MakesDatasets")


@dataclass(frozen=True, eq=False, kw_only=True)
class MakesDatasets(Parallel, Skips):
    """A dataset for every element. The seed is what unseeded random steps of these datasets derive theirs from.

    With ``on_error="skip"`` there is none for elements that the function fails for. `ignores_inner` is set by
    ``ignore_errors``: the datasets that it makes leave out what fails in them too. `hint` is what would make it known
    how many rows these have, if whoever wrote the function knows.
    """

    map_func: Callable[..., Any]
    seed: int | None = None
    ignores_inner: bool = False
    hint: str | None = None

    executors = get_args(ReaderName)
    traits = Traits(makes_plans=True, random=True)

    def __post_init__(self) -> None:
        function(self.kind, "map_func", self.map_func)
        if isinstance(self.executor, str) and self.executor == "process":
            raise PlanError(
                f"{self.kind}(executor='process'): datasets are read by threads; to work in processes, give "
                "executor='process' to a map() inside them or after this step"
            )
        self.check_parallel()
        self.check_errors()
        arguments(self.kind, self.map_func, static_spec(self.input))

    @abstractmethod
    def cycle(self, threads: int, free_order: bool) -> Cycle:
        """How datasets take turns."""

    def threads(self, setup: Setup) -> int:
        """How many threads read; none unless asked for."""
        if self.num_parallel_calls is None or self.executor == "inline":
            return 0
        means = setup.parallelism
        # Inner datasets mostly wait for files, so there may be more of them than processors.
        threads = means.workers(self.num_parallel_calls) * (2 if self.tuned else 1)
        return threads if means.most is None else min(threads, means.most)

    def error_params(self) -> dict[str, Any]:
        """Also of the datasets that it makes."""
        return super().error_params() | ({"ignores_inner": True} if self.ignores_inner else {})

    def layout(self) -> str:
        """Whether failures are counted."""
        return f"skipping {self.kind}" if self.skips else self.kind

    def ignoring_errors(self: M, quiet: bool) -> M:
        """Here and in the datasets that it makes."""
        return replace(super().ignoring_errors(quiet), ignores_inner=True, quiet=quiet)

    def cardinality(self) -> int:
        """Not known before it has run."""
        return UNKNOWN

    def count_hint(self) -> str | None:
        """As it was given, for datasets of which nothing is left out."""
        return None if self.ignores_inner else self.hint

    def holds(self, sizes: Sizes) -> Holding:
        """Blocks of the inner datasets, and what these hold besides if they are like the first."""
        threads = self.threads(sizes.setup)
        slots = self.cycle(threads, False).slots
        inner = max(inner_bytes(sizes.setup, slots), sizes.element)
        blocks = 2 * (slots + threads) if threads else slots
        why = f"two blocks of each of {slots} open datasets and of {threads} ahead" if threads else ""
        why = why or f"a block of each of {slots} open datasets"
        # Each has a part of the budget.
        held = self._held_inside(sizes, slots + threads, inner)
        if held.memory or held.disk != 0:
            why += ", buffers as the first of them has"
        disk = None if held.disk is None else (slots + threads) * held.disk
        memory = blocks * inner + (slots + threads) * held.memory + 2 * sizes.block
        return Holding(memory, f"{why}, and their own", disk)

    def _held_inside(self, sizes: Sizes, datasets: int, block_bytes: int) -> Holding:
        setup = replace(sizes.setup, block_bytes=block_bytes, unit=1)
        setup = replace(setup, ledger=Ledger(max(1, setup.ledger.budget // datasets)))
        made = self._datasets(setup)
        try:
            held = sizes.inside(lambda element: made.plan(element, 0, 0), setup)
        except (DataError, FunctionError):  # It may be one that is left out.
            held = None
        return held or Holding(0, "")

    def _datasets(self, inner: Setup) -> InnerDatasets:
        assert self.seed is not None
        ignore = partial(ignore_errors, quiet=self.quiet) if self.ignores_inner else None
        return InnerDatasets(self.site, self.map_func, self.seed, inner, ignore)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Datasets in slots, at least one."""
        if self.seed is None:
            raise InternalError(f"{self.kind}() has no seed after resolve_seeds")
        threads = self.threads(setup)
        cycle = self.cycle(threads, threads > 0 and self.free_order(setup))
        cycle = replace(cycle, tuned=self.tuned, hesitant=self.tuned and self.executor == "auto")
        source = build(self.input, setup.with_unit(1))
        ahead = Errands() if cycle.hesitant and cycle.threads and setup.parallelism.cpus > 1 else None
        size = inner_bytes(setup, cycle.slots, ahead is not None)
        inner = replace(setup, block_bytes=size, unit=1, even=cycle.even(setup.unit), ahead=ahead)
        return InterleavedRows(self.site, self._datasets(inner), setup, source, cycle, self.tolerance)
