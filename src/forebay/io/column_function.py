"""Functions for ``map`` that can also be given whole columns."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from forebay.block import Block
from forebay.block.dense import Dense
from forebay.block.strings import Strings


class ColumnFunction(ABC):
    """A function of one element that has another form, which does the same to whole columns. It never changes."""

    def forebay_fingerprint(self) -> Iterator[Any]:
        """Its settings, by which saved states tell it from others."""
        yield from sorted(vars(self).items())

    @abstractmethod
    def __call__(self, *element: Any) -> Any:
        """What becomes of one element."""

    @abstractmethod
    def accepts(self, block: Block) -> bool:
        """Whether ``on_block`` can take the place of calls for every row."""

    @abstractmethod
    def on_block(self, block: Block) -> tuple[Block | None, Exception | None]:
        """The rows up to the first that fails, and its failure."""


class FillsArray(ColumnFunction):
    """Makes an array of the first leaf of an element, which is a string, and leaves the others as they are.

    Where all these arrays have one shape, rows are written where their column has its memory. A batch that fits into a
    block is a view of its columns, so that nothing is copied between the function and the batch.
    """

    text: bool
    """Whether that string is text, or bytes."""
    shape: tuple[int, ...] | None
    """Of all results, if it is always the same."""
    dtype: np.dtype[Any]

    @abstractmethod
    def make(self, value: Any, out: Any = None) -> Any:
        """The array for a string, in `out` if that is given."""

    def __call__(self, *element: Any) -> Any:
        """What becomes of one element."""
        first = element[0]
        if isinstance(first, dict):
            name = next(iter(first))
            return {**first, name: self.make(first[name])}
        made = self.make(first)
        return made if len(element) == 1 else (made, *element[1:])

    def accepts(self, block: Block) -> bool:
        """Only where it would be called with a string, or with a flat tuple or dict that begins with one."""
        column, structure = block.columns[0], block.structure
        flat = structure.is_leaf or (structure.kind in (tuple, dict) and all(c.is_leaf for c in structure.children))
        fits = isinstance(column, Strings) and column.shape == () and column.text == self.text
        return self.shape is not None and flat and fits

    def on_block(self, block: Block) -> tuple[Block | None, Exception | None]:
        """Row by row into one array."""
        assert self.shape is not None
        values = np.empty((block.rows, *self.shape), self.dtype)
        for row, string in enumerate(block.columns[0].rows()):
            try:
                self.make(string, values[row])
            except Exception as error:
                return (_replaced(block.slice(0, row), values[:row].copy()) if row else None), error
        return _replaced(block, values), None


def _replaced(block: Block, values: Any) -> Block:
    return Block(block.structure, [Dense(values), *block.columns[1:]], block.rows)
