"""Blocks from elements that a function or a generator returned one after another."""

from typing import TYPE_CHECKING, Any

import numpy as np

from forebay.block.block import Block
from forebay.block.build import column_from_rows
from forebay.block.column import Column, RowError
from forebay.block.spec import OBJECT
from forebay.block.structure import Structure, flatten

if TYPE_CHECKING:
    from forebay.block.shelf import Shelf

Outcome = tuple[Block | None, RowError | None]


class RowBuilder:
    """Turns elements into blocks and holds them to one structure and one dtype per leaf.

    The first element sets both. Shapes may differ from element to element, and a leaf may be None at times.
    """

    def __init__(self) -> None:
        self._structure: Structure | None = None
        self._dtypes: list[np.dtype[Any] | None] = []

    def build(self, elements: list[Any], shelf: "Shelf | None" = None) -> Outcome:
        """A block of all elements; or of those before the first that does not fit, and what is wrong with it.

        They may have been kept by a `shelf`.
        """
        if self._structure is None:
            self._structure = flatten(elements[0])[1]
            self._dtypes = [None] * self._structure.size
        values, fault = self._leaves(self._structure, elements)
        if fault is None:
            columns: list[Column] = []
            try:
                for leaf, column_values in enumerate(values):
                    columns.append(self._column(leaf, column_values, shelf))
                return Block(self._structure, columns, len(elements)), None
            except RowError as error:
                fault = RowError(error.row, f"{self._path(len(columns))} {error.text}")
        return (self.build(elements[: fault.row])[0] if fault.row else None), fault

    def _column(self, leaf: int, values: Any, shelf: "Shelf | None") -> Column:
        known = self._dtypes[leaf]
        ready = None if shelf is None else shelf.column(values)
        if ready is None or (known is not None and ready.dtype != known):
            column = column_from_rows(values, known)
        else:
            column = ready
        if self._dtypes[leaf] is None and column.value_dtype != OBJECT:
            self._dtypes[leaf] = column.value_dtype
        return column

    def _path(self, leaf: int) -> str:
        assert self._structure is not None
        return self._structure.leaf_names()[leaf]

    @staticmethod
    def _leaves(structure: Structure, elements: list[Any]) -> tuple[list[Any], RowError | None]:
        """One sequence of values per leaf."""
        if structure.is_leaf:
            return [elements], None
        flat = structure.kind is tuple and all(child.is_leaf for child in structure.children)
        if flat and set(map(type, elements)) == {tuple} and set(map(len, elements)) == {len(structure.children)}:
            return list(zip(*elements)), None
        rows = []
        for row, element in enumerate(elements):
            leaves = structure.leaves_of(element)
            if leaves is None:
                other = flatten(element)[1]
                return [], RowError(row, f"has the structure {other}, earlier {structure}")
            rows.append(leaves)
        return list(zip(*rows)), None
