"""``unbatch``: every element split along its first axis."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import Block, Column, Cursor, Indices, RowError, TensorSpec, flatten, unfold
from forebay.block.objects import Objects
from forebay.block.spec import OBJECT, NoneSpec
from forebay.errors import PlanError
from forebay.plan.node import UNKNOWN, Build, Node
from forebay.plan.spec import map_spec, static_spec
from forebay.run import Operator, Reader, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class Unbatch(Node):
    """``Dataset.unbatch``."""

    kind = "unbatch"

    def __post_init__(self) -> None:
        spec = static_spec(self.input)
        leaves = flatten(spec, (TensorSpec,))[0] if spec is not None else []
        known = [leaf for leaf in leaves if leaf.dtype != OBJECT and leaf.shape is not None]
        if any(leaf.shape == () for leaf in known):
            raise PlanError(f"unbatch(): every leaf must have an axis to split along, the elements are {spec}")
        if len({leaf.shape[0] for leaf in known} - {None}) > 1:
            raise PlanError(f"unbatch(): all leaves must have the same first size, the elements are {spec}")

    def cardinality(self) -> int:
        """Known when the size of all batches is."""
        rows, spec = self.input.cardinality(), static_spec(self.input)
        if rows <= 0:
            return rows
        leaves = [] if spec is None else flatten(spec, (TensorSpec,))[0]
        sizes = {leaf.shape[0] if leaf.shape else None for leaf in leaves if not isinstance(leaf, NoneSpec)}
        size = sizes.pop() if len(sizes) == 1 else None
        return UNKNOWN if size is None else rows * size

    def spec(self, *inputs: Any) -> Any | None:
        """Without the first axis."""
        return map_spec(lambda leaf: leaf.without_leading(), inputs[0])

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Block by block."""
        return _Unbatch(self, build(self.input, setup.with_unit(1)))


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
        self.raise_pending()
        while (block := self._reader.next()) is not None:
            try:
                rows = self._split(block)
            except RowError as fault:
                error = self.site.data_error(self._index + fault.row, fault.text)
                if fault.row == 0:
                    raise error from None
                self.fail_next(error)
                block = block.slice(0, fault.row)
                rows = self._split(block)
            state = {"index": self._index, "in": block.cursor.to_json()}
            self._index += block.rows
            if rows.rows:
                return rows.at(Cursor(state))
        return None

    @staticmethod
    def _split(block: Block) -> Block:
        split: list[tuple[str, Column | None, Indices]] = []
        for named, column in zip(block.structure.leaf_names(), block.columns):
            if _all_none(column):
                split.append((named, None, np.empty(0, np.int64)))
                continue
            try:
                split.append((named, *unfold(column)))
            except RowError as error:
                raise RowError(error.row, f"{named} {error.text}") from None
        counted = [(named, counts) for named, column, counts in split if column is not None]
        if not counted:
            raise RowError(0, "has no array to split")
        first_name, first = counted[0]
        for named, counts in counted:
            if (counts != first).any():
                row = int(np.flatnonzero(counts != first)[0])
                raise RowError(row, f"{named} has {counts[row]} rows, {first_name} has {first[row]}: they must agree")
        rows = int(first.sum())
        columns = [Objects(np.full(rows, None)) if column is None else column for _, column, _ in split]
        return Block(block.structure, columns, rows)


def _all_none(column: Column) -> bool:
    """Whether a leaf is None throughout, and so stays None in every row."""
    return isinstance(column, Objects) and column.values.ndim == 1 and all(v is None for v in column.values)
