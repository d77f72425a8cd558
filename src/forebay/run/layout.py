"""What rows of one size are made of, and how they lie in pieces of a file and in blocks."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import Block, Column, Indices, Structure
from forebay.block.aligned import ALIGN
from forebay.block.dense import Dense
from forebay.run.spill import Bytes

Words = NDArray[np.uint64]

WORD = 8
# Larger rows are written one by one as well as together, and take too much room in every bucket.
_MOST_WIDTH = 1 << 16


class Layout:
    """What rows of one size are made of: a word each, and values of the same number of bytes in every column."""

    def __init__(self, structure: Structure, rows: list[tuple[np.dtype[Any], tuple[int, ...]]]) -> None:
        self._structure = structure
        self._rows = rows
        self.widths = np.array([WORD, *(dtype.itemsize * prod(shape) for dtype, shape in rows)], np.int64)
        """Bytes of a row: of its word, and in each column."""
        self.width = int(self.widths.sum())

    @staticmethod
    def of(block: Block) -> "Layout | None":
        """That of a block's rows; None if they are not of one size, or so large that it does not pay."""
        rows = _rows_of(block)
        if rows is None or any(dtype.hasobject for dtype, _ in rows):
            return None
        layout = Layout(block.structure, rows)
        return layout if layout.width <= _MOST_WIDTH else None

    def fits(self, block: Block) -> bool:
        """Whether the block's rows are of this layout."""
        return block.structure == self._structure and _rows_of(block) == self._rows

    def fields(self, words: Words, block: Block) -> list[Bytes]:
        """The bytes of the words, and those of every column."""
        return [words.view(np.uint8), *map(_values, block.columns)]

    def apart(self, piece: Bytes, rows: int) -> tuple[Words, Block]:
        """The words of a piece, and its rows."""
        return piece[: rows * WORD].view(np.uint64), self._block(piece, self._starts(rows), rows)

    def room(self, rows: int) -> tuple[Indices, int]:
        """Where columns begin in a block that has room for so many rows, each at a good place, and what it takes."""
        sizes = -(-self.widths[1:] * rows // ALIGN) * ALIGN
        ends = np.cumsum(sizes)
        return ends - sizes, max(int(sizes.sum()), 1)

    def block(self, memory: Bytes, offsets: Indices, rows: int) -> Block:
        """Rows that have been put there."""
        return self._block(memory, offsets.tolist(), rows)

    def _starts(self, rows: int) -> list[int]:
        starts: list[int] = (np.cumsum(self.widths)[:-1] * rows).tolist()
        return starts

    def _block(self, memory: Bytes, starts: list[int], rows: int) -> Block:
        columns = [
            Dense(np.ndarray((rows, *shape), dtype, memory, start)) for (dtype, shape), start in zip(self._rows, starts)
        ]
        return Block(self._structure, columns, rows)


def _rows_of(block: Block) -> list[tuple[np.dtype[Any], tuple[int, ...]]] | None:
    columns = [column for column in block.columns if isinstance(column, Dense)]
    if len(columns) < len(block.columns):
        return None
    return [(column.values.dtype, column.values.shape[1:]) for column in columns]


def _values(column: Column) -> Bytes:
    assert isinstance(column, Dense)
    return np.ascontiguousarray(column.values).reshape(-1).view(np.uint8)
