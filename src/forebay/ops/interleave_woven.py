"""Rows of ``interleave`` that have been put in order ahead of need."""

from collections.abc import Iterable

from forebay.block import Block
from forebay.ledger import Lease
from forebay.ops.interleave_slot import Slot

# Which buffer, and from where to where: all that is made anew for a row. The buffers count where they were read.
_PLACE = 24


class Woven:
    """What is left of rows that were put in order together.

    Where rows stay in their files' buffers, and only places of them are put in order, all that slots have at hand
    is woven at once and handed on block by block: what it costs to look at every slot is then shared by several blocks.
    """

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._block: Block | None = None
        self._given = 0

    @staticmethod
    def most(rows: int, limit: int, slots: Iterable[Slot | None]) -> int:
        """How many of `rows` rows at hand to weave, if blocks have `limit`: whole blocks."""
        if rows < 2 * limit or not all(slot is None or slot.stays for slot in slots):
            return min(rows, limit)
        return rows - rows % limit

    def first(self, block: Block, rows: int) -> Block:
        """The first rows of a block that has just been woven, the others wait."""
        if block.rows > rows:
            self._block, self._given = block, rows
            self._lease.note(_PLACE * block.rows * len(block.columns))
            block = block.slice(0, rows)
        return block

    def next(self, rows: int) -> Block | None:
        """Up to so many of those that wait; None if there are none."""
        block = self._block
        if block is None:
            return None
        start, self._given = self._given, min(self._given + rows, block.rows)
        if self._given == block.rows:
            self.drop()
        return block.slice(start, min(start + rows, block.rows))

    def drop(self) -> None:
        """Have none."""
        self._block, self._given = None, 0
        self._lease.release()
