"""A shuffle of everything, for inputs that cannot be read by number and need not fit into memory."""

import mmap
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from forebay._native import Errands
from forebay.block import START, Block, Cursor, Indices, RowError, Uniform, concat_blocks
from forebay.block.aligned import aligned_empty
from forebay.block.dense import Dense
from forebay.block.pages import PagePool
from forebay.heaps import give_back
from forebay.ops.external_parts import ExternalParts
from forebay.ops.progress import Progress
from forebay.run import Operator, Pace, Reader, Setup, Site
from forebay.run.keys import Key, key_of, words
from forebay.run.layout import WORD, Layout, Words
from forebay.run.pieces import Arranged
from forebay.run.places import Places
from forebay.run.scatter import Scatter
from forebay.run.spill import SpillFile
from forebay.sizes import system_left

# Bytes for every row of a part whose order is looked for: its word, its number and its place.
_ORDERING = 20
# So many pieces of a part tell whether it is in the system's memory.
_LOOKED_AT = 8
# A part of the memory that the system has left, which it is asked to keep rows in that were written: others use it too.
_KEPT_NEAR = 2


class _Part:
    """Rows whose words begin with the same bits, in the order they came: first pieces, then blocks of any kind."""

    __slots__ = ("bits", "blocks", "chunks")

    def __init__(self, bits: int, lists: SpillFile) -> None:
        self.bits = bits
        self.chunks = Places(lists)
        self.blocks = Places(lists)

    @property
    def nbytes(self) -> int:
        return self.chunks.nbytes + self.blocks.nbytes

    @property
    def rows(self) -> int:
        return self.chunks.rows + self.blocks.rows


class ExternalShuffle(Operator):
    """State: the number of the next row in the new order.

    Every row gets a keyed random word, and the order is that of the words: uniform, and the same whatever the budget.
    Rows are scattered to disk by the leading bits of their words, then read back part by part and sorted. A part too
    large for the budget is scattered once more. What fits into the budget never goes to disk. After a resume the input
    is read again from its start.

    Rows of one size are written in pieces, on a thread of their own while the next ones are collected, and read back
    while those before are given out. Should rows come that are not like the first ones, all from there on are written
    as blocks.
    """

    makes_rows = True
    uniform = True

    def __init__(self, site: Site, source: Operator, setup: Setup, seed: int, each_epoch: bool) -> None:
        super().__init__(site, source)
        self._reader = Reader(source)
        self._seed = seed
        self._each_epoch = each_epoch
        self._spill = setup.spill
        self._lease = setup.ledger.lease(str(site))
        self._budget = setup.ledger.budget
        self._sizes = ExternalParts.within(setup.ledger.share)
        self._pace = Pace(setup.block_bytes, setup.unit)
        self._uniform = Uniform()
        self._blocks: Iterator[Block] | None = None
        # Of rows, and of lists of where these are.
        self._file: SpillFile | None = None
        self._lists: SpillFile | None = None
        self._errands: Errands | None = None
        # Of two parts, one that is given out and one that is being read.
        self._pages = PagePool()
        self._layout: Layout | None = None
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

    def _in_order(self, key: Key, skip: int) -> Iterator[Block]:
        first: deque[tuple[Words, Block]] = deque()
        size = 0
        rows = self._ingest(key)
        for word, block in rows:
            first.append((word, block))
            size += word.nbytes + block.nbytes
            self._lease.note(2 * size)
            if size > self._sizes.part:
                break
        else:
            if first:
                order = _order(np.concatenate([word for word, _ in first]))
                whole = concat_blocks([block for _, block in first])
                first.clear()
                yield from self._given(whole.take, order[skip:])
            return
        parts = self._scattered(first, rows)
        # The rows that were collected first have gone to disk, and parts are about to take their place.
        give_back(self._sizes.part)
        # One part is given out while the next is being read.
        coming: deque[Callable[[], Iterator[Block]]] = deque()
        for part, dropped in self._parts(parts, skip):
            coming.append(self._opened(part, dropped))
            if len(coming) == 2:
                yield from coming.popleft()()
        for last in coming:
            yield from last()

    def _ingest(self, key: Key) -> Iterator[tuple[Words, Block]]:
        """All rows of the input with their words."""
        read = 0
        with Progress(f"{self.site}: reading") as progress:
            while (block := self._reader.next()) is not None:
                try:
                    self._uniform.check(block.structure, block.columns)
                except RowError as fault:
                    raise self.site.data_error(read, fault.text) from None
                word = words(key, read, block.rows)
                read += block.rows
                progress.update(read, "elements")
                yield word, block

    def _scattered(self, first: "deque[tuple[Words, Block]]", rest: Iterator[tuple[Words, Block]]) -> list[_Part]:
        """All rows on disk, by the leading bits of their words."""
        self._file, self._lists = SpillFile(self._spill), SpillFile(self._spill)
        near = max(0, system_left() - self._budget) // _KEPT_NEAR
        self._file.far = -(-near // mmap.PAGESIZE) * mmap.PAGESIZE
        self._errands = Errands()
        parts = [_Part(self._sizes.bits, self._lists) for _ in range(1 << self._sizes.bits)]
        self._layout = layout = Layout.of(first[0][1])
        rows = _drained(first, rest)
        if layout is not None:
            rows = self._scatter_alike(layout, rows, parts)
        self._scatter_blocks((_with_words(word, block) for word, block in rows), parts)
        self._file.trim()
        return parts

    def _scatter_alike(
        self, layout: Layout, rows: Iterator[tuple[Words, Block]], parts: list[_Part]
    ) -> Iterator[tuple[Words, Block]]:
        """Scatter rows of that layout. What is left from the first one on that is not."""
        scatter = self._new_scatter(
            layout, self._sizes.bits, len(parts), self._sizes.pieces_bytes(len(parts), again=False)
        )
        self._lease.note(2 * scatter.nbytes)
        left: list[tuple[Words, Block]] = []
        for word, block in rows:
            if not layout.fits(block):
                left.append((word, block))
                break
            scatter.add(word, layout.fields(word, block))
        for part, chunks in zip(parts, scatter.finish()):
            part.chunks = chunks
        return _drained(deque(left), rows)

    def _new_scatter(self, layout: Layout, bits: int, parts: int, nbytes: int) -> Scatter:
        assert self._file is not None
        assert self._lists is not None
        assert self._errands is not None
        return Scatter(self._file, self._lists, self._errands, layout, 64 - bits, parts, nbytes)

    def _scatter_blocks(self, blocks: Iterable[Block], parts: list[_Part]) -> None:
        """Rows whose first column is their words, as many at once as make pieces of a good size."""
        waiting: list[Block] = []
        size = 0
        for block in blocks:
            waiting.append(block)
            size += block.nbytes
            self._lease.note(2 * size)
            if size >= self._sizes.blocks_at_once:
                self._scatter_rows(concat_blocks(waiting), parts)
                waiting, size = [], 0
        if waiting:
            self._scatter_rows(concat_blocks(waiting), parts)

    def _scatter_rows(self, rows: Block, parts: list[_Part]) -> None:
        assert self._file is not None
        number = (_words_of(rows) >> np.uint64(64 - parts[0].bits)) & np.uint64(len(parts) - 1)
        order = np.argsort(number, kind="stable")
        ends = np.searchsorted(number[order], np.arange(len(parts) + 1))
        together = rows.take(order)
        for part, start, stop in zip(parts, ends[:-1].tolist(), ends[1:].tolist()):
            if start < stop:
                part.blocks.append(self._file.append(together.slice(start, stop).at(START)))

    def _parts(self, parts: list[_Part], skip: int) -> Iterator[tuple[_Part, int]]:
        """Parts small enough to be put in order, and how many rows of each are not asked for."""
        waiting = deque(parts)
        while waiting:
            part = waiting.popleft()
            count = part.rows
            if skip >= count:
                skip -= count
            elif self._sizes.too_large(part.nbytes, part.bits) and count > 1:
                waiting.extendleft(reversed(self._split(part)))
            else:
                if waiting:
                    self._ask_disk(waiting[0])
                yield part, skip
                skip = 0

    def _ask_disk(self, part: _Part) -> None:
        """Have the disk read what is not in memory, while the parts before are put in order and given out."""
        assert self._file is not None
        places = [*part.chunks, *part.blocks]
        # What was written first is the first to go from memory. To ask for what is there takes as long as to read it.
        if all(self._file.is_near(place.offset) for place in places[:: max(1, len(places) // _LOOKED_AT)]):
            return
        for place in places:
            # Of what is far the words alone, by which rows are put in order.
            far = place.offset >= self._file.far
            self._file.will_need(place.offset, WORD * place.rows if far else place.nbytes)

    def _split(self, part: _Part) -> list[_Part]:
        """The same rows in parts of which each is likely to be small enough."""
        assert self._file is not None
        assert self._lists is not None
        bits = self._sizes.bits_again(part.nbytes, part.bits)
        parts = [_Part(bits, self._lists) for _ in range(1 << (bits - part.bits))]
        if self._layout is not None:
            layout, nbytes = self._layout, self._sizes.pieces_bytes(len(parts), again=True)
            scatter = self._new_scatter(layout, bits, len(parts), nbytes)
            self._lease.note(scatter.nbytes + self._pages.nbytes)
            for words, block in self._pieces(layout, part):
                scatter.add(words, layout.fields(words, block))
            for each, chunks in zip(parts, scatter.finish()):
                each.chunks = chunks
            for place in part.chunks:
                self._file.free(place)
        self._scatter_blocks(map(self._file.read, part.blocks), parts)
        for place in part.blocks:
            self._file.free(place)
        return [each for each in parts if each.nbytes]

    def _pieces(self, layout: Layout, part: _Part) -> Iterator[tuple[Words, Block]]:
        """The rows of a part that were written in pieces, as they came."""
        assert self._file is not None
        for place in part.chunks:
            piece = aligned_empty((place.nbytes,))
            self._file.read_into(place.offset, piece, place.checksum)
            yield layout.apart(piece, place.rows)

    def _opened(self, part: _Part, skip: int) -> Callable[[], Iterator[Block]]:
        """Begin to read a part; what then gives its rows in order."""
        assert self._file is not None
        assert self._errands is not None
        layout = self._layout
        if part.blocks.rows or layout is None:
            return partial(self._given_blocks, part, skip)
        block_rows = self._pace.grown(layout.width)
        coming = Arranged(part.chunks, self._file, self._errands, layout, part.bits, skip, block_rows, self._pages)
        self._lease.note(self._pages.nbytes + _ORDERING * part.rows)
        return lambda: _handed_out(coming.result())

    def _given_blocks(self, part: _Part, skip: int) -> Iterator[Block]:
        assert self._file is not None
        blocks = [_with_words(*piece) for piece in self._pieces(self._layout, part)] if self._layout else []
        blocks += [self._file.read(place) for place in part.blocks]
        rows = concat_blocks(blocks)
        del blocks
        self._lease.note(2 * rows.nbytes)
        order = _order(_words_of(rows))
        return self._given(Block(rows.structure, rows.columns[1:], rows.rows).take, order[skip:])

    def _given(self, take: Callable[[Indices], Block], order: Indices) -> Iterator[Block]:
        while len(order):
            began = time.perf_counter()
            block = take(order[: self._pace.rows])
            order = order[block.rows :]
            self._pace.observe(block.rows, block.nbytes, time.perf_counter() - began)
            yield block

    def held(self) -> tuple[int, float]:
        """The buffers of what goes to disk, then the parts that are put in order."""
        held = self._lease.held
        return held, min(1.0, held / max(1, 2 * self._sizes.part))

    def _forget(self) -> None:
        self._blocks = None
        self._uniform = Uniform()
        if self._errands is not None:
            # Forgotten only afterwards: should this be interrupted, the next close still waits for the thread.
            self._errands.stop()
            self._errands = None
        self._layout = None
        self._pages = PagePool()
        self._lease.release()
        for file in (self._file, self._lists):
            if file is not None:
                file.close()
        self._file = self._lists = None

    def close(self) -> None:
        """Give the disk space back."""
        self._forget()
        super().close()


def _drained(first: "deque[tuple[Words, Block]]", rest: Iterator[tuple[Words, Block]]) -> Iterator[tuple[Words, Block]]:
    """These, of which none is kept once it has been given, and then the others."""
    while first:
        yield first.popleft()
    yield from rest


def _handed_out(blocks: list[Block]) -> Iterator[Block]:
    """One after another, of which none is kept here."""
    blocks.reverse()
    while blocks:
        yield blocks.pop()


def _order(word: Words) -> Indices:
    """Of rows by their words, those with the same word as they came."""
    order = np.argsort(word)
    ordered = word[order]
    # As good as never, and the other way takes several times as long.
    return np.argsort(word, kind="stable") if (ordered[1:] == ordered[:-1]).any() else order


def _with_words(word: Words, block: Block) -> Block:
    return Block(block.structure, [Dense(word.view(np.int64)), *block.columns], block.rows)


def _words_of(rows: Block) -> NDArray[np.uint64]:
    column = rows.columns[0]
    assert isinstance(column, Dense)
    return column.values.view(np.uint64)
