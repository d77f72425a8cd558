"""What fits no other column: None beside values, arrays of differing rank, any object. The last resort."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block.column import Column, Indices, RowError
from forebay.block.leaf import held_bytes, is_bare, leaf_dtype
from forebay.block.spec import OBJECT, NoneSpec, TensorSpec


class Objects(Column):
    """An object array of shape ``(rows, *shape)``."""

    __slots__ = ("_nbytes", "values")

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self._nbytes: int | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """With all that the objects hold, about, as it was when this was first asked."""
        if self._nbytes is None:
            self._nbytes = self.values.nbytes + held_bytes(self.values.ravel().tolist())
        return self._nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Always object."""
        return OBJECT

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """That of the first value that has one of its own."""
        dtypes = (leaf_dtype(value) for value in self.rows() if value is not None and not is_bare(value))
        return next((dtype for dtype in dtypes if dtype != OBJECT), OBJECT)

    @property
    def spec(self) -> TensorSpec:
        """The shape is that of an array of objects; () for plain ones."""
        if self.values.ndim == 1 and len(self.values) and all(value is None for value in self.values):
            return NoneSpec()
        return TensorSpec(self.values.shape[1:], OBJECT)

    def buffers(self) -> tuple[NDArray[Any], ...]:
        """What there is."""
        return (self.values,)

    def slice(self, start: int, stop: int) -> "Objects":
        """Rows start to stop, as a view."""
        return Objects(self.values[start:stop])

    def take(self, indices: Indices) -> "Objects":
        """The rows at these indices; the objects themselves are shared."""
        return Objects(self.values.take(indices, axis=0))

    def rows(self) -> list[Any]:
        """The objects, or arrays of them."""
        return list(self.values)

    def private(self) -> "Objects":
        """Arrays are copied; other objects are shared, since nothing is known about copying them."""
        out = np.empty_like(self.values)
        flat = out.reshape(-1)
        for i, value in enumerate(self.values.flat):
            flat[i] = value.copy() if isinstance(value, np.ndarray) else value
        return Objects(out)

    def shared(self) -> "Objects":
        """Itself: objects count as read by others."""
        return self

    @property
    def rows_alias(self) -> bool:
        """Rows are the objects themselves."""
        return True

    def unfold(self) -> tuple["Objects", Indices]:
        """For arrays of objects; plain ones go through ``build.unfold``."""
        if self.values.ndim < 2:
            raise RowError(0, "is not an array")
        counts = np.full(len(self.values), self.values.shape[1], np.int64)
        return Objects(self.values.reshape(int(counts.sum()), *self.values.shape[2:])), counts

    def join(self, others: list[Column]) -> "Objects | None":
        """One column, if arrays of objects have one shape."""
        arrays = [self.values, *(other.values for other in others if isinstance(other, Objects))]
        if any(a.shape[1:] != self.values.shape[1:] for a in arrays):
            return None
        return Objects(np.concatenate(arrays))
