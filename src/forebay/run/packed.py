"""A block's columns as bytes one behind another, and what to know of them to get the columns back.

Of arrays with rows of one shape nothing but their own bytes is written: dtype and shape are known beside them, mostly
the same from block to block. Columns of other kinds are pickled together, with the bytes of their arrays behind that.
Every part begins at a multiple of ``ALIGN``, and so in memory that was read into.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from forebay.block import Block, Column
from forebay.block.aligned import ALIGN
from forebay.block.dense import Dense

Kind = tuple[np.dtype[Any], tuple[int, ...]]
"""Dtype and shape of rows."""


@dataclass(frozen=True, slots=True)
class Packing:
    """What is known beside the bytes: the kind of each column whose memory says all there is, None of the others.

    `sizes` are those of the others' pickle and of the arrays behind it.
    """

    kinds: tuple[Kind | None, ...]
    sizes: tuple[int, ...]

    def nbytes(self, rows: int) -> int:
        """What so many rows take up."""
        dense = (rows * prod(kind[1]) * kind[0].itemsize for kind in self.kinds if kind is not None)
        return sum(map(whole, (*dense, *self.sizes)))


def pack(
    block: Block,
    pickled: Callable[[list[Column], list[Any]], bytes],
    describes: Callable[[np.dtype[Any]], bool] = lambda dtype: True,
) -> tuple[Packing, list[Any]]:
    """How a block's columns are packed, and their bytes, not copied.

    `pickled` makes a pickle of columns, with their arrays apart as ``pickle.dumps`` does; `describes` says whether a
    dtype can be told to whoever reads it.
    """
    kinds: list[Kind | None] = []
    parts: list[Any] = []
    others: list[Column] = []
    for column in block.columns:
        dtype = column.values.dtype if isinstance(column, Dense) else None
        if isinstance(column, Dense) and dtype is not None and _is_memory(dtype) and describes(dtype):
            kinds.append((dtype, column.values.shape[1:]))
            parts.append(np.ascontiguousarray(column.values).reshape(-1).view(np.uint8).data)
        else:
            kinds.append(None)
            others.append(column)
    sizes: tuple[int, ...] = ()
    if others:
        buffers: list[Any] = []
        behind = [pickled(others, buffers), *(buffer.raw() for buffer in buffers)]
        sizes = tuple(map(len, behind))
        parts += behind
    return Packing(tuple(kinds), sizes), padded(parts)


def padded(parts: list[Any]) -> list[Any]:
    """Parts of bytes, and between them what lets each begin where it should."""
    return [piece for part in parts for piece in ((part, bytes(-len(part) % ALIGN)) if len(part) % ALIGN else (part,))]


def unpack(packing: Packing, rows: int, data: Any, begin: int = 0) -> list[Column]:
    """The columns of so many rows, in the memory of `data`, where they begin at that place.

    TypeError or ValueError if they do not lie there.
    """
    columns: list[Any] = []
    for kind in packing.kinds:
        if kind is None:
            columns.append(None)
            continue
        values = np.ndarray((rows, *kind[1]), kind[0], data, begin)
        columns.append(Dense(values))
        begin += whole(values.nbytes)
    if packing.sizes:
        parts = []
        for size in packing.sizes:
            parts.append(data[begin : begin + size])
            begin += whole(size)
        others = iter(pickle.loads(parts[0], buffers=parts[1:]))
        columns = [next(others) if column is None else column for column in columns]
    return columns


def _is_memory(dtype: np.dtype[Any]) -> bool:
    return not dtype.hasobject and dtype.itemsize > 0


def whole(size: int) -> int:
    """Bytes of a part with those behind it, up to where the next one begins."""
    return size + -size % ALIGN
