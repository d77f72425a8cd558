"""Rows of a cache that wait in memory until there are enough of them to be written at once."""

import time
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from forebay.block import Block, Cursor, concat_blocks
from forebay.block.strings import Strings
from forebay.run.cached import fitting, shared
from forebay.run.operator import Setup
from forebay.run.pace import MAX_ROWS

# Blocks that are written at once are read at once. Of a few together the cost no longer shows beside that of their
# bytes; more would only take up memory. With two, `cache(path)` is read 2 % faster and what `cache()` maps 20 % slower.
_BLOCKS = 4
# What took so long to compute is not to be lost with the process.
_MOST_SECONDS = 1.0


@dataclass(slots=True)
class Waiting:
    """Blocks one behind another, alike but for their rows, from row `start` on."""

    start: int = 0
    layout: str = ""
    blocks: list[Block] = field(default_factory=list)
    rows: int = 0
    nbytes: int = 0
    _since: float = 0.0

    def add(self, row: int, block: Block, layout: str) -> None:
        """One more."""
        nbytes = self.nbytes + block.nbytes
        start = (self.start, self.layout, self._since) if self.blocks else (row, layout, time.monotonic())
        # From here to the end nothing is called, so that no interrupt can fall between, nor before what callers note.
        self.start, self.layout, self._since = start
        self.blocks += [block]
        self.rows += block.rows
        self.nbytes = nbytes

    def is_due(self, block: Block, layout: str, setup: Setup) -> bool:
        """Whether these have to be written before that block can join them."""
        return bool(self.blocks) and (
            layout != self.layout
            or _kind(block) != _kind(self.blocks[0])
            or self.nbytes + block.nbytes > most_waiting(setup)
            or self.rows + block.rows > MAX_ROWS
            or time.monotonic() - self._since > _MOST_SECONDS
        )

    @property
    def starts(self) -> list[int]:
        """The number of each block's first row."""
        return list(accumulate((block.rows for block in self.blocks[:-1]), initial=self.start))

    def together(self) -> Block:
        """All rows in one block."""
        return concat_blocks(self.blocks)

    def read(self, row: int, layout: str) -> Block:
        """Rows from that one on, to be copied before anybody writes into them."""
        at = bisect_right(self.starts, row) - 1
        start, block = self.starts[at], self.blocks[at]
        cursor = fitting(block.cursor, self.layout, layout, start)
        return shared(block).at(cursor).slice(row - start, block.rows)

    def end(self, layout: str) -> Cursor:
        """Where the input has the first row that is not among these."""
        last = self.blocks[-1]
        return fitting(last.cursor, self.layout, layout, self.start + self.rows - last.rows).after(last.rows)


def most_waiting(setup: Setup) -> int:
    """Bytes of rows that may wait together; a single block may be larger."""
    return _BLOCKS * setup.block_bytes


def _kind(block: Block) -> tuple[Any, ...]:
    """What blocks that can be joined have in common."""
    kinds = (Strings if isinstance(column, Strings) else type(column) for column in block.columns)
    return block.structure, *zip(kinds, (column.dtype for column in block.columns))
