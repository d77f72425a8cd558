"""``text.pack``: documents of any length as sequences of one length."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import (
    LEAF,
    Block,
    Column,
    Cursor,
    Structure,
    TensorSpec,
    column_from_rows,
    concat_blocks,
    with_dtype,
)
from forebay.block.dense import Dense
from forebay.block.ragged import Ragged
from forebay.block.spec import OBJECT
from forebay.errors import DataError, PlanError
from forebay.plan.check import flag, keep_whole
from forebay.plan.node import UNKNOWN, Build, Node
from forebay.plan.spec import static_spec
from forebay.run import Operator, Reader, Setup

Tokens = NDArray[Any]
_PARTS = Structure(dict, ("tokens", "segment_ids", "positions"), (LEAF, LEAF, LEAF))


@dataclass(frozen=True, eq=False, kw_only=True)
class Pack(Node):
    """Documents put together: end to end and cut (`fit` False), or whole, as many as fit (`fit` True)."""

    length: int
    end: int | None = None
    pad: int = 0
    fit: bool = False
    segments: bool = False
    drop_remainder: bool = True
    window: int = 1024

    kind = "pack"

    def __post_init__(self) -> None:
        keep_whole(self, "length", 1)
        keep_whole(self, "window", 1)
        keep_whole(self, "pad", -(2**63))
        if self.end is not None:
            keep_whole(self, "end", -(2**63))
        for name in ("fit", "segments", "drop_remainder"):
            flag("pack", name, getattr(self, name))
        if self.fit and not self.segments:
            raise PlanError("pack(fit=True, segments=False): documents side by side cannot be told apart without")
        spec = static_spec(self.input)
        if not isinstance(spec, TensorSpec) or spec.dtype == OBJECT:
            return
        if spec.dtype.kind not in "iu" or (spec.shape is not None and len(spec.shape) != 1):
            raise PlanError(f"pack(): elements must be one-dimensional arrays of token ids, they are {spec}")

    def cardinality(self) -> int:
        """Only reading tells."""
        return UNKNOWN

    def spec(self, *inputs: Any) -> Any | None:
        """Sequences of one length, of the documents' dtype."""
        given = inputs[0]
        if not isinstance(given, TensorSpec) or given.dtype == OBJECT:
            return None
        tokens = TensorSpec((self.length if self.drop_remainder or self.fit else None,), given.dtype)
        if not self.segments:
            return tokens
        counted = TensorSpec(tokens.shape, np.dtype(np.int32))
        return {"tokens": tokens, "segment_ids": counted, "positions": counted}

    def lower(self, setup: Setup, build: Build) -> Operator:
        """One way or the other."""
        source = build(self.input, setup.with_unit(1))
        return _Fit(self, source, setup) if self.fit else _Chunks(self, source, setup)


class _Pack(Operator):
    def __init__(self, node: Pack, source: Operator, setup: Setup) -> None:
        super().__init__(node.site, source)
        self._node = node
        self._reader = Reader(source)
        self._block_bytes = setup.block_bytes
        self._index = 0  # Of the next document.

    def _documents(self, block: Block) -> tuple[Tokens, NDArray[np.int64]]:
        """All tokens of a block, each document with the end's id behind it, and the documents' lengths."""
        if not block.structure.is_leaf:
            raise self._not(0, f"has the structure {block.structure}")
        column = block.columns[0]
        if column.dtype == OBJECT:
            # Where there were empty lists in the block that these rows are of.
            column = column_from_rows(with_dtype(column).rows())
        values, lengths = _flat(column)
        if values is not None and not len(values) and column.value_dtype == OBJECT:
            # Nothing but empty lists: those with something in them would be int64.
            values = values.astype(np.int64)
        if values is None or values.dtype.kind not in "iu":
            raise self._not(0, "has no whole numbers, or None among them")
        if self._node.end is None:
            return values, lengths
        ends = np.cumsum(lengths)
        self._has_room(values.dtype, "end", self._node.end)
        return np.insert(values, ends, np.asarray(self._node.end).astype(values.dtype)), lengths + 1

    def _has_room(self, dtype: np.dtype[Any], name: str, value: int) -> None:
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise self.site.data_error(self._index, f"has {dtype.name} tokens, which have no room for {name}={value}")

    def _not(self, row: int, text: str) -> DataError:
        return self.site.data_error(
            self._index + row, f"{text}; elements must be one-dimensional arrays of token ids: make them so with map()"
        )

    def _rows_of(self, tokens: Tokens, segments: Tokens, positions: Tokens, width: int) -> Block:
        rows = len(tokens) // width
        columns = [Dense(part.reshape(rows, width)) for part in (tokens, segments, positions)]
        return Block(_PARTS, columns, rows) if self._node.segments else Block(LEAF, columns[:1], rows)


class _Chunks(_Pack):
    """Tokens end to end. State: the document that the next sequence begins in, and how many of its tokens are gone."""

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """To the document; how many tokens the sequences before take of the next ones only reading tells."""
        state = cursor.state or {"index": 0, "in": [None, 0], "gone": 0}
        self._reader.seek(Cursor.from_json(state["in"]), epoch)
        self._index, self._gone = state["index"], state["gone"]
        return cursor.skip

    def pull(self) -> Block | None:
        """Whole sequences of the documents at hand; what is left over is read again with the next ones."""
        size = self._node.length
        blocks: list[Block] = []
        have = 0
        while have < size:
            block = self._reader.next()
            if block is None:
                break
            blocks.append(block)
            have += int(self._documents(block)[1].sum()) - (self._gone if len(blocks) == 1 else 0)
        if not blocks:
            return None
        joined = concat_blocks(blocks)
        tokens, lengths = self._documents(joined)
        usable = len(tokens) - self._gone
        whole = usable // size * size
        width = size
        if not whole:
            if self._node.drop_remainder or not usable:
                return None
            whole = width = usable
        state = {"index": self._index, "in": joined.cursor.to_json(), "gone": self._gone}
        made = self._made(tokens, lengths, whole, width).at(Cursor(state))
        self._go_on(joined, lengths, self._gone + whole)
        return made

    def _made(self, tokens: Tokens, lengths: NDArray[np.int64], whole: int, width: int) -> Block:
        used = tokens[self._gone : self._gone + whole]
        if not self._node.segments:
            return self._rows_of(used, used, used, width)
        document = np.repeat(np.arange(len(lengths)), lengths)
        document = document[self._gone : self._gone + whole]
        # Segments are numbered from 1 and positions from 0 in every sequence: what was cut off is not there to see.
        new = np.concatenate([[True], document[1:] != document[:-1]])
        new[::width] = True
        counts, place = np.cumsum(new), np.arange(whole)
        segments = counts - np.repeat(counts[::width] - 1, width)
        positions = place - np.maximum.accumulate(np.where(new, place, 0))
        return self._rows_of(used, segments.astype(np.int32), positions.astype(np.int32), width)

    def _go_on(self, joined: Block, lengths: NDArray[np.int64], done: int) -> None:
        """The next sequence begins after so many tokens."""
        ends = np.cumsum(lengths)
        document = int(np.searchsorted(ends, done, "right"))
        self._index += document
        self._gone = done - int(ends[document - 1]) if document else done
        if document < joined.rows:
            self._reader.unread(joined.slice(document, joined.rows))

    _gone = 0


class _Fit(_Pack):
    """Documents whole. State: the first document of the window that sequences are made of."""

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """To the window; its sequences are made again."""
        state = cursor.state or {"index": 0, "in": [None, 0]}
        self._reader.seek(Cursor.from_json(state["in"]), epoch)
        self._index = state["index"]
        return cursor.skip

    def pull(self) -> Block | None:
        """The sequences of the next window of documents: a number of them, so that nothing else decides."""
        while True:
            blocks: list[Block] = []
            missing = self._node.window
            while missing:
                block = self._reader.read(missing)
                if block is None:
                    break
                blocks.append(block)
                missing -= block.rows
            if not blocks:
                return None
            joined = concat_blocks(blocks)
            made = self._packed(*self._documents(joined))
            state = {"index": self._index, "in": joined.cursor.to_json()}
            self._index += joined.rows
            if made.rows:
                return made.at(Cursor(state))

    def _packed(self, tokens: Tokens, lengths: NDArray[np.int64]) -> Block:
        size = self._node.length
        self._has_room(tokens.dtype, "pad", self._node.pad)
        # What is longer than a sequence is cut.
        counts = -(-lengths // size)
        first = np.repeat(np.cumsum(lengths) - lengths, counts)
        piece = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = first + piece * size
        sizes = np.minimum(np.repeat(lengths, counts) - piece * size, size)
        rows = best_fit(sizes, size)
        count = int(rows.max()) + 1 if len(rows) else 0
        out = np.full((count, size), self._node.pad, tokens.dtype)
        segments = np.zeros((count, size), np.int32)
        positions = np.zeros((count, size), np.int32)
        filled = np.zeros(count, np.int64)
        number = np.zeros(count, np.int32)
        for row, start, length in zip(rows.tolist(), starts.tolist(), sizes.tolist()):
            at = int(filled[row])
            number[row] += 1
            out[row, at : at + length] = tokens[start : start + length]
            segments[row, at : at + length] = number[row]
            positions[row, at : at + length] = np.arange(length)
            filled[row] += length
        return self._rows_of(out.reshape(-1), segments.reshape(-1), positions.reshape(-1), size)


def best_fit(sizes: NDArray[np.int64], room: int) -> NDArray[np.int64]:
    """The bin of every piece, the largest first, each into the fullest bin that still has room for it."""
    bins = np.empty(len(sizes), np.int64)
    # By how much room is left: a stack of bins for each amount, and the amounts that have any as bits of a number.
    open_bins: list[list[int]] = [[] for _ in range(room + 1)]
    levels = 0
    count = 0
    for piece in np.argsort(-sizes, kind="stable").tolist():
        size = int(sizes[piece])
        fitting = levels >> size
        if fitting:
            left = size + ((fitting & -fitting).bit_length() - 1)
            chosen = open_bins[left].pop()
            if not open_bins[left]:
                levels &= ~(1 << left)
        else:
            left, chosen = room, count
            count += 1
        bins[piece] = chosen
        if left > size:
            open_bins[left - size].append(chosen)
            levels |= 1 << (left - size)
    return bins


def _flat(column: Column) -> tuple[Tokens | None, NDArray[np.int64]]:
    """The values of one-dimensional rows, and how many each has."""
    if isinstance(column, Dense) and column.values.ndim == 2:
        return column.values.reshape(-1), np.full(len(column), column.values.shape[1], np.int64)
    if isinstance(column, Ragged) and column.shapes.shape[1] == 1:
        first, last = int(column.offsets[0]), int(column.offsets[-1])
        return column.values[first:last], np.asarray(column.shapes[:, 0], np.int64)
    return None, np.empty(0, np.int64)
