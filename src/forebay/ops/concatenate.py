"""``concatenate``: one dataset after another."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from forebay.block import (
    Block,
    Cursor,
    Indices,
    RowError,
    Structure,
    TensorSpec,
    Uniform,
    concat_blocks,
    flatten,
)
from forebay.errors import DataError, PlanError
from forebay.plan.node import INFINITE, UNKNOWN, Build, Node, Traits
from forebay.plan.spec import common_spec, same_kind, static_spec
from forebay.plan.text import brief
from forebay.run import Access, Operator, Reader, Setup, Site
from forebay.run.log import Starts


@dataclass(frozen=True, eq=False, kw_only=True)
class Concatenate(Node):
    """``Dataset.concatenate``. A chain of calls is one node, so that a thousand of them do not nest."""

    kind = "concatenate"
    traits = Traits(chains=True)

    @staticmethod
    def of(first: Node, second: Node, label: str | None, where: str) -> "Concatenate":
        """One dataset behind another; PlanError if their elements cannot be of one kind."""
        before = first.inputs if isinstance(first, Concatenate) else (first,)
        # Those behind the first are of its kind already; to look at all of them would take longer with every call.
        ahead, behind = static_spec(before[0]), static_spec(second)
        if ahead is not None and behind is not None and not same_kind(ahead, behind):
            both = f"{brief(str(ahead))} and {brief(str(behind))}"
            raise PlanError(f"concatenate(): the datasets differ in structure or dtype: {both}")
        return Concatenate(inputs=(*before, second), label=label, where=where)

    def cardinality(self) -> int:
        """The sum."""
        counts = [node.cardinality() for node in self.inputs]
        return INFINITE if INFINITE in counts else UNKNOWN if UNKNOWN in counts else sum(counts)

    def structure(self) -> Structure | None:
        """The first dataset's structure, which elements of the others are given too; None if it is not known."""
        spec = static_spec(self.inputs[0])
        return None if spec is None else flatten(spec, (TensorSpec,))[1]

    def spec(self, *inputs: Any) -> Any | None:
        """What all inputs have in common."""
        return common_spec(inputs)

    def access(self) -> Access | None:
        """By number, if every input is."""
        parts = [node.access() for node in self.inputs]
        return _Joined([part for part in parts if part is not None], self) if None not in parts else None

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read one input after the other."""
        return _Concatenate(self, [build(node, setup) for node in self.inputs])


class _Concatenate(Operator):
    """State: which input, and its cursor."""

    def __init__(self, node: Concatenate, sources: list[Operator]) -> None:
        super().__init__(node.site, *sources)
        self._readers = [Reader(source) for source in sources]
        self._rows = [child.cardinality() for child in node.inputs]
        self._structure = node.structure()
        self._which = 0
        self._epoch = 0
        self._starts = Starts()
        self._uniform = Uniform()

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Inputs of known length are skipped by counting."""
        state, skip = cursor.state, cursor.skip
        self._epoch = epoch
        if state is None:
            which = 0
            while which < len(self._rows) - 1 and 0 <= self._rows[which] <= skip:
                skip -= self._rows[which]
                which += 1
            state = self._state(which, Cursor(None))
        self._which = state["which"]
        self._starts = Starts(state.get("log"))
        self._readers[self._which].seek(Cursor.from_json(state["in"][self._which]), epoch)
        return skip

    def _state(self, which: int, cursor: Cursor) -> dict[str, Any]:
        """One place for each input, so that a state has the same form wherever it was saved."""
        return {"which": which, "in": [cursor.to_json() if i == which else None for i in range(len(self._readers))]}

    def pull(self) -> Block | None:
        """The rest of this input, then the next."""
        while True:
            block = self._readers[self._which].next()
            if block is not None:
                if self._structure is not None:
                    block = block.ordered_as(self._structure)
                block = _fitted(block, self._uniform, self.site, self._which)
                state = self._state(self._which, block.cursor)
                if self.free:
                    state["log"] = self._starts.log(self._which, block.cursor)
                return block.at(Cursor(state))
            if self._which + 1 == len(self._readers):
                return None
            self._which += 1
            self._readers[self._which].seek(self._starts.of(self._which), self._epoch)


class _Joined(Access):
    def __init__(self, parts: list[Access], node: Concatenate) -> None:
        self._ends = list(accumulate(part.length for part in parts))
        super().__init__(self._ends[-1])
        self._parts: list[Access] = parts
        self._site = node.site
        self._structure = node.structure()
        self._uniform = Uniform()

    def gather(self, indices: Indices, epoch: int) -> Block:
        """Rows of each part at once, then put in order."""
        owner = np.searchsorted(self._ends, indices, side="right")
        blocks, order = [], []
        for which, part in enumerate(self._parts):
            mine = np.flatnonzero(owner == which)
            if len(mine):
                block = part.gather(indices[mine] - (self._ends[which] - part.length), epoch)
                blocks.append(self._checked(block, which))
                order.append(mine)
        if len(blocks) == 1:
            return blocks[0]
        try:
            joined = concat_blocks(blocks)
        except RowError as error:
            raise self._site.data_error(int(indices[0]), f"the concatenated datasets differ: {error.text}") from None
        back = np.empty(len(indices), np.int64)
        back[np.concatenate(order)] = np.arange(len(indices))
        return joined.take(back)

    def read(self, start: int, stop: int, epoch: int) -> Block:
        """Within one part, as that part reads."""
        which: int = bisect_right(self._ends, start)
        begin = self._ends[which] - self._parts[which].length
        if stop <= self._ends[which]:
            return self._checked(self._parts[which].read(start - begin, stop - begin, epoch), which)
        return super().read(start, stop, epoch)

    def _checked(self, block: Block, which: int) -> Block:
        if self._structure is not None:
            block = block.ordered_as(self._structure)
        # Not the order of keys that came first: which rows these are depends on who asks.
        _fitted(block, self._uniform, self._site, which)
        return block


def _fitted(block: Block, uniform: Uniform, site: Site, which: int) -> Block:
    """What a function returns is known once it has been called, and may not be what another dataset has."""
    try:
        return uniform.fit(block)
    except RowError as fault:
        raise DataError(f"{site}, dataset {which + 1} of those put together: {fault.text}") from None
