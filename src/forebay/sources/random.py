"""Random numbers without end."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import LEAF, Block, Indices, TensorSpec
from forebay.block.dense import Dense
from forebay.errors import InternalError
from forebay.plan.check import flag, keep_seed
from forebay.plan.node import INFINITE, Build, Node, Traits
from forebay.run import Access, Operator, ReadRows, Setup
from forebay.run.keys import key_of, words
from forebay.sources.counting import ENDLESS


class _Words(Access):
    """Row i is word i of a keyed stream, cut to 32 bits."""

    def __init__(self, seed: int, each_epoch: bool) -> None:
        super().__init__(ENDLESS)
        self._seed = seed
        self._each_epoch = each_epoch

    def read(self, start: int, stop: int, epoch: int) -> Block:
        """Computed from the row numbers."""
        key = key_of(self._seed, epoch if self._each_epoch else 0, "random")
        values = (words(key, start, stop - start) >> np.uint64(32)).astype(np.int64)
        return Block(LEAF, [Dense(values)], len(values))

    def gather(self, indices: Indices, epoch: int) -> Block:
        """Not needed: an infinite source is never read out of order."""
        raise InternalError("random() was asked for rows out of order")


@dataclass(frozen=True, eq=False, kw_only=True)
class Random(Node):
    """``Dataset.random``."""

    seed: int | None
    rerandomize_each_iteration: bool

    kind = "random"
    traits = Traits(random=True)

    def __post_init__(self) -> None:
        keep_seed(self)
        flag("random", "rerandomize_each_iteration", self.rerandomize_each_iteration)

    @property
    def redraws(self) -> bool:
        """If it draws anew."""
        return self.rerandomize_each_iteration

    def cardinality(self) -> int:
        """Never ends."""
        return INFINITE

    def spec(self, *inputs: Any) -> TensorSpec:
        """A scalar."""
        return TensorSpec((), np.int64)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read by number."""
        if self.seed is None:
            raise InternalError("random() has no seed after resolve_seeds")
        return ReadRows(self.site, _Words(self.seed, self.rerandomize_each_iteration), setup)
