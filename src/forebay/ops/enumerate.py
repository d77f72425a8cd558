"""``enumerate``: every row with its number."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import LEAF, Block, Cursor, Indices, Structure, TensorSpec
from forebay.block.dense import Dense
from forebay.ops.zip import side_by_side
from forebay.plan.check import keep_whole
from forebay.plan.node import Build, Node, Traits
from forebay.run import Access, Operator, Reader, Setup

_PAIR = Structure(tuple, (), (LEAF, LEAF))


@dataclass(frozen=True, eq=False, kw_only=True)
class Enumerate(Node):
    """``Dataset.enumerate``."""

    start: int

    kind = "enumerate"
    traits = Traits(one_to_one=True)

    def __post_init__(self) -> None:
        keep_whole(self, "start", -(2**63), most=2**62)

    def cardinality(self) -> int:
        """The input's."""
        return self.input.cardinality()

    def spec(self, *inputs: Any) -> Any:
        """A number and what there was."""
        return (TensorSpec((), np.int64), inputs[0])

    def access(self) -> Access | None:
        """By number, if the input is."""
        inner = self.input.access()
        return None if inner is None else _Numbered(inner, self.start)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Count along."""
        return _Enumerate(self, build(self.input, setup))


class _Enumerate(Operator):
    """State: the next number."""

    def __init__(self, node: Enumerate, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._start = node.start
        self._next = node.start

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """The input skips as many rows."""
        state = cursor.state or {"next": self._start, "in": [None, 0]}
        self._reader.seek(Cursor.from_json(state["in"]).after(cursor.skip), epoch)
        self._next = state["next"] + cursor.skip
        return 0

    def pull(self) -> Block | None:
        """A column of numbers beside the others."""
        block = self._reader.next()
        if block is None:
            return None
        state = {"next": self._next, "in": block.cursor.to_json()}
        numbers = np.arange(self._next, self._next + block.rows, dtype=np.int64)
        self._next += block.rows
        return _numbered(numbers, block).at(Cursor(state))


class _Numbered(Access):
    def __init__(self, inner: Access, start: int) -> None:
        super().__init__(inner.length)
        self._inner = inner
        self._start = start

    def origin(self, row: int, epoch: int) -> str | None:
        """The row is the same."""
        return self._inner.origin(row, epoch)

    def gather(self, indices: Indices, epoch: int) -> Block:
        """Rows with the numbers they have in order."""
        return _numbered(indices + self._start, self._inner.gather(indices, epoch))


def _numbered(numbers: Indices, block: Block) -> Block:
    return side_by_side(_PAIR, [Block(LEAF, [Dense(numbers)], block.rows), block])
