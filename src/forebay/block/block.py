"""Rows on their way: columns, the structure around them, and the cursor that reproduces them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from forebay.block.build import concat_columns
from forebay.block.column import Column, Indices, RowError
from forebay.block.cursor import START, Cursor
from forebay.block.structure import Structure

# More than a block has unless its rows are large.
_BULKY = 4 << 20


class Block:
    """A few thousand rows, column by column. `cursor` is that of the first row; blocks are never empty."""

    __slots__ = ("_nbytes", "columns", "cursor", "rows", "structure")

    def __init__(self, structure: Structure, columns: Sequence[Column], rows: int, cursor: Cursor = START) -> None:
        self.structure = structure
        self.columns = tuple(columns)
        self.rows = rows
        self.cursor = cursor
        self._nbytes: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, as they were when this was first asked: every step that a block goes through asks."""
        if self._nbytes is None:
            self._nbytes = sum([column.nbytes for column in self.columns])
        return self._nbytes

    def at(self, cursor: Cursor) -> "Block":
        """The same rows under another cursor."""
        block = Block(self.structure, self.columns, self.rows, cursor)
        block._nbytes = self._nbytes
        return block

    def ordered_as(self, structure: Structure) -> "Block":
        """The same rows with dict keys in the order of `structure`, if that is all that differs."""
        order = None if self.structure == structure else self.structure.leaf_order(structure)
        if order is None:
            return self
        return Block(structure, [self.columns[leaf] for leaf in order], self.rows, self.cursor)

    def slice(self, start: int, stop: int) -> "Block":
        """Rows start to stop, as views."""
        if start == 0 and stop == self.rows:
            return self
        columns = [column.slice(start, stop) for column in self.columns]
        return Block(self.structure, columns, stop - start, self.cursor.after(start))

    def take(self, indices: Indices) -> "Block":
        """The rows at these indices, in memory of their own. The cursor stays that of this block."""
        return Block(self.structure, [column.take(indices) for column in self.columns], len(indices), self.cursor)

    def private(self) -> "Block":
        """The same rows in memory that nobody else reads."""
        return Block(self.structure, [column.private() for column in self.columns], self.rows, self.cursor)

    def scratch(self, whole: bool = False) -> "Block":
        """The same rows for a function that may ruin them while they are still needed.

        Scalars are handed out as values and need no copy, unless the function gets the `whole` columns.
        """
        columns = [c.shared().private() if whole or c.rows_alias else c for c in self.columns]
        return Block(self.structure, columns, self.rows, self.cursor)

    def pieces(self, most: int) -> "Iterator[Block]":
        """The same rows in order, as views, in blocks of no more than so many bytes or of one row."""
        if self.rows < 2 or self.nbytes <= most:
            yield self
            return
        yield from self.slice(0, self.rows // 2).pieces(most)
        yield from self.slice(self.rows // 2, self.rows).pieces(most)

    @property
    def _bulky(self) -> bool:
        """Whether its rows would be there a second time, and are so large that it matters, if all were made at once."""
        return self.nbytes > _BULKY and self.rows > 1 and not all(column.rows_alias for column in self.columns)

    def elements(self) -> Iterator[Any]:
        """One element per row, made of the user's own containers."""
        if self._bulky:
            return chain.from_iterable(map(Block.elements, self.pieces(_BULKY)))
        return self.structure.rows([column.rows() for column in self.columns], self.rows)

    def calls(self, function: Callable[..., Any]) -> Iterator[Any]:
        """Applies a function to every element, tuples unpacked into arguments, one result per step."""
        if self._bulky:
            return chain.from_iterable(piece.calls(function) for piece in self.pieces(_BULKY))
        columns = [column.rows() for column in self.columns]
        structure = self.structure
        if structure.is_leaf:
            return map(function, columns[0])
        if structure.is_tuple and columns and all(child.is_leaf for child in structure.children):
            return map(function, *columns)
        elements = structure.rows(columns, self.rows)
        if structure.is_tuple:
            return (function(*element) for element in elements)
        return map(function, elements)


def concat_blocks(blocks: Sequence[Block]) -> Block:
    """All rows in one block, under the first one's cursor. RowError if structures or dtypes differ."""
    first = blocks[0]
    if len(blocks) == 1:
        return first
    row = 0
    for block in blocks:
        if block.structure != first.structure:
            raise RowError(row, f"has the structure {block.structure}, earlier {first.structure}")
        row += block.rows
    columns = [concat_columns(parts) for parts in zip(*(block.columns for block in blocks))]
    return Block(first.structure, columns, row, first.cursor)
