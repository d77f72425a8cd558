"""Blocks from elements that a function or a generator returned one after another."""

from typing import Any

import numpy as np

from forebay.block.block import Block
from forebay.block.build import column_from_rows, dtype_name
from forebay.block.column import Column, RowError
from forebay.block.leaf import as_leaf, leaf_dtype
from forebay.block.spec import OBJECT
from forebay.block.structure import Structure, flatten

Outcome = tuple[Block | None, RowError | None]


class RowBuilder:
    """Turns elements into blocks and holds them to one structure and one dtype per leaf.

    The first element sets both. Shapes may differ from element to element, and a leaf may be None at times.
    """

    def __init__(self) -> None:
        self._structure: Structure | None = None
        self._dtypes: list[np.dtype[Any] | None] = []

    def build(self, elements: list[Any]) -> Outcome:
        """A block of all elements; or of those before the first that does not fit, and what is wrong with it."""
        if self._structure is None:
            self._structure = flatten(elements[0])[1]
            self._dtypes = [None] * self._structure.size
        values, fault = self._leaves(self._structure, elements)
        if fault is None:
            columns: list[Column] = []
            try:
                for leaf, column_values in enumerate(values):
                    columns.append(self._column(leaf, column_values))
                return Block(self._structure, columns, len(elements)), None
            except RowError as error:
                fault = RowError(error.row, f"{self._path(len(columns))} {error.text}")
        return (self.build(elements[: fault.row])[0] if fault.row else None), fault

    def _column(self, leaf: int, values: Any) -> Column:
        column = column_from_rows(values)
        known = self._dtypes[leaf]
        if known is None:
            self._dtypes[leaf] = column.dtype if column.dtype != OBJECT else None
        elif column.dtype not in (known, OBJECT):
            raise RowError(0, f"is {dtype_name(column.dtype)}, earlier {dtype_name(known)}")
        return column

    def _path(self, leaf: int) -> str:
        assert self._structure is not None
        path = list(self._structure.paths())[leaf]
        return f"leaf {path}" if path else "the value"

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


class Normalizer:
    """Gives one element the form it would have after a trip through a block, without the trip.

    Functions that run back to back need it: the second must see NumPy scalars, arrays of its own to write into,
    and the same complaints about structure and dtype that a ``RowBuilder`` between the two would have made.
    """

    def __init__(self) -> None:
        self._structure: Structure | None = None
        self._dtypes: list[np.dtype[Any] | None] = []
        self._scalar: type[Any] | None = None

    def __call__(self, element: Any) -> Any:
        """The element in its normal form; RowError if it does not fit those before it."""
        if type(element) is self._scalar:
            return element
        if self._structure is None:
            self._structure = flatten(element)[1]
            self._dtypes = [None] * self._structure.size
        leaves = self._structure.leaves_of(element)
        if leaves is None:
            raise RowError(0, f"has the structure {flatten(element)[1]}, earlier {self._structure}")
        normal = [self._leaf(i, leaf) for i, leaf in enumerate(leaves)]
        if self._structure.is_leaf:
            if isinstance(normal[0], (np.number, np.bool_)) and not isinstance(normal[0], np.timedelta64):
                self._scalar = type(normal[0])
            return normal[0]
        return self._structure.unflatten(normal)

    @property
    def unpacks(self) -> bool:
        """Whether the element just seen is handed on as separate arguments."""
        return self._structure is not None and self._structure.is_tuple

    def _leaf(self, i: int, value: Any) -> Any:
        leaf = as_leaf(value)
        dtype = leaf_dtype(leaf)
        known = self._dtypes[i]
        if dtype not in (known, OBJECT):
            if known is not None:
                raise RowError(0, f"is {dtype_name(dtype)}, earlier {dtype_name(known)}")
            self._dtypes[i] = dtype
        return leaf.copy() if isinstance(leaf, np.ndarray) else leaf
