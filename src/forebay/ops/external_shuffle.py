"""A shuffle of everything, for inputs that cannot be read by number and need not fit into memory."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from forebay.block import START, Block, Cursor, RowError, Uniform, concat_blocks
from forebay.block.dense import Dense
from forebay.ops.progress import Progress
from forebay.run import Operator, Pace, Reader, Setup, Site
from forebay.run.keys import key_of, words
from forebay.run.spill import Place, SpillFile

# Rows are scattered by so many leading bits of their words at a time.
_BITS = 8
# Parts of the budget: of rows that are scattered at once, and of those that are put in order at once. Either are
# copied once on the way.
_SCATTERED = 6
_ORDERED = 6
_MOST = 64 << 20


@dataclass(slots=True)
class _Part:
    """Rows whose words begin with the same bits, in the order they came."""

    bits: int
    pieces: list[tuple[Place, int]] = field(default_factory=list)
    nbytes: int = 0


def external_part(budget: int) -> int:
    """Bytes of rows that are put in order at once."""
    return budget // _ORDERED


class ExternalShuffle(Operator):
    """State: the number of the next row in the new order.

    Every row gets a keyed random word, and the order is that of the words: uniform, and the same whatever the budget.
    Rows are scattered to disk by the leading bits of their words, then read back part by part and sorted. A part too
    large for the budget is scattered once more. What fits into the budget never goes to disk. After a resume the input
    is read again from its start.
    """

    makes_rows = True

    def __init__(self, site: Site, source: Operator, setup: Setup, seed: int, each_epoch: bool) -> None:
        super().__init__(site, source)
        self._reader = Reader(source)
        self._seed = seed
        self._each_epoch = each_epoch
        self._spill = setup.spill
        self._lease = setup.ledger.lease(str(site))
        self._scattered = min(setup.ledger.budget // _SCATTERED, _MOST)
        self._ordered = external_part(setup.ledger.budget)
        self._pace = Pace(setup.block_bytes, setup.unit)
        self._uniform = Uniform()
        self._blocks: Iterator[Block] | None = None
        self._file: SpillFile | None = None
        self._row = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Nothing is known of an order before everything has been read."""
        self._forget()
        self._row = (cursor.state or {"row": 0})["row"] + cursor.skip
        self._reader.seek(START, epoch)
        self._blocks = self._in_order(key_of(self._seed, epoch if self._each_epoch else 0, "shuffle"), self._row)
        return 0

    def pull(self) -> Block | None:
        """The next rows in the new order; the first time, after all rows have been read."""
        if self._blocks is None:
            return None
        block = next(self._blocks, None)
        if block is None:
            self._forget()
            return None
        state, self._row = {"row": self._row}, self._row + block.rows
        return block.at(Cursor(state))

    def _in_order(self, key: tuple[int, int], skip: int) -> Iterator[Block]:
        parts: list[_Part] = []
        for rows in self._ingest(key):
            if not parts and rows.nbytes <= self._ordered and self._reader.peek() is None:
                yield from self._sorted(rows, skip)
                return
            if not parts:
                self._file = self._spill.create()
                parts = [_Part(_BITS) for _ in range(1 << _BITS)]
            self._scatter(rows, parts)
        while parts:
            part = parts.pop(0)
            count = sum(place.rows for place, _ in part.pieces)
            if skip >= count:
                skip -= count
            elif part.nbytes > self._ordered and part.bits < 64 and count > 1:
                parts[:0] = self._split(part)
            else:
                rows = concat_blocks([self._load(piece) for piece in part.pieces])
                self._lease.note(2 * rows.nbytes)
                yield from self._sorted(rows, skip)
                skip = 0

    def _ingest(self, key: tuple[int, int]) -> Iterator[Block]:
        """All rows of the input with their words, in pieces of a good size."""
        read, size = 0, 0
        waiting: list[Block] = []
        with Progress(f"{self.site}: reading") as progress:
            while (block := self._reader.next()) is not None:
                try:
                    self._uniform.check(block.structure, block.columns)
                except RowError as fault:
                    raise self.site.data_error(read, fault.text) from None
                word = Dense(words(key, read, block.rows).view(np.int64))
                waiting.append(Block(block.structure, [word, *block.columns], block.rows))
                read, size = read + block.rows, size + waiting[-1].nbytes
                progress.update(read, "elements")
                self._lease.note(2 * size)
                if size >= self._scattered:
                    yield concat_blocks(waiting)
                    waiting, size = [], 0
        if waiting:
            yield concat_blocks(waiting)

    def _scatter(self, rows: Block, parts: list[_Part]) -> None:
        assert self._file is not None
        bits = parts[0].bits
        number = (_words(rows) >> np.uint64(64 - bits)) & np.uint64(len(parts) - 1)
        order = np.argsort(number, kind="stable")
        ends = np.searchsorted(number[order], np.arange(len(parts) + 1))
        together = rows.take(order)
        for part, start, stop in zip(parts, ends[:-1].tolist(), ends[1:].tolist()):
            if start < stop:
                piece = self._file.append(together.slice(start, stop))
                part.pieces.append(piece)
                part.nbytes += piece[0].nbytes

    def _split(self, part: _Part) -> list[_Part]:
        parts = [_Part(min(part.bits + _BITS, 64)) for _ in range(1 << _BITS)]
        for piece in part.pieces:
            self._scatter(self._load(piece), parts)
        return [each for each in parts if each.pieces]

    def _load(self, piece: tuple[Place, int]) -> Block:
        assert self._file is not None
        return self._file.read(*piece, START)

    def _sorted(self, rows: Block, skip: int) -> Iterator[Block]:
        order = np.argsort(_words(rows), kind="stable")[skip:]
        plain = Block(rows.structure, rows.columns[1:], rows.rows)
        while len(order):
            began = time.perf_counter()
            block = plain.take(order[: self._pace.rows])
            order = order[block.rows :]
            self._pace.observe(block.rows, block.nbytes, time.perf_counter() - began)
            yield block

    def _forget(self) -> None:
        self._blocks = None
        self._uniform = Uniform()
        self._lease.release()
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Free the disk space at once."""
        self._forget()
        super().close()


def _words(rows: Block) -> NDArray[np.uint64]:
    column = rows.columns[0]
    assert isinstance(column, Dense)
    return column.values.view(np.uint64)
