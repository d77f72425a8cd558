"""Rows of equal shape: one array with a leading axis."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import gather_rows
from forebay.block.aligned import aligned_empty, joined
from forebay.block.column import Column, Indices, RowError
from forebay.block.spec import OBJECT, TensorSpec, plain_dtype

# Bytes of a row from which on a copy is bound by memory, and a kernel that fetches rows ahead of need is faster.
_WIDE = 256


class Dense(Column):
    """An array of shape ``(rows, *shape)``. `owned` says that nobody else reads this memory."""

    __slots__ = ("owned", "values")

    def __init__(self, values: NDArray[Any], owned: bool = True) -> None:
        self.values = values
        self.owned = owned

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes that these rows take."""
        return self.values.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """The array's dtype in native byte order."""
        return plain_dtype(self.values.dtype)

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """The same, unless these may all be empty lists."""
        return self.dtype if self.values.size or self.dtype != np.float64 else OBJECT

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype of a row."""
        return TensorSpec(self.values.shape[1:], self.values.dtype)

    def buffers(self) -> tuple[NDArray[Any], ...]:
        """What there is."""
        return (self.values,)

    def slice(self, start: int, stop: int) -> "Dense":
        """Rows start to stop, as a view."""
        return Dense(self.values[start:stop], self.owned)

    def take(self, indices: Indices) -> "Dense":
        """The rows at these indices, copied."""
        values = self.values
        width = values.nbytes // len(values) if len(values) else 0
        if width < _WIDE or not values.flags.c_contiguous or not len(indices):
            return Dense(values.take(indices, axis=0))
        out = aligned_empty((len(indices), *values.shape[1:]), values.dtype)
        gather_rows(_bytes(values), width, 0, np.ascontiguousarray(indices), _bytes(out))
        return Dense(out)

    def rows(self) -> list[Any]:
        """NumPy scalars, or views of the rows."""
        return list(self.values)

    def private(self) -> "Dense":
        """Itself if owned, otherwise a copy in native byte order."""
        if self.owned:
            return self
        out = aligned_empty(self.values.shape, self.dtype)
        out[...] = self.values
        return Dense(out)

    def shared(self) -> "Dense":
        """Not owned."""
        return Dense(self.values, owned=False)

    @property
    def rows_alias(self) -> bool:
        """Rows of arrays are views; so are rows of structured scalars."""
        return self.values.ndim > 1 or self.values.dtype.kind == "V"

    def fold(self, size: int) -> "Dense":
        """A reshape: no row is touched as long as the array is contiguous."""
        values = self.values
        return Dense(values.reshape(len(values) // size, size, *values.shape[1:]), self.owned)

    def unfold(self) -> tuple["Dense", Indices]:
        """A reshape as well."""
        values = self.values
        if values.ndim < 2:
            raise RowError(0, "is a scalar")
        counts = np.full(len(values), values.shape[1], np.int64)
        return Dense(values.reshape(int(counts.sum()), *values.shape[2:]), self.owned), counts

    def join(self, others: list[Column]) -> "Dense | None":
        """One array, if shapes and dtypes agree."""
        arrays = [self.values, *(other.values for other in others if isinstance(other, Dense))]
        if any(a.shape[1:] != self.values.shape[1:] or a.dtype != self.values.dtype for a in arrays):
            return None
        return Dense(joined(arrays))


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return values.reshape(-1).view(np.uint8)
