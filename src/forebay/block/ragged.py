"""Rows of one rank and dtype whose shapes differ: flat values, offsets, and a shape per row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import gather_ranges
from forebay.block.aligned import aligned_empty, joined
from forebay.block.column import Column, Indices, RowError
from forebay.block.dense import Dense
from forebay.block.spec import OBJECT, TensorSpec


class Ragged(Column):
    """Row i is ``values[offsets[i]:offsets[i + 1]]`` in the shape ``shapes[i]``."""

    __slots__ = ("offsets", "owned", "shapes", "values")

    def __init__(self, values: NDArray[Any], offsets: Indices, shapes: Indices, owned: bool = True) -> None:
        self.values = values
        self.offsets = offsets
        self.shapes = shapes
        self.owned = owned

    @staticmethod
    def of(arrays: list[NDArray[Any]]) -> "Ragged":
        """A column of these arrays, which have one rank and dtype."""
        shapes = np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), arrays[0].ndim)
        return Ragged(joined([array.reshape(-1) for array in arrays]), _offsets(shapes.prod(axis=1)), shapes)

    @staticmethod
    def of_dense(column: Dense) -> "Ragged":
        """The same rows, with the shape written beside every row."""
        values = column.values
        shapes = np.tile(np.array(values.shape[1:], np.int64), (len(values), 1))
        return Ragged(values.reshape(-1), _offsets(shapes.prod(axis=1)), shapes, column.owned)

    def __reduce__(self) -> Any:
        # A slice refers to all the values of the column it was cut from.
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        return Ragged, (self.values[first:last], self.offsets - first, self.shapes, self.owned)

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def nbytes(self) -> int:
        """Bytes of the values and of what describes them."""
        used = int(self.offsets[-1] - self.offsets[0]) * self.values.itemsize
        return used + self.offsets.nbytes + self.shapes.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The values' dtype."""
        return self.values.dtype

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """The same, unless these may all be empty lists."""
        return self.dtype if self.offsets[-1] > self.offsets[0] or self.dtype != np.float64 else OBJECT

    @property
    def spec(self) -> TensorSpec:
        """The sizes that all rows share; None for the others."""
        same = (self.shapes == self.shapes[:1]).all(axis=0)
        shape = tuple(int(n) if fixed else None for n, fixed in zip(self.shapes[0], same))
        return TensorSpec(shape, self.values.dtype)

    def buffers(self) -> tuple[NDArray[Any], ...]:
        """What there is."""
        return (self.values, self.offsets, self.shapes)

    def slice(self, start: int, stop: int) -> "Ragged":
        """Rows start to stop, as a view."""
        return Ragged(self.values, self.offsets[start : stop + 1], self.shapes[start:stop], self.owned)

    def take(self, indices: Indices) -> "Ragged":
        """The rows at these indices, copied behind one another."""
        values = gather(self.values, self.offsets[indices], self.offsets[indices + 1])
        shapes = self.shapes[indices]
        return Ragged(values, _offsets(shapes.prod(axis=1)), shapes)

    def rows(self) -> list[Any]:
        """Views of the rows."""
        offsets, shapes = self.offsets.tolist(), self.shapes.tolist()
        return [self.values[start:stop].reshape(shape) for start, stop, shape in zip(offsets, offsets[1:], shapes)]

    def private(self) -> "Ragged":
        """Itself if owned, otherwise a copy of the values in use."""
        if self.owned:
            return self
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        return Ragged(self.values[first:last].copy(), self.offsets - first, self.shapes)

    def shared(self) -> "Ragged":
        """Not owned."""
        return Ragged(self.values, self.offsets, self.shapes, owned=False)

    @property
    def rows_alias(self) -> bool:
        """Rows are views."""
        return True

    def fold(self, size: int) -> Column:
        """Stacks groups of equal shape; dense if all groups have the same."""
        groups = self.shapes.reshape(-1, size, self.shapes.shape[1])
        unequal = (groups != groups[:, :1]).any(axis=2)
        if unequal.any():
            row = int(unequal.argmax())
            first = row // size * size
            raise RowError(
                row,
                f"has shape {_tuple(self.shapes[row])}, the batch began with shape {_tuple(self.shapes[first])}",
            )
        shapes = np.concatenate([np.full((len(groups), 1), size, np.int64), groups[:, 0]], axis=1)
        folded = Ragged(self.values, self.offsets[::size], shapes, self.owned)
        return folded.dense() or folded

    def dense(self) -> Dense | None:
        """The same rows as one array, if all shapes are equal."""
        if not len(self) or (self.shapes != self.shapes[:1]).any():
            return None
        used = self.values[int(self.offsets[0]) : int(self.offsets[-1])]
        return Dense(used.reshape(len(self), *self.shapes[0]), self.owned)

    def unfold(self) -> tuple[Column, Indices]:
        """Rows of rank one give their values; of higher rank, a ragged column again."""
        counts = self.shapes[:, 0]
        used = self.values[int(self.offsets[0]) : int(self.offsets[-1])]
        if self.shapes.shape[1] == 1:
            return Dense(used, self.owned), counts
        shapes = np.repeat(self.shapes[:, 1:], counts, axis=0)
        unfolded = Ragged(used, _offsets(shapes.prod(axis=1)), shapes, self.owned)
        return (unfolded.dense() if len(shapes) else None) or unfolded, counts

    def join(self, others: list[Column]) -> "Ragged | None":
        """One column, if dtypes and ranks agree."""
        parts = [self, *(other for other in others if isinstance(other, Ragged))]
        if any(p.dtype != self.dtype or p.shapes.shape[1] != self.shapes.shape[1] for p in parts):
            return None
        values = joined([p.values[int(p.offsets[0]) : int(p.offsets[-1])] for p in parts])
        shapes = np.concatenate([p.shapes for p in parts])
        return Ragged(values, _offsets(shapes.prod(axis=1)), shapes)


def gather(values: NDArray[Any], starts: Indices, stops: Indices) -> NDArray[Any]:
    """The ranges [starts[i], stops[i]) of a flat array behind one another."""
    values = np.ascontiguousarray(values)
    out = aligned_empty((int((stops - starts).sum()),), values.dtype)
    width = values.itemsize
    gather_ranges(values.view(np.uint8), starts * width, stops * width, out.view(np.uint8))
    return out


def _offsets(lengths: Indices) -> Indices:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _tuple(shape: Indices) -> tuple[int, ...]:
    return tuple(shape.tolist())
