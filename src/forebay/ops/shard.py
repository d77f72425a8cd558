"""``shard``: every n-th row."""

from dataclasses import dataclass

import numpy as np

from forebay.block import Block, Cursor
from forebay.errors import PlanError
from forebay.ops.slice_rows import sliced
from forebay.plan.check import keep_whole
from forebay.plan.node import Build, Node, Traits
from forebay.run import Access, Operator, Reader, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class Shard(Node):
    """``Dataset.shard``."""

    num_shards: int
    index: int

    kind = "shard"
    traits = Traits(same_elements=True)

    def __post_init__(self) -> None:
        keep_whole(self, "num_shards", 1, most=2**63 - 1)
        keep_whole(self, "index", 0)
        if self.index >= self.num_shards:
            raise PlanError(f"shard(num_shards={self.num_shards}, index={self.index}): index must be below num_shards")

    def cardinality(self) -> int:
        """The share of this index."""
        rows = self.input.cardinality()
        return rows if rows < 0 else len(range(self.index, rows, self.num_shards))

    def is_noop(self) -> bool:
        """A single shard is the whole."""
        return self.num_shards == 1

    def window(self) -> slice:
        """The rows that stay."""
        return slice(self.index, None, self.num_shards)

    def access(self) -> Access | None:
        """By number, if the input is."""
        return sliced(self.input.access(), self.window())

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Pick from every block."""
        return _Shard(self, build(self.input, setup.with_unit(1)))


class _Shard(Operator):
    """State: none; a block's cursor is the input's at its first picked row."""

    def __init__(self, node: Shard, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._shards = node.num_shards
        self._index = node.index
        self._before = 0  # Rows of the input to pass before the next one to pick.

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """A row here is num_shards rows there; the start lies `index` rows in."""
        state = cursor.state or {"in": [None, self._index]}
        self._reader.seek(Cursor.from_json(state["in"]).after(cursor.skip * self._shards), epoch)
        self._before = 0
        return 0

    def pull(self) -> Block | None:
        """The picked rows of a block that has any."""
        while (block := self._reader.next()) is not None:
            first = self._before
            picks = np.arange(first, block.rows, self._shards)
            self._before = first + len(picks) * self._shards - block.rows
            if len(picks):
                state = {"in": block.cursor.after(first).to_json()}
                return block.take(picks).at(Cursor(state))
        return None
