"""``unbatch``: every element split along its first axis."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import Block, Cursor, RowError, TensorSpec, flatten, unfold
from forebay.plan.node import UNKNOWN, Build, Node
from forebay.plan.spec import map_spec, static_spec
from forebay.run import Operator, Reader, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class Unbatch(Node):
    """``Dataset.unbatch``."""

    kind = "unbatch"

    def cardinality(self) -> int:
        """Known when the size of all batches is."""
        rows, spec = self.input.cardinality(), static_spec(self.input)
        if rows <= 0:
            return rows
        leaves = [] if spec is None else flatten(spec, (TensorSpec,))[0]
        sizes = {leaf.shape[0] if leaf.shape else None for leaf in leaves}
        size = sizes.pop() if len(sizes) == 1 else None
        return UNKNOWN if size is None else rows * size

    def spec(self, *inputs: Any) -> Any | None:
        """Without the first axis."""
        return map_spec(_element, inputs[0])

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Block by block."""
        return _Unbatch(self, build(self.input, setup.with_unit(1)))


def _element(leaf: TensorSpec) -> TensorSpec | None:
    if leaf.shape is None:
        return leaf
    return TensorSpec(leaf.shape[1:], leaf.dtype) if leaf.shape else None


class _Unbatch(Operator):
    """State: the number of the next input element. A block's cursor is the input's where its rows were read."""

    def __init__(self, node: Unbatch, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._index = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """How many rows an element gives is only known once it is there."""
        state = cursor.state or {"index": 0, "in": [None, 0]}
        self._reader.seek(Cursor.from_json(state["in"]), epoch)
        self._index = state["index"]
        return cursor.skip

    def pull(self) -> Block | None:
        """The rows of the first block that gives any."""
        while (block := self._reader.next()) is not None:
            try:
                rows = self._split(block)
            except RowError as fault:
                self._reader.unread(block.slice(fault.row, block.rows))
                if fault.row == 0:
                    raise self.site.data_error(self._index, fault.text) from None
                block = block.slice(0, fault.row)
                rows = self._split(block)
            state = {"index": self._index, "in": block.cursor.to_json()}
            self._index += block.rows
            if rows.rows:
                return rows.at(Cursor(state))
        return None

    @staticmethod
    def _split(block: Block) -> Block:
        columns, first = [], None
        paths = list(block.structure.paths())
        for path, column in zip(paths, block.columns):
            try:
                rows, counts = unfold(column)
            except RowError as error:
                raise RowError(error.row, f"{f'leaf {path}' if path else 'the value'} {error.text}") from None
            first = counts if first is None else first
            if (counts != first).any():
                row = int(np.flatnonzero(counts != first)[0])
                raise RowError(
                    row,
                    f"leaf {path} has {counts[row]} rows, leaf {paths[0]} has {first[row]}: they must agree",
                )
            columns.append(rows)
        if first is None:
            raise RowError(0, "has no leaves, so there is nothing to split")
        return Block(block.structure, columns, int(first.sum()))
