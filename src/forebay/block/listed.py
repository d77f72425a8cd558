"""Long bytes as the Python objects that somebody made of them."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block.column import Column, Indices, RowError
from forebay.block.strings import Strings, object_array

# Bytes of a string, on average, from which on copying it takes longer than dealing with it as an object does.
_LONG = 1024


class Listed(Strings):
    """Bytes ``items[k]``. They are put together, as in ``Strings``, when somebody asks for that.

    Whoever has pictures in memory and only puts them in another order, or hands them to a function, needs no copy.
    """

    __slots__ = ("_flat", "_items", "_size")

    stays = True

    def __init__(self, items: list[bytes], shape: tuple[int, ...] = ()) -> None:
        self._items = items
        self._flat: tuple[NDArray[np.uint8], Indices] | None = None
        self._size: int | None = None
        self.shape = shape
        self.text = False

    def _put_together(self) -> tuple[NDArray[np.uint8], Indices]:
        # All at once, since another thread may be asking too.
        if self._flat is None:
            made = Strings.of(self._items, (), text=False)
            self._flat = made.data, made.offsets
        return self._flat

    @property
    def data(self) -> NDArray[np.uint8]:  # type: ignore[override]
        """The strings behind one another."""
        return self._put_together()[0]

    @property
    def offsets(self) -> Indices:  # type: ignore[override]
        """Where they begin and end in that."""
        return self._put_together()[1]

    def __len__(self) -> int:
        return len(self._items) // prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the strings, and what refers to them."""
        if self._size is None:
            self._size = sum(map(len, self._items)) + 8 * len(self._items)
        return self._size

    def buffers(self) -> tuple[NDArray[Any], ...]:
        """One for each."""
        return tuple([np.frombuffer(item, np.uint8) for item in self._items])

    def slice(self, start: int, stop: int) -> Strings:
        """Rows start to stop: the same objects."""
        count = prod(self.shape)
        return Listed(self._items[start * count : stop * count], self.shape)

    def take(self, indices: Indices) -> Strings:
        """The rows at these indices: the same objects."""
        count = prod(self.shape)
        if count != 1:
            indices = (indices[:, None] * count + np.arange(count)).reshape(-1)
        items = self._items
        return Listed([items[i] for i in indices.tolist()], self.shape)

    def strings(self) -> list[Any]:
        """All strings of all rows, flat."""
        return list(self._items)

    def flat(self) -> NDArray[Any]:
        """All strings of all rows in an object array."""
        return object_array(self._items)

    def fold(self, size: int) -> Strings:
        """Only the shape changes."""
        return Listed(self._items, (size, *self.shape))

    def unfold(self) -> tuple[Strings, Indices]:
        """Only the shape changes."""
        if not self.shape:
            raise RowError(0, "is a scalar")
        return Listed(self._items, self.shape[1:]), np.full(len(self), self.shape[0], np.int64)

    def join(self, others: list[Column]) -> Strings | None:
        """The objects of all, if all have theirs."""
        parts = [self, *(other for other in others if isinstance(other, Listed))]
        if len(parts) <= len(others) or any(part.shape != self.shape for part in parts):
            return super().join(others)
        return Listed([item for part in parts for item in part._items], self.shape)


def bytes_column(values: list[bytes], shape: tuple[int, ...] = ()) -> Strings:
    """A column from flat bytes, which stay where they are if they are long."""
    if sum(map(len, values)) >= _LONG * len(values) and values:
        return Listed(values, shape)
    return Strings.of(values, shape, text=False)
