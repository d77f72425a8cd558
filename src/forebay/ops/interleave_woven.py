"""Rows of ``interleave`` that have been put in order ahead of need."""

from collections.abc import Iterable, Sequence

from forebay.block import Block
from forebay.ledger import Lease
from forebay.ops.interleave_slot import Slot
from forebay.run.weave import shares

# Which buffer, and from where to where: all that is made anew for a row. The buffers count where they were read.
_PLACE = 24
# By what part of the usual a block may be larger, if that makes it one block less.
_OVER = 8


def in_bytes(slots: Sequence[Slot | None], rows: int, done: int, length: int, enough: int) -> int:
    """How many of `rows` rows in turns to put in order together: those that take up so many bytes, at least one.

    A slot tells the size of its rows on average, and the last of many small ones may be larger than all others.
    """
    if sum([slot.uneven for slot in slots if slot is not None]) <= enough:
        return rows

    def size(some: int) -> int:
        given = shares(some, done, length, len(slots))[0]
        return sum([slot.size(count) for slot, count in zip(slots, given) if slot is not None and count])

    if size(rows) <= enough:
        return rows
    fits, over = 1, rows
    while over - fits > 1:
        some = (fits + over) // 2
        fits, over = (some, over) if size(some) <= enough else (fits, some)
    return fits


class Woven:
    """What is left of rows that were put in order together.

    Where rows stay in their files' buffers, and only places of them are put in order, all that slots have at hand
    is woven at once and handed on block by block: what it costs to look at every slot is then shared by several blocks.
    """

    def __init__(self, lease: Lease, unit: int) -> None:
        self._lease = lease
        self._unit = unit
        self._block: Block | None = None
        self._given = 0

    @staticmethod
    def most(rows: int, limit: int, slots: Iterable[Slot | None]) -> int:
        """How many of `rows` rows at hand to weave, if blocks have `limit`: all, if none has to be copied for it.

        Not of large ones: for each block the buffers of all of them would be kept.
        """
        ahead = all(slot is None or (slot.stays and not slot.large) for slot in slots)
        return rows if ahead else min(rows, limit)

    def first(self, block: Block, limit: int) -> Block:
        """The first rows of a block that has just been woven, the others wait."""
        if block.rows <= limit:
            return block
        self._block, self._given = block, 0
        self._lease.note(_PLACE * block.rows * len(block.columns))
        return self.next(limit) or block

    def next(self, limit: int) -> Block | None:
        """About so many of those that wait, all blocks being of one size; None if there are none."""
        block = self._block
        if block is None:
            return None
        start, left = self._given, block.rows - self._given
        parts = -(-left // (limit + limit // _OVER))
        # In whole units, except for the last.
        self._given = stop = start + min(-(-left // (parts * self._unit)) * self._unit, left)
        if stop == block.rows:
            self.drop()
        return block.slice(start, stop)

    def drop(self) -> None:
        """Have none."""
        self._block, self._given = None, 0
        self._lease.release()
