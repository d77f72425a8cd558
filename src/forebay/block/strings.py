"""Bytes and text of any length, in scalars or in arrays of one shape: one flat buffer and offsets."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import fill_bytes, split_bytes
from forebay.block.aligned import joined
from forebay.block.column import Column, Indices, RowError
from forebay.block.ragged import gather
from forebay.block.spec import BYTES, TEXT, TensorSpec

# Lone surrogates, as file names may hold, survive the round trip through UTF-8 this way.
_ENCODING = ("utf-8", "surrogatepass")


class Strings(Column):
    """Row i holds ``prod(shape)`` strings; string k is ``data[offsets[k]:offsets[k + 1]]``, in UTF-8 if `text`."""

    __slots__ = ("data", "offsets", "shape", "text")

    def __init__(self, data: NDArray[np.uint8], offsets: Indices, shape: tuple[int, ...], text: bool) -> None:
        self.data = data
        self.offsets = offsets
        self.shape = shape
        self.text = text

    @staticmethod
    def of(values: Sequence[Any], shape: tuple[int, ...], text: bool) -> "Strings":
        """A column from flat strings: all bytes, or all str if `text`."""
        raw = [value.encode(*_ENCODING) for value in values] if text else values
        offsets = np.zeros(len(raw) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, raw), np.int64, len(raw)), out=offsets[1:])
        return Strings(np.frombuffer(b"".join(raw), np.uint8), offsets, shape, text)

    def __reduce__(self) -> Any:
        # A slice refers to all the strings of the column it was cut from.
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        return Strings, (self.data[first:last], self.offsets - first, self.shape, self.text)

    def __len__(self) -> int:
        count = prod(self.shape)
        # Rows of no strings at all cannot be counted; columns with an empty axis are kept as objects.
        return (len(self.offsets) - 1) // count

    @property
    def nbytes(self) -> int:
        """Bytes of the strings and their offsets."""
        return int(self.offsets[-1] - self.offsets[0]) + self.offsets.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Text or bytes."""
        return TEXT if self.text else BYTES

    @property
    def spec(self) -> TensorSpec:
        """The shape of a row's array of strings; () for plain strings."""
        return TensorSpec(self.shape, self.dtype)

    def buffers(self) -> tuple[NDArray[Any], ...]:
        """What there is."""
        return (self.data, self.offsets)

    def slice(self, start: int, stop: int) -> "Strings":
        """Rows start to stop, as a view."""
        count = prod(self.shape)
        return Strings(self.data, self.offsets[start * count : stop * count + 1], self.shape, self.text)

    def take(self, indices: Indices) -> "Strings":
        """The rows at these indices, copied behind one another."""
        count = prod(self.shape)
        if count != 1:
            indices = (indices[:, None] * count + np.arange(count)).reshape(-1)
        starts, stops = self.offsets[indices], self.offsets[indices + 1]
        offsets = np.zeros(len(indices) + 1, np.int64)
        np.cumsum(stops - starts, out=offsets[1:])
        return Strings(gather(self.data, starts, stops), offsets, self.shape, self.text)

    @property
    def places(self) -> tuple[NDArray[np.uint8], Indices, Indices]:
        """A buffer, and where each string begins and ends in it."""
        return self.data, self.offsets[:-1], self.offsets[1:]

    def strings(self) -> list[Any]:
        """All strings of all rows, flat."""
        if not self.text:
            return split_bytes(*self.places)
        first = int(self.offsets[0])
        raw = self.data[first : int(self.offsets[-1])].tobytes()
        return [raw[a:b].decode(*_ENCODING) for a, b in pairwise((self.offsets - first).tolist())]

    def rows(self) -> list[Any]:
        """Python strings, or object arrays of them."""
        if not self.shape:
            return self.strings()
        return list(self.flat().reshape(len(self), *self.shape))

    def flat(self) -> NDArray[Any]:
        """All strings of all rows in an object array."""
        if self.text:
            return object_array(self.strings())
        data, starts, stops = self.places
        flat = np.empty(len(starts), object)
        fill_bytes(flat, data, starts, stops)
        return flat

    def private(self) -> "Strings":
        """Itself: strings cannot be written into, and arrays of them are made per row."""
        return self

    def shared(self) -> "Strings":
        """Itself, for the same reason."""
        return self

    @property
    def rows_alias(self) -> bool:
        """Rows are made anew each time."""
        return False

    def fold(self, size: int) -> "Strings":
        """Only the shape changes."""
        return Strings(self.data, self.offsets, (size, *self.shape), self.text)

    def unfold(self) -> tuple["Strings", Indices]:
        """Only the shape changes."""
        if not self.shape:
            raise RowError(0, "is a scalar")
        counts = np.full(len(self), self.shape[0], np.int64)
        return Strings(self.data, self.offsets, self.shape[1:], self.text), counts

    def join(self, others: list[Column]) -> "Strings | None":
        """One column, if shapes agree and all are text or all are bytes."""
        parts = [self, *(other for other in others if isinstance(other, Strings))]
        if any(p.shape != self.shape or p.text != self.text for p in parts):
            return None
        data = joined([p.data[int(p.offsets[0]) : int(p.offsets[-1])] for p in parts])
        lengths = np.concatenate([np.diff(p.offsets) for p in parts])
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return Strings(data, offsets, self.shape, self.text)


def object_array(values: Sequence[Any]) -> NDArray[Any]:
    """A flat object array that holds exactly these values, whatever they are."""
    return np.fromiter(values, object, len(values))
