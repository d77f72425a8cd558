"""``skip``: all but the first rows."""

from dataclasses import dataclass

from forebay.block import Block, Cursor
from forebay.ops.slice_rows import sliced
from forebay.plan.check import keep_whole
from forebay.plan.node import Build, Node, Traits
from forebay.run import Access, Operator, Reader, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class Skip(Node):
    """``Dataset.skip``; -1 skips everything."""

    count: int

    kind = "skip"
    traits = Traits(same_elements=True)

    def __post_init__(self) -> None:
        keep_whole(self, "count", 0, also=(-1,))

    def cardinality(self) -> int:
        """What is left."""
        if self.count < 0:
            return 0
        rows = self.input.cardinality()
        return rows if rows < 0 else max(rows - self.count, 0)

    def is_noop(self) -> bool:
        """Skipping nothing."""
        return self.count == 0

    def window(self) -> slice:
        """The rows that stay."""
        return slice(self.count, None, 1) if self.count >= 0 else slice(0, 0, 1)

    def access(self) -> Access | None:
        """By number, if the input is."""
        return sliced(self.input.access(), self.window())

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Move the input's start."""
        return _Skip(self, build(self.input, setup))


class _Skip(Operator):
    """No state of its own: a row is where it is in the input, and only the start differs."""

    def __init__(self, node: Skip, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._count = node.count

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """The start lies behind the skipped rows; any other cursor is the input's."""
        if cursor.state is None:
            cursor = cursor.after(self._count)
        self._reader.seek(cursor, epoch)
        return 0

    def pull(self) -> Block | None:
        """Blocks as they come."""
        return self._reader.next() if self._count >= 0 else None
