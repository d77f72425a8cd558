"""Whole numbers: ``range``, which ends, and ``counter``, which does not."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import LEAF, Block, Indices, TensorSpec
from forebay.block.dense import Dense
from forebay.errors import PlanError
from forebay.plan.check import keep_whole
from forebay.plan.node import INFINITE, Build, Node
from forebay.run import Access, Operator, ReadRows, Setup

ENDLESS = 1 << 62
"""More rows than will ever be read: the length of an Access over an infinite source."""


class _Progression(Access):
    """Row i is start + i * step."""

    def __init__(self, start: int, step: int, length: int, dtype: np.dtype[Any]) -> None:
        super().__init__(length)
        self._start = start
        self._step = step
        self._dtype = dtype

    def gather(self, indices: Indices, epoch: int) -> Block:
        """Computed, in memory of its own."""
        values = indices if self._step == 1 else indices * self._step
        if self._start:
            values = values + self._start
        # `indices` belong to the caller, who goes on using them.
        return Block(LEAF, [Dense(values.astype(self._dtype, copy=values is indices))], len(values))


@dataclass(frozen=True, eq=False, kw_only=True)
class Range(Node):
    """``Dataset.range``."""

    start: int
    stop: int
    step: int
    output_type: np.dtype[Any]

    kind = "range"

    def params(self) -> dict[str, Any]:
        """What is not as usual."""
        shown: dict[str, Any] = {"start": self.start, "stop": self.stop, "step": self.step}
        return shown if self.output_type == np.int64 else shown | {"output_type": self.output_type.name}

    def __post_init__(self) -> None:
        for name in ("start", "stop", "step"):
            keep_whole(self, name, -(2**63))
        if self.step == 0:
            raise PlanError("range(step=0): step must not be zero")
        rows = range(self.start, self.stop, self.step)
        ends = (*rows[:1], *rows[-1:])
        if (self.stop - self.start) // self.step >= 2**63 - 1 or not all(-(2**63) <= row < 2**63 for row in ends):
            raise PlanError(f"range({self.start}, {self.stop}, {self.step}): the numbers do not fit into int64")
        if self.output_type.kind not in "iuf":
            raise PlanError(f"range(output_type={self.output_type}): output_type must be a number type")

    def cardinality(self) -> int:
        """As Python's range."""
        return len(range(self.start, self.stop, self.step))

    def spec(self, *inputs: Any) -> TensorSpec:
        """A scalar."""
        return TensorSpec((), self.output_type)

    def access(self) -> Access:
        """Computed from the row number."""
        return _Progression(self.start, self.step, self.cardinality(), self.output_type)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read by number."""
        return ReadRows(self.site, self.access(), setup)


@dataclass(frozen=True, eq=False, kw_only=True)
class Counter(Node):
    """``Dataset.counter``."""

    start: int
    step: int
    dtype: np.dtype[Any]

    kind = "counter"

    def __post_init__(self) -> None:
        keep_whole(self, "start", -(2**63))
        keep_whole(self, "step", -(2**63))
        if max(abs(self.start), abs(self.step)) >= 2**63:
            raise PlanError(f"counter(start={self.start}, step={self.step}): the numbers do not fit into int64")
        if self.dtype.kind not in "iuf":
            raise PlanError(f"counter(dtype={self.dtype}): dtype must be a number type")

    def cardinality(self) -> int:
        """Never ends."""
        return INFINITE

    def spec(self, *inputs: Any) -> TensorSpec:
        """A scalar."""
        return TensorSpec((), self.dtype)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read by number, so that resuming is O(1) here too."""
        return ReadRows(self.site, _Progression(self.start, self.step, ENDLESS, self.dtype), setup)
