"""``take``: the first rows."""

from dataclasses import dataclass

from forebay.block import Block, Cursor
from forebay.ops.slice_rows import sliced
from forebay.plan.check import keep_whole
from forebay.plan.node import Build, Node, Traits, element_count
from forebay.run import Access, Operator, Reader, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class Take(Node):
    """``Dataset.take``; -1 takes everything."""

    count: int

    kind = "take"
    traits = Traits(same_elements=True)

    def __post_init__(self) -> None:
        keep_whole(self, "count", 0, also=(-1,))

    def cardinality(self) -> int:
        """No more than asked for, no more than there are."""
        return self.input.cardinality() if self.count < 0 else element_count(self.count, self.input.cardinality())

    def is_noop(self) -> bool:
        """Taking all."""
        return self.count < 0 or 0 <= self.input.cardinality() <= self.count

    def window(self) -> slice:
        """The rows that stay."""
        return slice(0, None if self.count < 0 else self.count, 1)

    def access(self) -> Access | None:
        """By number, if the input is."""
        return sliced(self.input.access(), self.window())

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Cut the stream."""
        source = build(self.input, setup)
        return source if self.count < 0 else _Take(self, source)


class _Take(Operator):
    """State: how many rows were taken before."""

    def __init__(self, node: Take, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._count = node.count
        self._taken = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """The input skips as many rows."""
        state = cursor.state or {"taken": 0, "in": [None, 0]}
        self._reader.seek(Cursor.from_json(state["in"]).after(cursor.skip), epoch)
        self._taken = state["taken"] + cursor.skip
        return 0

    def pull(self) -> Block | None:
        """Blocks as they come, the last one cut."""
        left = self._count - self._taken
        block = self._reader.read(left) if left > 0 else None
        if block is None:
            return None
        state = {"taken": self._taken, "in": block.cursor.to_json()}
        self._taken += block.rows
        return block.at(Cursor(state))
