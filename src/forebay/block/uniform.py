"""One structure and one dtype per leaf, for as long as a stream lasts."""

from typing import TYPE_CHECKING, Any

import numpy as np

from forebay.block.build import misfit
from forebay.block.column import Column, RowError
from forebay.block.spec import OBJECT
from forebay.block.structure import Structure

if TYPE_CHECKING:
    from forebay.block.block import Block


class Uniform:
    """Remembers the first block's structure and dtypes and objects to blocks with others.

    Leaves that hold other objects than NumPy's are let through.
    """

    def __init__(self) -> None:
        self._structure: Structure | None = None
        self._dtypes: list[np.dtype[Any]] = []

    def fit(self, block: "Block") -> "Block":
        """The block with dict keys in the order that they had before. RowError if it does not fit what came before."""
        fitting = block if self._structure is None else block.ordered_as(self._structure)
        self.check(fitting.structure, fitting.columns)
        return fitting

    def check(self, structure: Structure, columns: "list[Column] | tuple[Column, ...]") -> None:
        """RowError if these do not fit what came before."""
        if self._structure is None:
            self._structure, self._dtypes = structure, [column.value_dtype for column in columns]
            return
        if structure is not self._structure and structure != self._structure:
            raise RowError(0, f"has the structure {structure}, earlier {self._structure}")
        for i, column in enumerate(columns):
            known, found = self._dtypes[i], column.value_dtype
            if found is known:
                continue
            if known == OBJECT:
                self._dtypes[i] = found
            elif found not in (known, OBJECT):
                raise RowError(0, f"{structure.leaf_names()[i]} {misfit(found, known)}")
