"""Groups of rows that can only be decoded as a whole, decoded once and read by number from then on."""

from collections.abc import Callable, Iterator
from threading import Lock

import numpy as np

from forebay.block import Block, Indices, concat_blocks
from forebay.errors import SpillError
from forebay.forks import is_torn, tell_children
from forebay.ledger import Lease, Ledger
from forebay.run import Setup
from forebay.run.spill_room import SpillStore
from forebay.run.spilled_rows import SpilledRows

Pieces = Callable[[int], Iterator[Block]]
"""Decodes a group, some rows at a time."""

# The part of the budget that decoded groups may take up: a quarter.
DECODED_SHARE = 4


class DecodedGroups:
    """Rows of groups, decoded when the first of them is asked for.

    They are kept in memory as far as the ledger grants it, a quarter of the budget at most, and behind that in files
    without a name. So no group is decoded twice, and memory holds no more than that and a piece of a group.
    """

    def __init__(self, starts: Indices) -> None:
        self._starts = starts
        self._lock = Lock()
        self._kept: dict[int, tuple[Indices, list[Block]]] = {}  # Where its blocks begin, and the blocks.
        self._bytes = 0
        self._lease: Lease | None = None
        self._ledger: Ledger | None = None
        self._spill: SpillStore | None = None
        self._spilled: SpilledRows | None = None
        self._on_disk: dict[int, int] = {}  # By group, where its rows begin.
        self._filled = 0  # Where the next group's would, so that the file has no holes.
        tell_children(self)

    def in_child(self) -> None:
        """Called by itself in a forked child: in one file, it and its parent would write over each other's rows."""
        self._spilled, self._on_disk, self._filled = None, {}, 0
        if is_torn(self._lock):
            self._lock = Lock()
            self._kept, self._bytes = {}, 0

    def within(self, setup: Setup) -> Lease:
        """The budget of whoever reads now. What was kept for somebody before counts in it from now on."""
        setup.spill.reads(self)
        with self._lock:
            self._spill = setup.spill
            if self._ledger is not setup.ledger:
                self._ledger = setup.ledger
                self._lease = setup.ledger.lease("decoded row groups")
                self._lease.note(self._bytes)
            assert self._lease is not None
            return self._lease

    def on_disk_beside(self, store: SpillStore) -> int:
        """Of the files of the iteration that was the first to have no room."""
        return 0 if self._spilled is None else self._spilled.on_disk_beside(store)

    def gather(self, rows: Indices, pieces: Pieces) -> Block:
        """These rows, which come in ascending order, by what decodes the groups of them that are not there yet."""
        groups = np.searchsorted(self._starts, rows, "right") - 1
        needed, first = np.unique(groups, return_index=True)
        bounds = [*first.tolist(), len(rows)]
        with self._lock:
            blocks: list[Block] = []
            for i, group in enumerate(needed.tolist()):
                if group not in self._kept and group not in self._on_disk:
                    self._decode(group, pieces)
                mine = rows[bounds[i] : bounds[i + 1]] - self._starts[group]
                if group in self._on_disk:
                    assert self._spilled is not None
                    blocks.append(self._spilled.take(mine + self._on_disk[group]))
                else:
                    blocks += _picked(*self._kept[group], mine)
        return concat_blocks(blocks)

    def _decode(self, group: int, pieces: Pieces) -> None:
        try:
            self._keep(group, pieces)
        finally:
            # Of a group that is on disk, or at fault, nothing stays in memory.
            self._granted(self._bytes)

    def _keep(self, group: int, pieces: Pieces) -> None:
        blocks: list[Block] = []
        size, at = 0, self._filled
        for block in pieces(group):
            if size >= 0 and self._granted(self._bytes + size + block.nbytes):
                blocks.append(block)
                size += block.nbytes
                continue
            for early in blocks:
                at = self._to_disk(early, at)
            blocks, size = [], -1
            at = self._to_disk(block, at)
        if size < 0:
            self._on_disk[group], self._filled = self._filled, at
        else:
            self._bytes += size
            self._kept[group] = np.cumsum([0, *(block.rows for block in blocks)]), blocks

    def _granted(self, size: int) -> bool:
        if self._lease is None or self._ledger is None:
            return True
        return size <= self._ledger.budget // DECODED_SHARE and self._lease.ask(size)

    def _to_disk(self, block: Block, at: int) -> int:
        if self._spilled is None:
            self._spilled = SpilledRows(self._spill or SpillStore())
        try:
            self._spilled.put(np.arange(at, at + block.rows), block)
        except SpillError:
            # Whoever is to make do without these rows needs no others, and somebody else may need the room.
            spilled, self._spilled = self._spilled, None
            self._on_disk, self._filled = {}, 0
            spilled.close()
            raise
        return at + block.rows


def _picked(begins: Indices, blocks: list[Block], rows: Indices) -> list[Block]:
    """Ascending rows of a group from the blocks that it is kept in."""
    cuts = np.searchsorted(rows, begins)
    return [
        block.take(rows[low:high] - begin)
        for block, begin, low, high in zip(blocks, begins.tolist(), cuts.tolist(), cuts[1:].tolist())
        if low < high
    ]
