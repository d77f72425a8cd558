"""What ``flat_map`` and ``interleave`` have in common: a function that makes datasets, and who reads those."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from forebay.errors import InternalError, PlanError
from forebay.ops.interleave_rows import Cycle, InterleavedRows
from forebay.plan.check import arguments, flag, function, keep_whole
from forebay.plan.node import UNKNOWN, Build, Node, Traits
from forebay.plan.spec import static_spec
from forebay.run import Operator, Setup

AUTOTUNE = -1

ReaderName = Literal["auto", "thread", "inline"]


@dataclass(frozen=True, eq=False, kw_only=True)
class MakesDatasets(Node):
    """A dataset for every element. The seed is what unseeded random steps of these datasets derive theirs from."""

    map_func: Callable[..., Any]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    executor: str = "auto"
    seed: int | None = None

    traits = Traits(makes_plans=True, random=True)

    def __post_init__(self) -> None:
        function(self.kind, "map_func", self.map_func)
        if self.num_parallel_calls is not None:
            keep_whole(self, "num_parallel_calls", 1, also=(AUTOTUNE,))
        if self.deterministic is not None:
            flag(self.kind, "deterministic", self.deterministic)
        if self.executor == "process":
            raise PlanError(
                f"{self.kind}(executor='process'): datasets are read by threads; to work in processes, give "
                "executor='process' to a map() inside them or after this step"
            )
        if self.executor not in get_args(ReaderName):
            allowed = ", ".join(map(repr, get_args(ReaderName)))
            raise PlanError(f"{self.kind}(executor={self.executor!r}): executor must be one of {allowed}")
        arguments(self.kind, self.map_func, static_spec(self.input))

    def cycle(self, threads: int, free_order: bool) -> Cycle:
        """How datasets take turns."""
        raise NotImplementedError

    @property
    def threads(self) -> int:
        """How many threads read; none unless asked for."""
        if self.num_parallel_calls is None or self.executor == "inline":
            return 0
        if self.num_parallel_calls == AUTOTUNE:
            # Inner datasets mostly wait for files, so there may be more of them than processors.
            return 2 * len(os.sched_getaffinity(0))
        return self.num_parallel_calls

    def settings(self) -> dict[str, Any]:
        """What decides only who reads the rows. Another order than the usual one is never relied on."""
        if self.num_parallel_calls is None:
            return {}
        return {
            "num_parallel_calls": self.num_parallel_calls,
            "deterministic": self.deterministic,
            "executor": self.executor,
        }

    def cardinality(self) -> int:
        """Not known before it has run."""
        return UNKNOWN

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Datasets in slots, at least one."""
        if self.seed is None:
            raise InternalError(f"{self.kind}() has no seed after resolve_seeds")
        threads = self.threads
        cycle = self.cycle(threads, self.deterministic is False and threads > 0)
        source = build(self.input, setup.with_unit(1))
        return InterleavedRows(self.site, self.map_func, self.seed, setup, source, cycle)
