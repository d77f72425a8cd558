"""``interleave``: a dataset for every element, several of them in turns."""

from dataclasses import dataclass
from typing import Any

from forebay.errors import PlanError
from forebay.ops.interleave_schedule import Cycle
from forebay.ops.makes_datasets import MakesDatasets
from forebay.plan.check import keep_whole
from forebay.run.parallelism import AUTOTUNE

# The order follows from the cycle, so its default may not depend on the machine.
_DEFAULT_CYCLE = 16
# Each has a place of its own before the first row comes.
_MOST_SLOTS = 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Interleave(MakesDatasets):
    """``Dataset.interleave``."""

    cycle_length: int | None = None
    block_length: int | None = None

    kind = "interleave"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cycle_length is not None:
            keep_whole(self, "cycle_length", 1, also=(AUTOTUNE,), most=_MOST_SLOTS)
        if self.block_length is not None:
            keep_whole(self, "block_length", 1)
        calls = self.num_parallel_calls
        if calls is not None and calls > self.slots and self.cycle_length not in (None, AUTOTUNE):
            raise PlanError(
                f"interleave(cycle_length={self.slots}, num_parallel_calls={calls}): num_parallel_calls must be "
                "at most cycle_length, there is no work for more"
            )

    @property
    def slots(self) -> int:
        """How many inner datasets take turns."""
        return _DEFAULT_CYCLE if self.cycle_length in (None, AUTOTUNE) else int(self.cycle_length or 0)

    @property
    def turn(self) -> int:
        """How many rows each gives before the next one's turn."""
        return 1 if self.block_length is None else self.block_length

    def params(self) -> dict[str, Any]:
        """What the rows and their order follow from."""
        turns = {"map_func": self.map_func, "cycle_length": self.slots, "block_length": self.turn}
        return turns | self.error_params()

    def cycle(self, threads: int, free_order: bool) -> Cycle:
        """The same slots at any number of threads."""
        return Cycle(self.slots, self.turn, min(threads, self.slots), free_order)
