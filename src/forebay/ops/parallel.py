"""What steps with a user's function have in common: on whom it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, get_args

from forebay.errors import PlanError
from forebay.plan.check import flag, keep_whole
from forebay.plan.node import Holding, Node, Sizes
from forebay.run import Setup
from forebay.run.executor import Executor
from forebay.run.executors import ExecutorName, check_executor, start
from forebay.run.pace import on_threads_bytes
from forebay.run.parallelism import AUTOTUNE

R = TypeVar("R")

# What a worker process has for itself, roughly: an interpreter with NumPy.
_PROCESS = 25 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Parallel(Node):
    """A step whose function can run on workers. None of this changes its elements, only `deterministic` their order."""

    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    executor: str = "auto"

    executors: ClassVar[tuple[str, ...]] = get_args(ExecutorName)

    def check_parallel(self) -> None:
        """PlanError on a setting that cannot be meant."""
        if self.num_parallel_calls is not None:
            keep_whole(self, "num_parallel_calls", 1, also=(AUTOTUNE,))
        if self.deterministic is not None:
            flag(self.kind, "deterministic", self.deterministic)
        check_executor(self.kind, self.executor, self.executors)
        if self.num_parallel_calls is None and self.executor not in ("auto", "inline"):
            raise PlanError(
                f"{self.kind}(executor={self.executor!r}): nothing would run there without num_parallel_calls; give it "
                "a number, or AUTOTUNE"
            )

    def shares_workers(self, other: "Parallel") -> bool:
        """Whether both functions may run on the same workers, back to back.

        Threads that are tuned are not shared: a function that waits needs many of them, and one that computes is
        slowed down by many. Sharing processes saves sending what is between the two.
        """
        if self.num_parallel_calls is None:
            return other.num_parallel_calls is None
        mine = (self.num_parallel_calls, self.deterministic, self.executor)
        theirs = (other.num_parallel_calls, other.deterministic, other.executor)
        return mine == theirs and not (self.tuned and self.executor == "thread")

    def holds(self, sizes: Sizes) -> Holding:
        """Chunks under way, two for every worker."""
        if self.num_parallel_calls is None or self.executor == "inline":
            return super().holds(sizes)
        workers = sizes.setup.parallelism.workers(self.num_parallel_calls)
        block = sizes.setup.block_bytes
        if self.executor != "process":
            block = on_threads_bytes(block, workers, sizes.setup.ledger.budget)
        chunks = 2 * workers * (max(block, sizes.input) + max(block, sizes.element))
        if self.executor == "process":
            many = "es" * (workers != 1)
            why = f"{workers} process{many} of some 25 MiB and two chunks for each; fewer if the budget has no room"
            return Holding(chunks + workers * _PROCESS, why)
        if self.executor == "auto":
            # What is chosen depends on the function, and at most it is this.
            why = f"two chunks for each of {workers} workers, and some 25 MiB if these are processes"
            return Holding(chunks + workers * _PROCESS, f"{why}; backs off at the budget")
        return Holding(chunks, f"two chunks for each of {workers} workers; backs off at the budget")

    def settings(self) -> dict[str, Any]:
        """How it runs."""
        if self.num_parallel_calls is None:
            return {}
        return {
            "num_parallel_calls": self.num_parallel_calls,
            "deterministic": self.deterministic,
            "executor": self.executor,
        }

    @property
    def tuned(self) -> bool:
        """Whether the number of workers is left to the tuner."""
        return self.num_parallel_calls == AUTOTUNE

    def start(self, setup: Setup, make: Callable[[], Callable[..., R]]) -> Executor[R]:
        """The workers, each with a function of its own from `make`."""
        return start(setup, self.site, self.num_parallel_calls, self.executor, make)

    def free_order(self, setup: Setup) -> bool:
        """Whether elements may come out as they are ready."""
        wanted = setup.parallelism.deterministic if self.deterministic is None else self.deterministic
        if setup.parallelism.ordered:
            return False
        return self.num_parallel_calls is not None and not wanted
