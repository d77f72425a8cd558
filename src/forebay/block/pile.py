"""Rows of several blocks put together as they come."""

from typing import Any

from numpy.typing import NDArray

from forebay.block.aligned import aligned_empty
from forebay.block.block import Block
from forebay.block.dense import Dense

# Bytes from which on it matters that rows are not there twice. Below, blocks are sooner put together all at once.
_LARGE = 1 << 20


class Pile:
    """Up to `rows` rows: each block is let go of as soon as it is added, if its rows are as those of the first.

    Args:
        first: what it begins with.
        rows: how many there will be, unless the input ends.
        most_bytes: memory is made ready for no more than this.
    """

    def __init__(self, first: Block, rows: int, most_bytes: int) -> None:
        self._structure, self._cursor = first.structure, first.cursor
        self._rows = rows
        self._filled = 0
        self._others: list[Block] = []  # From the first on that did not fit.
        size = first.nbytes // first.rows * rows
        self._arrays: list[NDArray[Any]] = []
        if _LARGE <= size <= most_bytes and all(type(column) is Dense for column in first.columns):
            values = [column.values for column in first.columns if isinstance(column, Dense)]
            self._arrays = [aligned_empty((rows, *array.shape[1:]), array.dtype) for array in values]
        self.add(first)

    def add(self, block: Block) -> None:
        """These rows behind the others."""
        if self._others or not self._fits(block):
            self._others.append(block)
            return
        stop = self._filled + block.rows
        for array, column in zip(self._arrays, block.columns):
            assert isinstance(column, Dense)
            array[self._filled : stop] = column.values
        self._filled = stop

    def blocks(self) -> list[Block]:
        """All rows: in one block if they were alike."""
        if not self._filled:
            return self._others
        columns = [Dense(array[: self._filled]) for array in self._arrays]
        if 2 * self._filled < self._rows:
            # The rest of the memory is not to be held for these.
            columns = [column.shared().private() for column in columns]
        return [Block(self._structure, columns, self._filled, self._cursor), *self._others]

    def _fits(self, block: Block) -> bool:
        if not self._arrays or block.structure != self._structure:
            return False
        return all(
            type(column) is Dense and column.values.shape[1:] == array.shape[1:] and column.values.dtype == array.dtype
            for array, column in zip(self._arrays, block.columns)
        )
