"""One element in the form it would have after a trip through a block, without the trip."""

from collections.abc import Callable
from typing import Any

import numpy as np

from forebay.block.build import misfit
from forebay.block.column import RowError
from forebay.block.leaf import NUMBERS, as_leaf, is_bare, leaf_dtype
from forebay.block.spec import OBJECT
from forebay.block.structure import Structure, flatten

Function = Callable[[Any], Any]


class Normalizer:
    """For functions that run back to back: the second must see NumPy scalars, arrays of its own to write into,
    and the same complaints about structure and dtype that a ``RowBuilder`` between the two would have made.
    """

    def __init__(self) -> None:
        self._structure: Structure | None = None
        self._dtypes: list[np.dtype[Any] | None] = []
        self.fast: Function = self
        """The same as calling this object, made for elements like the first one it was called with."""

    @property
    def unpacks(self) -> bool:
        """Whether the element just seen is handed on as separate arguments."""
        return self._structure is not None and self._structure.is_tuple

    def __call__(self, element: Any) -> Any:
        """The element in its normal form; RowError if it does not fit those before it."""
        if self._structure is None:
            leaves, self._structure = flatten(element)
            self._dtypes = [None] * len(leaves)
            self.fast = self._specialised(self._structure, leaves)
        found = self._structure.leaves_of(element)
        if found is None:
            raise RowError(0, f"has the structure {flatten(element)[1]}, earlier {self._structure}")
        normal = [self._leaf(i, leaf) for i, leaf in enumerate(found)]
        return self._structure.unflatten(normal)

    def _leaf(self, i: int, value: Any) -> Any:
        try:
            leaf = as_leaf(value)
        except RowError as error:
            raise RowError(0, f"{self._name(i)} {error.text}") from None
        dtype = leaf_dtype(leaf)
        known = self._dtypes[i]
        if dtype != OBJECT and not is_bare(leaf):
            # NumPy finds float64 equal to None.
            if known is None:
                self._dtypes[i] = dtype
            elif dtype != known:
                raise RowError(0, f"{self._name(i)} {misfit(dtype, known)}")
        return leaf.copy() if isinstance(leaf, np.ndarray) else leaf

    def _name(self, i: int) -> str:
        assert self._structure is not None
        return self._structure.leaf_names()[i]

    def _specialised(self, structure: Structure, leaves: list[Any]) -> Function:
        """A function for elements of these types. Whatever looks different goes the long way."""
        parts = [self._specialised_leaf(i, leaf) for i, leaf in enumerate(leaves)]
        if structure.is_leaf:
            return parts[0]
        if not leaves or not all(child.is_leaf for child in structure.children):
            return self
        count = len(leaves)
        if structure.kind is tuple:
            return lambda element: (
                tuple([part(leaf) for part, leaf in zip(parts, element)])
                if type(element) is tuple and len(element) == count
                else self(element)
            )
        if structure.kind is dict:
            named = list(zip(structure.keys, parts))
            keys = set(structure.keys)
            return lambda element: (
                {key: part(element[key]) for key, part in named}
                if type(element) is dict and element.keys() == keys
                else self(element)
            )
        return self

    def _specialised_leaf(self, i: int, first: Any) -> Function:
        kind = type(first)
        if kind in NUMBERS:
            number = NUMBERS[kind]
            # Ints too large for int64 take the long way, which says so.
            small = kind is not int
            return lambda leaf: (
                number(leaf) if type(leaf) is kind and (small or -(2**63) <= leaf < 2**63) else self._leaf(i, leaf)
            )
        if kind is bytes or kind is str or (isinstance(first, (np.number, np.bool_)) and kind is not np.timedelta64):
            return lambda leaf: leaf if type(leaf) is kind else self._leaf(i, leaf)
        if kind is np.ndarray and first.ndim and first.dtype.kind in "biufc" and first.dtype.isnative:
            dtype = first.dtype
            return lambda leaf: (
                leaf.copy() if type(leaf) is kind and leaf.dtype is dtype and leaf.ndim else self._leaf(i, leaf)
            )
        return lambda leaf: self._leaf(i, leaf)
