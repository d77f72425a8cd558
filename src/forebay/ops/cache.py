"""``cache``: rows are computed once and kept."""

import threading
from dataclasses import dataclass, field
from typing import Any

from forebay.block import START, Block, Cursor, concat_blocks
from forebay.errors import DataError
from forebay.plan.identity import layout
from forebay.plan.node import Build, Node, Traits
from forebay.run import Operator, Reader, Setup
from forebay.run.cached import Content, Damaged
from forebay.run.cached_memory import MemoryContent

# Whatever the epoch of those who read it: that is what makes it one and the same in every run.
_EPOCH = 0


class CacheStore:
    """What a ``cache`` step has kept: belongs to the step as the user wrote it, and to all plans made from that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: tuple[tuple[int, ...], Content] | None = None

    def content(self, node: "Cache") -> Content:
        """The rows kept under these seeds; those kept under others are forgotten."""
        seeds = tuple(sorted(_seeds_below(node.input)))
        with self._lock:
            if self._latest is None or self._latest[0] != seeds:
                self._latest = (seeds, MemoryContent())
            return self._latest[1]

    def clear(self) -> None:
        """Forget everything. Iterators that are under way keep what they use until they end."""
        with self._lock:
            self._latest = None

    def __reduce__(self) -> Any:
        # In another process, or in a copy, the step has kept nothing yet.
        return CacheStore, ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Cache(Node):
    """``Dataset.cache``."""

    filename: str = ""
    compression: str | None = None
    store: CacheStore = field(default_factory=CacheStore, repr=False)

    kind = "cache"
    traits = Traits(one_to_one=True, same_elements=True)

    def params(self) -> dict[str, Any]:
        """Nothing: rows and cursors are the same wherever they are kept."""
        return {}

    def settings(self) -> dict[str, Any]:
        """Where it keeps them."""
        return {"filename": self.filename or None, "compression": self.compression}

    def cardinality(self) -> int:
        """The input's."""
        return self.input.cardinality()

    def lower(self, setup: Setup, build: Build) -> Operator:
        """The input runs in order, so that what is kept does not depend on who was faster."""
        below = setup.ordered()
        return _Cache(self, setup, build(self.input, below), layout(self.input, setup.rules))


class _Cache(Operator):
    """State: the number of the next row, and the input's cursor for those who have not kept it.

    Rows that are there are read from what was kept. From the first one that is not, the input takes over, up to its
    end: going back to kept rows whenever another iterator has added some would cost a seek each time.
    """

    def __init__(self, node: Cache, setup: Setup, source: Operator, layout: str) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._setup = setup
        self._layout = layout
        self._content = node.store.content(node)
        self._hold = self._content.enter(self, setup)
        self._row = 0
        self._at = START
        self._computing = False

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """By number among the rows that are there, otherwise in the input.

        Rows that are skipped are kept on the way, or ``cache().skip(n)`` would never keep any.
        """
        state = cursor.state or {"row": 0, "in": [None, 0]}
        row = state["row"] + cursor.skip
        self._computing = False
        content = self._content
        content.refresh()
        there = content.rows
        if cursor.state is None and row > there and not content.complete and content.may_grow():
            self._row = there
            return int(row - there)
        self._row = row
        self._at = Cursor.from_json(state["in"]).after(cursor.skip)
        return 0

    def pull(self) -> Block | None:
        """Kept rows, or the input's."""
        if not self._computing:
            content = self._content
            if self._row >= content.rows:
                content.refresh()
            if self._row < content.rows:
                return self._kept()
            if content.complete:
                return None
            self._compute()
        return self._computed()

    def _kept(self) -> Block:
        try:
            block = self._content.read(self._row)
        except Damaged as damage:
            block = self._mended(damage)
        cursor = block.cursor
        if self._layout != self._content.layout:
            # It says where the row is in a plan that runs in another way.
            cursor = START.after(self._row)
        return self._out(block, cursor)

    def _compute(self) -> None:
        """Put the input where the kept rows end, or where the state says."""
        at = self._content.frontier(self._row)
        if at is None:
            at = self._at
        elif self._layout != self._content.layout:
            at = START.after(self._row)
        self._reader.seek(at, _EPOCH)
        self._computing = True

    def _computed(self) -> Block | None:
        block = self._reader.next()
        if block is None:
            self._content.finish(self._row)
            return None
        return self._out(self._content.add(self._row, block, self._layout, self._setup), block.cursor)

    def _mended(self, damage: Damaged) -> Block:
        same = self._layout == self._content.layout
        self._reader.seek(damage.cursor if same else START.after(damage.start), _EPOCH)
        blocks: list[Block] = []
        missing = damage.stop - damage.start
        while missing:
            block = self._reader.read(missing)
            if block is None:
                raise DataError(
                    f"{self.site}: rows that were kept are damaged, and the input no longer has as many: "
                    f"it ends before element {damage.stop}"
                )
            blocks.append(block)
            missing -= block.rows
        whole = concat_blocks(blocks).at(damage.cursor)
        self._content.mend(whole, damage.start)
        return whole.slice(self._row - damage.start, whole.rows)

    def _out(self, block: Block, cursor: Cursor) -> Block:
        state = {"row": self._row, "in": cursor.to_json()}
        self._row += block.rows
        return block.at(Cursor(state))

    def close(self) -> None:
        """What was kept stays."""
        super().close()
        self._content.leave(self)


def _seeds_below(node: Node) -> list[int]:
    return [*node.seeds(), *(seed for child in node.inputs for seed in _seeds_below(child))]


def clear_caches(node: Node) -> None:
    """Free what every ``cache`` step of a plan has kept."""
    if isinstance(node, Cache):
        node.store.clear()
    for child in node.inputs:
        clear_caches(child)


def redrawn_below(node: Node) -> list[Node]:
    """Steps whose rows would differ from epoch to epoch, were it not for a cache behind them."""
    if isinstance(node, Cache):
        return []
    found = [step for child in node.inputs for step in redrawn_below(child)]
    return [*found, node] if node.redraws else found
