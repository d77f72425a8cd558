"""Rows of an operator's input, as many at a time as the operator asks for."""

from collections import deque

from forebay.block import Block, Cursor
from forebay.run.operator import Operator


class Reader:
    """Cuts the blocks of an operator to the reader's need. What is left waits, as views."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._waiting: deque[Block] = deque()
        self._drop = 0

    def seek(self, cursor: Cursor, epoch: int) -> None:
        """Continue exactly at the cursor."""
        self._waiting.clear()
        self._drop = self._operator.begin(cursor, epoch)

    def peek(self) -> Block | None:
        """What is at hand without taking it: at least one row, or None at the end."""
        while not self._waiting:
            block = self._operator.fetch()
            if block is None:
                return None
            if block.rows <= self._drop:
                self._drop -= block.rows
            else:
                self._waiting.append(block.slice(self._drop, block.rows))
                self._drop = 0
        return self._waiting[0]

    def next(self) -> Block | None:
        """All rows at hand, at least one, or None at the end."""
        return self._waiting.popleft() if self.peek() is not None else None

    def read(self, rows: int) -> Block | None:
        """Between one and `rows` rows, or None at the end."""
        block = self.next()
        if block is None or block.rows <= rows:
            return block
        self.unread(block.slice(rows, block.rows))
        return block.slice(0, rows)

    def unread(self, block: Block) -> None:
        """Put back rows that were just read: they come next again."""
        self._waiting.appendleft(block)
