"""What a cache has kept so far, wherever it keeps it: rows from the first on, without a gap."""

import weakref
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from forebay.block import START, Block, Column, Cursor
from forebay.run.operator import Operator, Setup
from forebay.run.stretches import Stretches

# A column may hold on to a little more memory than its rows take; beyond this part, a copy is cheaper.
_MOST_WASTE = 1.25


class Damaged(Exception):
    """Rows that were kept and have not come back whole; the cursor is that of the first of them in the input."""

    def __init__(self, start: int, stop: int, cursor: Cursor) -> None:
        super().__init__(f"rows {start} to {stop} are damaged")
        self.start = start
        self.stop = stop
        self.cursor = cursor


class Content(ABC):
    """The rows of one cached dataset, used by any number of operators on any threads.

    Rows are added by whoever happens to have the ones that come next; others that computed the same rows are told
    nothing and lose nothing. Cursors are the input's. They mean something only to a plan that runs in the same way, by
    its `layout`; others get one that counts from the start.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.complete = False
        self._users: weakref.WeakSet[Operator] = weakref.WeakSet()

    def in_child(self) -> None:
        """Called in a forked child, where those who used this are good for nothing."""
        self._users = weakref.WeakSet()

    def enter(self, user: Operator, setup: Setup) -> Any:
        """An operator begins to use this; what it gets it has to hold on to for as long as it does."""
        self._users.add(user)
        return None

    def leave(self, user: Operator) -> None:
        """It has ended."""
        self._users.discard(user)
        if not self._users:
            self.rest()

    @property
    def waiting(self) -> int:
        """Bytes of rows that will be on disk."""
        return 0

    def held(self) -> int:
        """Bytes in memory."""
        return 0

    def rest(self) -> None:
        """Nobody uses this at the moment."""
        return

    def refresh(self) -> None:
        """Find out what others may have added."""
        return

    def may_grow(self) -> bool:
        """Whether rows that are added would be kept."""
        return True

    @abstractmethod
    def read(self, row: int, layout: str, stretches: Stretches) -> Block | None:
        """Rows from that one on; None if they are not there (any more), Damaged if they are not whole.

        What is in files comes by `stretches`, and what is behind it is on its way then.
        """

    @abstractmethod
    def add(self, row: int, block: Block, layout: str, setup: Setup) -> Block:
        """Keep these rows if they are the next ones; the same rows to hand out."""

    @abstractmethod
    def frontier(self, layout: str) -> tuple[int, Cursor]:
        """The first row that is not here, and where the input has it."""

    def finish(self, row: int) -> None:
        """The input has ended before this row."""
        if row == self.rows:
            self.complete = True

    def clear(self) -> None:
        """Delete what would outlast this object."""
        return

    def mend(self, block: Block, start: int, layout: str) -> None:
        """Rows that were damaged, made anew."""
        return


def fitting(cursor: Cursor, kept: str, layout: str, row: int) -> Cursor:
    """The cursor of a row for a plan of that layout, from one that was kept under another perhaps."""
    return cursor if kept == layout else START.after(row)


def compact(block: Block) -> Block:
    """The same rows in memory that nobody else writes to, and that holds little else."""
    return Block(block.structure, [_compact(column) for column in block.columns], block.rows, block.cursor)


def _compact(column: Column) -> Column:
    column = column.private()
    held = sum(_memory_behind(array) for array in column.buffers())
    return column if held <= _MOST_WASTE * column.nbytes + 4096 else column.take(np.arange(len(column)))


def _memory_behind(array: Any) -> int:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return int(array.nbytes)


def shared(block: Block) -> Block:
    """The same rows, to be copied before anybody writes into them."""
    return Block(block.structure, [column.shared() for column in block.columns], block.rows, block.cursor)
