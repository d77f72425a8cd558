"""A shuffle buffer that holds rows, for inputs that cannot be read by number."""

from collections import deque
from contextlib import closing
from typing import Any

import numpy as np

from forebay._native import exchange
from forebay.block import Block, Cursor, Indices, RowError, concat_blocks
from forebay.block.dense import Dense
from forebay.ops.progress import Progress
from forebay.run import Operator, Pace, Reader, Setup, Site
from forebay.run.ages import Ages
from forebay.run.look_back import LookBack
from forebay.run.pace import ENOUGH_BLOCKS
from forebay.run.picks import fit, group, look_back_part
from forebay.run.row_store import RowStore
from forebay.run.slot_numbers import NUMBER, SlotNumbers
from forebay.run.spilled_rows import SpilledRows
from forebay.run.steps import Shift, Steps

# The input's cursor is kept for one row in so many of the buffer's size, and for no more rows than that: a cursor may
# hold a log, which grows, or a place in each of hundreds of files.
_MARKS = 64


class ShuffleBuffer(Operator):
    """State: the step, and the input's cursor of a row no younger than any in the buffer.

    The buffer's contents are not saved. From the step follow the numbers of the rows in it (see ``steps``);
    they are read again from the input, starting at that cursor. Every row is kept with its number, as a column behind
    its own, so that nothing in memory grows with a buffer that is on disk.
    """

    makes_rows = True

    def __init__(self, site: Site, source: Operator, setup: Setup, size: int, seed: int, each_epoch: bool) -> None:
        super().__init__(site, source)
        self._reader = Reader(source)
        self._size = size
        self._seed = seed
        self._each_epoch = each_epoch
        self._pace = Pace(setup.block_bytes, setup.unit)
        self._spill = setup.spill
        self._lease = setup.ledger.lease(str(site))
        self._store: RowStore | SpilledRows = RowStore(size, self._lease.budget)
        self._places: SlotNumbers | None = None
        self._shift = Shift()  # Of the rounds before this one.
        self._reset(0)

    def _reset(self, epoch: int) -> None:
        self._steps = Steps(self._size, self._seed, epoch if self._each_epoch else 0)
        self._let_go()
        self._store = RowStore(self._size, self._lease.budget)
        self._places = None  # Where the row of each slot is kept, once rows change slots ...
        self._ahead: Indices = np.empty(0, np.int64)  # ... and where those of the next steps are.
        self._ages = Ages(self._size // _MARKS)
        self._marks: deque[tuple[int, Cursor]] = deque()  # Row numbers and their cursors, oldest first.
        self._live = 0  # Slots that hold a row.
        self._read = 0  # Rows of the input read so far, counted from its very start.
        self._total: int | None = None  # Rows of the input, once it has ended.
        self._target: int | None = 0  # The step to begin at, until the buffer is filled.

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Any row of the block that a cursor came with is reached directly; later ones by going on from there."""
        self._shift += self._steps.shift
        self._reset(epoch)
        state = cursor.state or {"step": 0, "rows": 0, "total": None, "first": 0, "in": [None, 0]}
        direct: int = min(cursor.skip, state["rows"])
        self._reader.seek(Cursor.from_json(state["in"]), epoch)
        self._read = state["first"]
        self._total = state["total"]
        self._target = state["step"] + direct
        return cursor.skip - direct

    def pull(self) -> Block | None:
        """The rows of as many steps as make a block."""
        if self._target is not None:
            self._fill(self._target)
            self._target = None
        state = self._state()
        block = self._exchange() if self._total is None else None
        if block is None:
            block = self._drain()
        if block is None:
            return None
        self._pace.observe(block.rows, block.nbytes, 0.0)
        return block.at(Cursor({**state, "rows": block.rows, "total": self._total}))

    def held(self) -> tuple[int, float]:
        """The slots in use, which stay when their rows leave at the end of the input."""
        size = self._store.used_bytes if isinstance(self._store, RowStore) else 0
        return size, 1.0 if self._target is None else min(self._read, self._size) / self._size

    def _exchange(self) -> Block | None:
        """Steps that each take in a new row; None once there are no more."""
        ahead = self._reader.peek()
        if ahead is None:
            self._total = self._read
            return None
        incoming = self._next_rows(self._fitting(self._steps.full(min(ahead.rows, self._pace.rows))))
        assert incoming is not None
        base = self._read - incoming.rows
        numbers = np.arange(base, self._read, dtype=np.int64)
        slots = self._steps.full(incoming.rows)
        touched, places = np.unique(slots, return_inverse=True)
        once = len(touched) == len(slots)
        found, kept = self._take(slots if once else touched)
        rows = kept
        if not once:
            rows = np.empty(len(slots), np.int64)
            exchange(kept, places, numbers, rows)
        last = np.empty(len(touched), np.int64)
        last[places] = numbers
        self._put(touched, last, incoming.take(last - base))
        if not once:
            # Rows that came and left within these steps were never in the store.
            brief = np.flatnonzero(rows >= base)
            places[brief] = np.arange(len(touched), len(touched) + len(brief))
            found = concat_blocks([found, incoming.take(rows[brief] - base)]).take(places)
        self._ages.add(numbers)
        self._left(rows)
        return found

    def _drain(self) -> Block | None:
        """Steps that take nothing in; None when the buffer is empty."""
        if self._live == 0:
            return None
        places = self._shrink(min(self._pace.rows, self._live))
        count = self._fitting(places)
        self._ahead = np.concatenate([places[count:], self._ahead])
        self._live += len(places) - count
        found, rows = self._take(places[:count])
        self._left(rows)
        return found

    def _fitting(self, places: Indices) -> int:
        """How many of the rows that are kept there make a block: they may differ in size from those before."""
        if isinstance(self._store, RowStore):
            return len(places)
        return self._store.fitting(places, ENOUGH_BLOCKS * self._pace.block_bytes)

    def _left(self, rows: Indices) -> None:
        self._steps.advance(rows)
        self._ages.remove(rows)

    def _shrink(self, count: int) -> Indices:
        """Where the rows of the next steps are kept, of which none takes a row in."""
        if self._places is None:
            # In memory there is room for them: the store is no longer to be copied.
            here = isinstance(self._store, RowStore)
            if not here and fit(self._live, self._lease.budget):
                here = self._lease.ask(NUMBER * self._live)
            self._places = SlotNumbers(self._live, None if here else self._spill)
        if len(self._ahead) < count:
            more = count - len(self._ahead)
            if not self._places.nbytes:
                more = min(max(more, group(self._lease.budget)), self._places.live)
            slots = self._steps.shrinking(more, self._places.live, len(self._ahead))
            self._ahead = np.concatenate([self._ahead, self._places.drain(slots)])
        places, self._ahead = self._ahead[:count], self._ahead[count:]
        self._live -= count
        return places

    def _fill(self, target: int) -> None:
        """Read the rows that are in the buffer at step `target`, each into its slot."""
        if target == 0 and self._total is None:
            self._fill_first()
            return
        self._live = self._size if self._total is None else min(self._size, self._total)
        full = target if self._total is None else min(target, self._total - self._live)
        self._fill_again(full + self._live)
        self._steps.seek(full)
        while self._steps.position < target and self._live:
            # What these rows were is not known without reading them, so they still count among the ages.
            count = min(group(self._lease.budget), target - self._steps.position, self._live)
            self._shrink(count)
            self._steps.seek(self._steps.position + count)

    def _fill_again(self, end: int) -> None:
        begin, part = self._read, look_back_part(self._lease.budget)
        with (
            closing(LookBack(self._steps, begin, end, self._spill, part)) as kept,
            Progress(f"{self.site}: filling its buffer again") as progress,
        ):
            lease = self._lease.beside()
            lease.note(kept.nbytes)
            while self._read < end:
                block = self._next_rows(end - self._read)
                if block is None:
                    raise self.site.data_error(
                        self._read, "the input ended before the place where it is to be resumed: it has become shorter"
                    )
                base = self._read - block.rows
                slots, rows = kept.between(base, self._read)
                if len(slots):
                    self._ages.add(rows)
                    self._put(slots, rows, block.take(rows - base))
                progress.update(self._read - begin, f"of {end - begin:,} elements")
            lease.release()

    def _fill_first(self) -> None:
        """At the start row i is in slot i. The buffer is no larger than the input, whatever size was asked for."""
        with Progress(f"{self.site}: filling its buffer") as progress:
            while self._read < self._size:
                block = self._next_rows(self._size - self._read)
                if block is None:
                    self._total = self._read
                    break
                rows = np.arange(self._read - block.rows, self._read)
                self._ages.add(rows)
                self._put(rows, rows, block)
                progress.update(self._read, f"of {self._size:,} elements")
        self._live = self._read

    def _next_rows(self, most: int) -> Block | None:
        block = self._reader.read(most)
        if block is not None:
            if not self._marks or self._read - self._marks[-1][0] >= self._size // _MARKS:
                self._marks.append((self._read, block.cursor))
                if len(self._marks) > _MARKS:
                    # Some rows stay for long. Without every other, a resume may have to read a few rows more.
                    self._marks = deque(list(self._marks)[::2])
            self._read += block.rows
        return block

    def _put(self, slots: Indices, rows: Indices, block: Block) -> None:
        # A buffer that grows is copied once in a while, so that for a moment there are two of it.
        times = 1 if isinstance(self._store, RowStore) and self._store.settled(block) else 2
        # Before they are there a second time.
        if isinstance(self._store, RowStore) and not self._lease.ask(times * (self._store.nbytes + block.nbytes)):
            self._move_to_disk(self._store)
        try:
            self._store.put(slots, Block(block.structure, [*block.columns, Dense(rows)], block.rows))
        except RowError as fault:
            raise self.site.data_error(self._read - block.rows, fault.text) from None
        if isinstance(self._store, RowStore) and not self._lease.ask(times * self._store.nbytes):
            self._move_to_disk(self._store)

    def _take(self, places: Indices) -> tuple[Block, Indices]:
        """The rows that are kept there, and their numbers."""
        block = self._store.take(places)
        numbers = block.columns[-1]
        assert isinstance(numbers, Dense)
        return Block(block.structure, block.columns[:-1], block.rows), numbers.values

    def _move_to_disk(self, rows: RowStore) -> None:
        """The budget has no room for more rows: from now on all of them are on disk."""
        spilled = SpilledRows(self._spill)
        for start in range(0, len(rows), self._pace.rows):
            slots = np.arange(start, min(start + self._pace.rows, len(rows)))
            spilled.put(slots, rows.take(slots))
        rows.close()
        self._store = spilled
        self._lease.release()

    def moved(self) -> tuple[float, float] | None:
        """As the picks were."""
        return (self._shift + self._steps.shift).moved()

    def close(self) -> None:
        """Let go of the rows."""
        self._let_go()
        super().close()

    def _let_go(self) -> None:
        self._store.close()
        if self._places is not None:
            self._places.close()
        self._lease.release()

    def _state(self) -> dict[str, Any]:
        """Where to begin reading again so that every row of the buffer comes by."""
        oldest = self._ages.oldest
        while len(self._marks) > 1 and self._marks[1][0] <= oldest:
            self._marks.popleft()
        first, cursor = self._marks[0] if self._marks else (0, Cursor(None))
        inside = max(oldest - first, 0)
        return {"step": self._steps.position, "first": first + inside, "in": cursor.after(inside).to_json()}
