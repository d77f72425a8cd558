"""``cache``: rows are computed once and kept."""

import os
import threading
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay.block import START, Block, Cursor, concat_blocks
from forebay.digests import blake2b
from forebay.errors import DataError, PlanError, SpillError
from forebay.forks import tell_children
from forebay.plan.changes import KeptPlan
from forebay.plan.identity import content_key, contents_of_plan, layout
from forebay.plan.node import Build, Holding, Node, Sizes, Traits
from forebay.plan.site import frames_to_caller
from forebay.run import Operator, Reader, Setup, Site
from forebay.run.cached import Content, Damaged
from forebay.run.cached_folder import FolderContent
from forebay.run.cached_memory import SHARE, TOLD_PART, MemoryContent
from forebay.run.cached_others import unrelated
from forebay.run.cached_record import check_codec
from forebay.run.stretches import Stretches
from forebay.run.waiting import most_waiting

# Whatever the epoch of those who read it: that is what makes it one and the same in every run.
_EPOCH = 0
# Of what is in files; another one is another key.
_FORMAT = "3"
# What becomes of rows of another plan, for the log.
_UNTIL = (
    "It stays until the new one is complete, or needs the room. Pipelines that are used in turns need a folder each: "
    "in one, each makes all of its elements anew in every run"
)
# Files of others that a warning names.
_MOST_NAMED = 3


class CacheStore:
    """What a ``cache`` step has kept: belongs to the step as the user wrote it, and to all plans made from that."""

    def __init__(self, origin: Node) -> None:
        self._origin = origin
        self._lock = threading.Lock()
        self._latest: tuple[tuple[int, ...], Content] | None = None
        self.warned = False
        tell_children(self)

    def in_child(self) -> None:
        """Called by itself in a forked child."""
        self._lock = threading.Lock()

    def content(self, node: "Cache") -> Content:
        """The rows kept under the seeds of this plan; those kept under others are forgotten."""
        seeds = tuple(sorted(_seeds_below(node.input)))
        with self._lock:
            if self._latest is None or self._latest[0] != seeds:
                self._latest = (seeds, self._made(node))
            return self._latest[1]

    def _made(self, node: "Cache") -> Content:
        if not node.filename:
            return MemoryContent()
        # What a function that makes datasets would draw is not known before it runs, and rarely anything.
        seeds = sorted(_seeds_below(node.input, inner=False))
        contents = contents_of_plan(self._origin)
        key = content_key(contents, [_FORMAT, *map(str, seeds)])
        named = Site(f"cache({node.filename!r})", node.label, node.where)
        plan = KeptPlan(str(named), contents, seeds, _UNTIL)
        return FolderContent(Path(node.filename), key, node.compression, plan)

    def clear(self, node: "Cache") -> None:
        """Forget everything. Iterators that are under way keep what they use until they end."""
        content = self.content(node) if node.filename else None
        with self._lock:
            self._latest = None
        if content is not None:
            content.clear()

    def __reduce__(self) -> Any:
        # In another process, or in a copy, the step has kept nothing yet.
        return CacheStore, (self._origin,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cache(Node):
    """``Dataset.cache``."""

    filename: str = ""
    compression: str | None = None
    store: CacheStore | None = field(default=None, repr=False)

    kind = "cache"
    traits = Traits(one_to_one=True, same_elements=True, stores=True)

    def __post_init__(self) -> None:
        check_codec(self.compression)
        if self.compression is not None and not self.filename:
            raise PlanError(f"cache(compression={self.compression!r}): only a cache with a filename is compressed")
        if self.filename and os.path.exists(self.filename) and not os.path.isdir(self.filename):
            raise PlanError(f"cache(filename={self.filename!r}): there is a file of that name; it must be a folder")
        if self.store is None:
            object.__setattr__(self, "store", CacheStore(self.input))

    @property
    def content(self) -> Content:
        """What this step has kept."""
        assert self.store is not None
        return self.store.content(self)

    def check_use(self, reordered: bool) -> None:
        """Of an order that is drawn before it, once: a shuffle behind it makes another one in every epoch."""
        assert self.store is not None
        redrawn = redrawn_below(self.input)
        if reordered or self.store.warned or not redrawn or not all(step.reorders for step in redrawn):
            return
        self.store.warned = True
        warnings.warn(frozen_text(self.where, redrawn[-1]), UserWarning, stacklevel=frames_to_caller())

    def params(self) -> dict[str, Any]:
        """Nothing: rows and cursors are the same wherever they are kept."""
        return {}

    def settings(self) -> dict[str, Any]:
        """Where it keeps them."""
        return {"filename": self.filename or None, "compression": self.compression}

    def cardinality(self) -> int:
        """The input's."""
        return self.input.cardinality()

    def holds(self, sizes: Sizes) -> Holding:
        """Its part of the budget, and the rest on disk. There, blocks are written and read some at a time."""
        total = None if sizes.rows is None else sizes.rows * sizes.element
        record = most_waiting(sizes.setup)
        if self.filename:
            return Holding(2 * record, "blocks in hand and as many on their way; the rest is in files", total)
        most = int(SHARE * sizes.setup.ledger.budget)
        if total is None:
            return Holding(
                most + record, "up to half of the budget, and blocks on their way; the rest goes to disk, once", None
            )
        if total <= most - record:
            return Holding(total, "all elements")
        # Other steps may have filled the budget before.
        why = "half of the budget, less if others need it, and blocks on their way; the rest goes to disk, once"
        return Holding(min(total, most) + record, why, total + total // TOLD_PART)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """The input runs in order, so that what is kept does not depend on who was faster."""
        below = setup.ordered()
        name = blake2b(layout(self.input, setup.rules).encode(), digest_size=8).hexdigest()
        return _Cache(self, setup, build(self.input, below), name)


class _Cache(Operator):
    """State: the number of the next row, and the input's cursor for those who have not kept it.

    Rows that are there are read from what was kept. From the first one that is not, the input takes over, up to its
    end: going back to kept rows whenever another iterator has added some would cost a seek each time.
    """

    makes_rows = True

    def __init__(self, node: Cache, setup: Setup, source: Operator, layout: str) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._setup = setup
        self._layout = layout
        self._content = node.content
        self._filename = node.filename
        self._told = self._told_unmended = False
        self._hold = self._content.enter(self, setup)
        self._lease = setup.ledger.lease(str(node.site))
        # One for rows that wait to be written, one for rows that are on their way from a file.
        self._stretches = Stretches(self._lease.beside())
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
        if cursor.state is None and row > content.rows and not content.complete and content.may_grow():
            there, at = content.frontier(self._layout)
            if there < row:
                self._row, self._at = there, at
                return int(row - there)
        self._row = row
        self._at = Cursor.from_json(state["in"]).after(cursor.skip)
        return 0

    def pull(self) -> Block | None:
        """Kept rows, or the input's."""
        if not self._computing:
            block = self._kept()
            if block is not None:
                return self._out(block, block.cursor)
            if self._content.complete:
                return None
            self._reader.seek(self._at, _EPOCH)
            self._computing = True
        block = self._reader.next()
        if block is None:
            self._content.finish(self._row)
            self._lease.release()
            return None
        block = self._out(self._content.add(self._row, block, self._layout, self._setup), block.cursor)
        self._lease.note(self._content.waiting)
        return block

    def _kept(self) -> Block | None:
        if self._row >= self._content.rows and not self._content.complete:
            self._content.refresh()
        try:
            return self._content.read(self._row, self._layout, self._stretches)
        except Damaged as damage:
            return self._mended(damage)

    def _mended(self, damage: Damaged) -> Block:
        self._tell(damage)
        self._reader.seek(damage.cursor, _EPOCH)
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
        try:
            self._content.mend(whole, damage.start, self._layout)
        except SpillError as error:
            # The rows are right all the same. In a folder that is only read, they cost this much in every epoch.
            self._tell_unmended(error)
        return whole.slice(self._row - damage.start, whole.rows)

    def _tell(self, damage: Damaged) -> None:
        """Of the first: of a disk that fails, there may be thousands."""
        if self._told:
            return
        self._told = True
        _warn(
            "%s: elements %s to %s in %s do not read back as they were written, and are computed again; others of this "
            "kind are not logged. If that happens more than once, look at the disk",
            *(self.site, f"{damage.start:,}", f"{damage.stop - 1:,}", self._filename),
        )

    def _tell_unmended(self, error: SpillError) -> None:
        if not self._told_unmended:
            self._told_unmended = True
            _warn("%s: what is computed again stays damaged there, and will have to be once more: %s", self.site, error)

    def _out(self, block: Block, cursor: Cursor) -> Block:
        state = {"row": self._row, "in": cursor.to_json()}
        self._row += block.rows
        self._at = cursor.after(block.rows)
        return block.at(Cursor(state))

    def held(self) -> tuple[int, float]:
        """What is kept in memory, against its part of the budget."""
        held = self._content.held()
        return held, 1.0 if self._content.complete else min(1.0, held / (SHARE * self._setup.ledger.budget))

    def close(self) -> None:
        """What was kept stays."""
        super().close()
        self._stretches.stop()
        self._content.leave(self)
        self._lease.release()


def _warn(text: str, *values: Any) -> None:
    # Those who have nothing to log need not wait for it.
    import logging

    logging.getLogger("forebay").warning(text, *values)


def _seeds_below(node: Node, inner: bool = True) -> list[int]:
    own = node.seeds() if inner or not node.traits.makes_plans else []
    return [*own, *(seed for child in node.inputs for seed in _seeds_below(child, inner))]


def clear_caches(node: Node) -> None:
    """Free what every ``cache`` step of a plan has kept."""
    if isinstance(node, Cache) and node.store is not None:
        node.store.clear(node)
    for child in node.inputs:
        clear_caches(child)


def frozen_text(where: str, step: Node) -> str:
    """What a cache makes of a step that draws random numbers."""
    return (
        f"cache at {where} keeps what {step.site} draws in the first epoch: all epochs will be the same. Put it behind "
        "cache() to have them differ"
    )


def unrelated_text(where: str, folder: str) -> str | None:
    """What to say of a folder that has always been used for something else; None if there is nothing to say."""
    names = unrelated(folder) if folder else []
    if not names:
        return None
    more = " and others" * (len(names) > _MOST_NAMED)
    return (
        f"cache at {where} puts its files beside {', '.join(map(repr, names[:_MOST_NAMED]))}{more} in {folder}. Those "
        "stay as they are, also with clear(); to have them apart, give the cache a folder of its own"
    )


def redrawn_below(node: Node) -> list[Node]:
    """Steps whose rows would differ from epoch to epoch, were it not for a cache behind them."""
    if isinstance(node, Cache):
        return []
    found = [step for child in node.inputs for step in redrawn_below(child)]
    return [*found, node] if node.redraws else found
