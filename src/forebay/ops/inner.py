"""Datasets that a function makes of elements while a plan runs: what ``flat_map`` and ``interleave`` share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from forebay.block import START, Block, Cursor, RowError, Uniform
from forebay.errors import an
from forebay.plan.fingerprint import function_name
from forebay.plan.lower import build, prepare
from forebay.plan.node import Node
from forebay.run import Operator, Reader, Setup, Site
from forebay.run.calls import Call, RowCalls
from forebay.run.gate import Gate
from forebay.run.keys import seed_of

_MOST_FIRST = 1024
# Below the first, what a block costs as a whole shows in the cost of a row; beyond the second, it hardly does any more.
_LEAST_BYTES = 1 << 17
_MOST_BYTES = 3 << 18
# The same where files are read ahead, and for all slots together.
_MOST_AHEAD = 3 << 17
_AHEAD_BYTES = 1 << 22
# Blocks of all slots together take no more than this part of the budget, if it has room for the least.
_PART = 64
# Those of very many slots are smaller still, so that two of each, with what they were read into, fit into the budget.
_MOST_PART = 4
_VERY_LEAST = 1 << 12


class InnerDatasets:
    """Makes the dataset of an element. Nothing that matters is kept between calls, so several threads may use it."""

    def __init__(
        self,
        site: Site,
        map_func: Callable[..., Any],
        seed: int,
        setup: Setup,
        rewrite: Callable[[Node], Node] | None = None,
    ) -> None:
        self._site = site
        self._rewrite = rewrite
        self._name = function_name(map_func)
        self._calls = RowCalls(Call(map_func, self._name, site))
        self._seed = seed
        self._setup = setup
        self.ahead = setup.ahead
        """Who reads their files ahead, if anybody."""
        self.first = 1
        """With how many rows inner datasets may begin: what the last ones gave is a fair guess at the next."""
        self.free = False
        """Whether one of them came in a free order."""

    def plan(self, element: Block, index: int, epoch: int) -> Node:
        """The plan that the function makes of element number `index`, with seeds of its own."""
        results, error = self._calls(element, np.array([index]), epoch)
        plan = getattr(results[0], "plan", None) if results else None
        if error is None and not isinstance(plan, Node):
            given = type(results[0]).__name__
            error = self._site.data_error(index, f"{self._name} returned {an(given)}, it must return a Dataset")
        if error is not None:
            raise error
        assert isinstance(plan, Node)
        if self._rewrite is not None:
            plan = self._rewrite(plan)
        return prepare(plan, seed_of(self._seed, index), self._setup.rules)

    def open(self, plan: Node, gate: Gate) -> Operator:
        """The operators of a plan."""
        return build(plan, replace(self._setup, first=min(self.first, _MOST_FIRST), gate=gate))


class Inner:
    """One inner dataset, made when its first rows are asked for."""

    def __init__(self, datasets: InnerDatasets, element: Block, index: int, epoch: int, at: Cursor) -> None:
        self._datasets = datasets
        self._element = element
        self._epoch = epoch
        self._operator: Operator | None = None
        self._reader: Reader | None = None
        self._abandoned = False
        self._at = at
        self._gate = Gate(at == START)
        self.origin = element.cursor
        self.index = index
        self.made = False
        """Whether the function has made it: if not, that is what failed."""

    def next(self) -> Block | None:
        """All rows at hand, at least one, or None at the end."""
        if self._reader is None:
            plan = self._datasets.plan(self._element, self.index, self._epoch)
            self.made = True
            self._operator = self._datasets.open(plan, self._gate)
            if self._abandoned:
                self._operator.abandon()
            reader = Reader(self._operator)
            reader.seek(self._at, self._epoch)
            self._reader = reader
        block = self._reader.next()
        self._gate.open = True
        if self.free:
            self._datasets.free = True
        return block

    @property
    def free(self) -> bool:
        """Whether its rows may come in another order next time. Known once some have come."""
        return self._operator is not None and self._operator.free

    def abandon(self) -> None:
        """As an operator's. Another thread may be making the operators just now, and looks at this afterwards."""
        self._abandoned = True
        operator = self._operator
        if operator is not None:
            operator.abandon()

    def close(self) -> None:
        """Release what is held; good for nothing afterwards."""
        self._reader = None
        if self._operator is not None:
            self._operator.close()
            self._operator = None


def check_inner(uniform: Uniform, site: Site, index: int, block: Block) -> None:
    """DataError if the rows of an inner dataset do not fit those of the others."""
    try:
        uniform.check(block.structure, block.columns)
    except RowError as fault:
        raise site.data_error(index, f"the inner dataset's element: {fault.text}") from None


def inner_bytes(setup: Setup, cycle: int, ahead: bool = False) -> int:
    """Each slot holds a block or two and a block of the output takes little from each, so theirs are smaller.

    Where files are read ahead, a block costs less, and there are two of every slot's at once. What is kept of memory
    for the next epoch has room for some of those; the rest would have to be cleared by the system each time.
    """
    budget = setup.ledger.budget
    least = min(_LEAST_BYTES, max(budget // (_MOST_PART * cycle), _VERY_LEAST))
    most = min(_MOST_AHEAD, _AHEAD_BYTES // cycle) if ahead else _MOST_BYTES
    fair = max(setup.block_bytes // cycle, min(budget // (_PART * cycle), most), least)
    return min(fair, setup.block_bytes)
