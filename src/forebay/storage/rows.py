"""Columns of uncompressed files by row number, read straight from where they lie in the file."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from forebay.block import Column, Indices
from forebay.block.aligned import aligned_empty
from forebay.block.build import concat_columns
from forebay.block.dense import Dense
from forebay.block.ragged import Ragged
from forebay.block.spec import TEXT
from forebay.block.strings import Strings
from forebay.storage.file_reader import Source, StoredFile
from forebay.storage.leaf import Leaf
from forebay.storage.values import as_dtype, is_text, parts, stored_dtype

Span = tuple[Source, Indices, int, int]
"""Rows from one number to another, of the batch whose buffers lie at these places of a file."""


class DirectColumn(ABC):
    """Rows of one leaf. `at` are the places of its buffers in the file, one row of them for each row asked for."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf

    @abstractmethod
    def places(self, array: Any, base: int, start: int) -> list[int]:
        """Where the buffers lie in the file, of a batch that was read from `start` on into memory at `base`."""

    @abstractmethod
    def gather(self, file: StoredFile, at: Indices, rows: Indices) -> Column:
        """The rows with these numbers, each in a batch of its own."""

    @abstractmethod
    def read(self, spans: Sequence[Span]) -> Column:
        """Neighbouring rows of one batch or of several, one behind another."""


def direct_column(leaf: Leaf) -> DirectColumn | None:
    """How to read a leaf; None if batches have to be decoded for it."""
    if leaf.nullable or leaf.dtype.kind == "b":
        return None
    if is_text(leaf.dtype):
        return _Text(leaf) if leaf.form == "scalar" else None
    if leaf.form in ("scalar", "fixed"):
        return _Fixed(leaf)
    return _Lists(leaf) if leaf.form == "list" else None


class _Fixed(DirectColumn):
    """Rows of equal size."""

    def __init__(self, leaf: Leaf) -> None:
        super().__init__(leaf)
        self._stored = stored_dtype(leaf.dtype)
        self._shape = tuple(size or 0 for size in leaf.inner or ())
        self._width = leaf.count * self._stored.itemsize

    def places(self, array: Any, base: int, start: int) -> list[int]:
        """The values."""
        values = array.storage.values if self.leaf.form == "fixed" else array
        return [_place(values.buffers()[1], base, start)]

    def gather(self, file: StoredFile, at: Indices, rows: Indices) -> Column:
        """A read for each row."""
        out = aligned_empty((len(rows), *self._shape), self._stored)
        file.read_rows(at[:, 0] + rows * self._width, _bytes(out))
        return self._dense(out)

    def read(self, spans: Sequence[Span]) -> Column:
        """One read for each batch."""
        # Rows of several batches lie in the file as they will in memory only for one of them.
        counts = [stop - start for _, _, start, stop in spans]
        largest = max(range(len(spans)), key=counts.__getitem__)
        _, at, start, _ = spans[largest]
        place = int(at[0]) + (start - sum(counts[:largest])) * self._width
        out = aligned_empty((sum(counts), *self._shape), self._stored, place)
        done, content = 0, _bytes(out)
        for source, at, start, stop in spans:
            size = (stop - start) * self._width
            if size:
                source.fill(int(at[0]) + start * self._width, content[done : done + size])
            done += size
        return self._dense(out)

    def _dense(self, out: Any) -> Dense:
        values = as_dtype(out, self.leaf.dtype)
        return Dense(values.reshape(len(out), *(self.leaf.shape or ())))


class _Uneven(DirectColumn):
    """Rows of any length: offsets in one buffer, content in another."""

    def __init__(self, leaf: Leaf) -> None:
        super().__init__(leaf)
        self._item = 1 if is_text(leaf.dtype) else stored_dtype(leaf.dtype).itemsize

    def gather(self, file: StoredFile, at: Indices, rows: Indices) -> Column:
        """Two reads for each row."""
        bounds = np.empty((len(rows), 2), np.int64)
        file.read_rows(at[:, 0] + rows * 8, _bytes(bounds))
        starts, stops = (at[:, 1] + bounds[:, i] * self._item for i in (0, 1))
        content = np.empty(int((stops - starts).sum()), np.uint8)
        file.read_ranges(np.ascontiguousarray(starts), np.ascontiguousarray(stops), content)
        return self._column(content, np.concatenate([[0], np.cumsum(bounds[:, 1] - bounds[:, 0])]))

    def read(self, spans: Sequence[Span]) -> Column:
        """Two reads for each batch."""
        columns = []
        for source, at, start, stop in spans:
            offsets = np.empty(stop - start + 1, np.int64)
            source.fill(int(at[0]) + start * 8, _bytes(offsets))
            first, last = (int(at[1]) + int(offsets[i]) * self._item for i in (0, -1))
            columns.append(self._column(source.read(first, last), offsets - offsets[0]))
        return concat_columns(columns)

    @abstractmethod
    def _column(self, content: "np.ndarray[Any, np.dtype[np.uint8]]", offsets: Indices) -> Column: ...


class _Text(_Uneven):
    """Bytes and text."""

    def places(self, array: Any, base: int, start: int) -> list[int]:
        """Offsets and characters."""
        _, offsets, data = array.buffers()
        return [_place(offsets, base, start), _place(data, base, start)]

    def _column(self, content: "np.ndarray[Any, np.dtype[np.uint8]]", offsets: Indices) -> Column:
        return Strings(content, offsets, (), self.leaf.dtype == TEXT)


class _Lists(_Uneven):
    """Arrays of one axis."""

    def places(self, array: Any, base: int, start: int) -> list[int]:
        """Offsets and values."""
        offsets, data = array.buffers()[1], array.values.buffers()[1]
        return [_place(offsets, base, start), _place(data, base, start)]

    def _column(self, content: "np.ndarray[Any, np.dtype[np.uint8]]", offsets: Indices) -> Column:
        assert parts(self.leaf.dtype) == 1
        values = as_dtype(content.view(stored_dtype(self.leaf.dtype)), self.leaf.dtype)
        column = Ragged(values, offsets, np.diff(offsets)[:, None])
        return column.dense() or column


def _place(buffer: Any, base: int, start: int) -> int:
    # A buffer of nothing need not lie in the batch.
    return start if buffer is None or not buffer.size else int(buffer.address) - base + start


def _bytes(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, np.dtype[np.uint8]]":
    return array.reshape(-1).view(np.uint8)
