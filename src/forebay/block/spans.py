"""Strings as they lie in files, with something else between them."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import gather_ranges, split_bytes, weave_ranges
from forebay.block.column import Column, Indices, RowError
from forebay.block.ragged import gather
from forebay.block.strings import Strings

Bytes = NDArray[np.uint8]
Apart = tuple[tuple[Bytes, ...], Indices | None, Indices, Indices]
"""Buffers, in which of them each string is (None: in the first), and where it begins and ends there."""

# Bytes for each string: what tells where it is, and about what a file has between two of them.
_PLACE, _BETWEEN = 16, 16
# Strings are left where they are as long as the buffers that are kept for them are not so many times as large.
_KEPT = 8


class Spans(Strings):
    """Bytes ``buffer[starts[k]:stops[k]]``. They are put together, as in ``Strings``, when somebody asks for that.

    Who parses records needs them only where they are; so do slices and batches. Strings of several `buffers`, as of
    files that are read in turns, tell by `which` where each of them is. Those that are `ordered` are all in one buffer,
    one behind the other.
    """

    __slots__ = ("_offsets", "_ordered", "_size", "apart")

    stays = True

    def __init__(
        self,
        buffers: Bytes | tuple[Bytes, ...],
        starts: Indices,
        stops: Indices,
        shape: tuple[int, ...] = (),
        which: Indices | None = None,
        ordered: bool = True,
    ) -> None:
        self.apart: Apart = (buffers if isinstance(buffers, tuple) else (buffers,), which, starts, stops)
        self._offsets: Indices | None = None  # Once they have been put together.
        self._ordered = ordered and which is None
        self._size: int | None = None
        self.shape = shape
        self.text = False

    def __reduce__(self) -> Any:
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        return Strings, (self.data[first:last], self.offsets - first, self.shape, False)

    @property
    def places(self) -> tuple[Bytes, Indices, Indices]:
        """A buffer, and where each string begins and ends in it."""
        buffers, which, starts, stops = self.apart
        return (buffers[0], starts, stops) if which is None else super().places

    @property
    def data(self) -> Bytes:  # type: ignore[override]
        """The strings behind one another."""
        self._put_together()
        return self.apart[0][0]

    @property
    def offsets(self) -> Indices:  # type: ignore[override]
        """Where they begin and end in that."""
        return self._put_together()

    def _put_together(self) -> Indices:
        offsets = self._offsets
        if offsets is None:
            buffers, which, starts, stops = self.apart
            offsets = _offsets(stops - starts)
            data = gather(buffers[0], starts, stops) if which is None else _gathered(buffers, which, starts, stops)
            # All at once, since another thread may be asking too; the buffers may be needed by nobody else.
            self.apart = ((data,), None, offsets[:-1], offsets[1:])
            self._offsets = offsets
        return offsets

    def __len__(self) -> int:
        return len(self.apart[2]) // prod(self.shape)

    @property
    def nbytes(self) -> int:
        """With what lies between them and tells where they are."""
        return self.size + (_PLACE if self._ordered else _PLACE + _BETWEEN) * len(self.apart[2])

    @property
    def size(self) -> int:
        """Bytes of the strings; of ordered ones with what lies between them, for which none has to be looked at."""
        if self._size is None:
            _, _, starts, stops = self.apart
            if not self._ordered:
                self._size = int((stops - starts).sum())
            else:
                self._size = int(stops[-1] - starts[0]) if len(starts) else 0
        return self._size

    def slice(self, start: int, stop: int) -> Strings:
        """Rows start to stop, as a view."""
        count = prod(self.shape)
        return self._at(slice(start * count, stop * count), self.shape, self._ordered)

    def take(self, indices: Indices) -> Strings:
        """The rows at these indices: copied behind one another, or, if they are as many as all, where they are."""
        if self.shape or len(indices) != len(self):
            return super().take(indices)
        return self._at(indices, (), ordered=False)

    def _at(self, part: Any, shape: tuple[int, ...], ordered: bool) -> "Spans":
        buffers, which, starts, stops = self.apart
        return Spans(buffers, starts[part], stops[part], shape, None if which is None else which[part], ordered)

    def strings(self) -> list[Any]:
        """All strings of all rows, flat."""
        return split_bytes(*self.places)

    def fold(self, size: int) -> Strings:
        """Only the shape changes."""
        return self._shaped((size, *self.shape))

    def unfold(self) -> tuple[Strings, Indices]:
        """Only the shape changes."""
        if not self.shape:
            raise RowError(0, "is a scalar")
        return self._shaped(self.shape[1:]), np.full(len(self), self.shape[0], np.int64)

    def _shaped(self, shape: tuple[int, ...]) -> "Spans":
        buffers, which, starts, stops = self.apart
        made = Spans(buffers, starts, stops, shape, which, self._ordered)
        made._size = self._size
        return made

    def join(self, others: list[Column]) -> Strings | None:
        """All strings where they are, or in one copy if little is used of the buffers that would have to be kept."""
        parts = [self, *(other for other in others if isinstance(other, Strings))]
        if any(p.shape != self.shape or p.text for p in parts):
            return None
        spans = [part for part in parts if isinstance(part, Spans)]
        if len(spans) == len(parts):
            used = sum([part.size for part in spans])
            buffers = {id(buffer): buffer for part in spans for buffer in part.apart[0]}
            if sum([buffer.nbytes for buffer in buffers.values()]) <= _KEPT * used:
                return _side_by_side(spans, list(buffers.values()))
        lengths = [stops - starts for _, starts, stops in (p.places for p in parts)]
        ends = np.cumsum([int(each.sum()) for each in lengths]).tolist()
        data = np.empty(ends[-1], np.uint8)
        for part, begin, end in zip(parts, [0, *ends], ends):
            gather_ranges(*part.places, data[begin:end])
        offsets = _offsets(np.concatenate(lengths))
        return Spans(data, offsets[:-1], offsets[1:], self.shape)

    @staticmethod
    def in_turns(sources: "list[list[Spans]]", done: int, length: int) -> "Spans | None":
        """The strings of several columns in turns of `length`, of the first of which `done` have been given before.

        The same as ``join`` and ``take``, without an order to be made; None where these have to copy them.
        """
        parts = [part for source in sources for part in source]
        used = sum([part.size for part in parts])
        if any(part.apart[1] is not None or part.shape for part in parts):
            return None
        buffers = [part.apart[0][0] for part in parts]
        if sum({id(buffer): buffer.nbytes for buffer in buffers}.values()) > _KEPT * used:
            return None
        ranges = [[part.apart[2:] for part in source] for source in sources]
        which, starts, stops = weave_ranges(ranges, done, length)
        return Spans(tuple(buffers), starts, stops, (), which)


def _side_by_side(parts: list[Spans], buffers: list[Bytes]) -> Spans:
    places = [part.apart for part in parts]
    starts = np.concatenate([each[2] for each in places])
    stops = np.concatenate([each[3] for each in places])
    if len(buffers) == 1:
        return Spans(buffers[0], starts, stops, parts[0].shape, ordered=False)
    numbers = {id(buffer): number for number, buffer in enumerate(buffers)}
    which = np.empty(len(starts), np.int64)
    begin = 0
    for held, inner, first, _ in places:
        end = begin + len(first)
        among = [numbers[id(buffer)] for buffer in held]
        which[begin:end] = among[0] if inner is None else np.array(among)[inner]
        begin = end
    return Spans(tuple(buffers), starts, stops, parts[0].shape, which)


def _gathered(buffers: tuple[Bytes, ...], which: Indices, starts: Indices, stops: Indices) -> Bytes:
    """The strings of several buffers behind one another."""
    order = np.argsort(which, kind="stable")
    counts = np.bincount(which, minlength=len(buffers))
    grouped = np.empty(int((stops - starts).sum()), np.uint8)
    done = first = 0
    for buffer, count in zip(buffers, counts.tolist()):
        rows = order[first : first + count]
        size = int((stops[rows] - starts[rows]).sum())
        gather_ranges(buffer, starts[rows], stops[rows], grouped[done : done + size])
        done, first = done + size, first + count
    # Now they lie behind one another, sorted by buffer.
    ends = np.cumsum(stops[order] - starts[order])
    last = np.empty_like(ends)
    last[order] = ends
    return gather(grouped, last - (stops - starts), last)


def _offsets(lengths: Indices) -> Indices:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
