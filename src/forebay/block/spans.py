"""Strings as they lie in a file, with something else between them."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import gather_ranges, split_bytes
from forebay.block.column import Column, Indices, RowError
from forebay.block.ragged import gather
from forebay.block.strings import Strings

# Bytes for each string: what tells where it is, and about what a file has between two of them.
_BESIDES = 32


class Spans(Strings):
    """Bytes ``buffer[starts[k]:stops[k]]``. They are put together, as in ``Strings``, when somebody asks for that.

    Who parses records needs them only where they are; so do slices and batches.
    """

    __slots__ = ("_data", "_nbytes", "_offsets", "_places")

    def __init__(self, buffer: NDArray[np.uint8], starts: Indices, stops: Indices, shape: tuple[int, ...] = ()) -> None:
        self._places: tuple[NDArray[np.uint8], Indices, Indices] | None = (buffer, starts, stops)
        self._data: NDArray[np.uint8] | None = None
        self._offsets: Indices | None = None
        self._nbytes: int | None = None
        self.shape = shape
        self.text = False

    def __reduce__(self) -> Any:
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        return Strings, (self.data[first:last], self.offsets - first, self.shape, False)

    @property
    def places(self) -> tuple[NDArray[np.uint8], Indices, Indices]:
        """A buffer, and where each string begins and ends in it."""
        return self._places or super().places

    @property
    def data(self) -> NDArray[np.uint8]:  # type: ignore[override]
        """The strings behind one another."""
        self._put_together()
        assert self._data is not None
        return self._data

    @property
    def offsets(self) -> Indices:  # type: ignore[override]
        """Where they begin and end in that."""
        self._put_together()
        assert self._offsets is not None
        return self._offsets

    def _put_together(self) -> None:
        places = self._places
        if places is not None:
            buffer, starts, stops = places
            self._offsets = _offsets(stops - starts)
            self._data = gather(buffer, starts, stops)
            # Only now, and without a gap: another thread may be asking too.
            self._places = None

    def __len__(self) -> int:
        return len(self.places[1]) // prod(self.shape)

    @property
    def nbytes(self) -> int:
        """With what lies between them and tells where they are."""
        if self._nbytes is None:
            _, starts, stops = self.places
            self._nbytes = int((stops - starts).sum()) + _BESIDES * len(starts)
        return self._nbytes

    def slice(self, start: int, stop: int) -> Strings:
        """Rows start to stop, as a view."""
        buffer, starts, stops = self.places
        count = prod(self.shape)
        part = slice(start * count, stop * count)
        return Spans(buffer, starts[part], stops[part], self.shape)

    def take(self, indices: Indices) -> Strings:
        """The rows at these indices: copied behind one another, or, if they are as many as all, where they are."""
        if self.shape:
            return super().take(indices)
        buffer, starts, stops = self.places
        starts, stops = starts[indices], stops[indices]
        if len(starts) == len(self.places[1]):
            return Spans(buffer, starts, stops)
        return Strings(gather(buffer, starts, stops), _offsets(stops - starts), (), False)

    def strings(self) -> list[Any]:
        """All strings of all rows, flat."""
        return split_bytes(*self.places)

    def fold(self, size: int) -> Strings:
        """Only the shape changes."""
        return Spans(*self.places, (size, *self.shape))

    def unfold(self) -> tuple[Strings, Indices]:
        """Only the shape changes."""
        if not self.shape:
            raise RowError(0, "is a scalar")
        return Spans(*self.places, self.shape[1:]), np.full(len(self), self.shape[0], np.int64)

    def join(self, others: list[Column]) -> Strings | None:
        """All strings in one copy."""
        parts = [self, *(other for other in others if isinstance(other, Strings))]
        if any(p.shape != self.shape or p.text for p in parts):
            return None
        lengths = [stops - starts for _, starts, stops in (p.places for p in parts)]
        ends = np.cumsum([int(each.sum()) for each in lengths]).tolist()
        data = np.empty(ends[-1], np.uint8)
        for part, begin, end in zip(parts, [0, *ends], ends):
            gather_ranges(*part.places, data[begin:end])
        offsets = _offsets(np.concatenate(lengths))
        return Spans(data, offsets[:-1], offsets[1:], self.shape)


def _offsets(lengths: Indices) -> Indices:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
