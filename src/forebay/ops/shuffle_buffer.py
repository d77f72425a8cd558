"""A shuffle buffer that holds rows, for inputs that cannot be read by number."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from forebay._native import drain
from forebay.block import Block, Cursor, Indices, RowError, concat_blocks
from forebay.run import Operator, Pace, Reader, Setup, Site
from forebay.run.picks import Picks
from forebay.run.row_store import RowStore
from forebay.run.spilled_rows import SpilledRows

# The input's cursor is kept for one row in so many of the buffer's size: a cursor may hold a log, which grows.
_MARKS = 64
# Bytes of a row's number, which stays in memory when the row does not.
_NUMBER = 8


class ShuffleBuffer(Operator):
    """State: the step, and the input's cursor of a row no younger than any in the buffer.

    The buffer's contents are not saved. From the step follow the numbers of the rows in it (see ``picks``);
    they are read again from the input, starting at that cursor.
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
        self._store: RowStore | SpilledRows = RowStore()
        self._reset(0)

    def _reset(self, epoch: int) -> None:
        self._picks = Picks(self._size, self._seed, epoch if self._each_epoch else 0)
        self._store.close()
        self._store = RowStore()
        self._lease.release()
        self._marks: deque[tuple[int, Cursor]] = deque()  # Row numbers and their cursors, oldest first.
        self._read = 0  # Rows of the input read so far, counted from its very start.
        self._total: int | None = None  # Rows of the input, once it has ended.
        self._oldest = 0  # No row in the buffer has a lower number than this ...
        self._next_look = 0  # ... and it is worth looking again after this step.
        self._target: int | None = 0  # The step to begin at, until the buffer is filled.
        self._shrinking = False
        self._places: Indices | None = None  # Slot of the store for each slot of the buffer, if the picks have no room.

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Any row of the block that a cursor came with is reached directly; later ones by going on from there."""
        self._reset(epoch)
        state = cursor.state or {"step": 0, "rows": 0, "total": None, "first": 0, "in": [None, 0]}
        direct: int = min(cursor.skip, state["rows"])
        self._reader.seek(Cursor.from_json(state["in"]), epoch)
        self._read = self._oldest = state["first"]
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
        incoming = self._next_rows(self._pace.rows)
        if incoming is None:
            self._total = self._read
            return None
        base = self._read - incoming.rows
        rows, slots = self._picks.exchange(incoming.rows)
        old = rows < base
        parts = []
        if old.any():
            parts.append(self._store.take(slots[old]))
        if not old.all():
            parts.append(incoming.take(rows[~old] - base))
        order = np.argsort(np.argsort(~old, kind="stable"), kind="stable") if len(parts) == 2 else None
        block = concat_blocks(parts)
        touched = np.unique(slots)
        self._put(touched, incoming.take(self._picks.buffer[touched] - base))
        return block if order is None else block.take(order)

    def _drain(self) -> Block | None:
        """Steps that take nothing in; None when the buffer is empty."""
        live = len(self._picks.buffer)
        if live == 0:
            return None
        if not self._shrinking:
            self._shrinking = True
            self._places = None if self._picks.note_places() else np.arange(live, dtype=np.int64)
        slots = self._picks.drain(min(self._pace.rows, live))[1]
        if self._places is None:
            return self._store.take(slots)
        places = np.empty(len(slots), np.int64)
        drain(self._places, slots, places)
        self._places = self._places[: live - len(slots)]
        return self._store.take(places)

    def _fill(self, target: int) -> None:
        """Read the rows that are in the buffer at step `target`, each into its slot."""
        if target == 0 and self._total is None:
            self._fill_first()
            return
        self._picks.seek(target, self._total)
        between = self._picks.between if self._picks.sort_rows() else _sorted(self._picks.buffer)
        end = target + self._size if self._total is None else self._total
        while self._read < end:
            block = self._next_rows(end - self._read)
            if block is None:
                break
            base = self._read - block.rows
            slots, rows = between(base, self._read)
            if len(slots):
                self._put(slots, block.take(rows - base))
        if self._picks.sorted:
            self._picks.unsort_rows()
        if self._read < end:
            raise self.site.data_error(
                self._read, "the input ended before the place where it is to be resumed: it has become shorter"
            )

    def _fill_first(self) -> None:
        """At the start row i is in slot i. The buffer is no larger than the input, whatever size was asked for."""
        while self._read < self._size:
            block = self._next_rows(self._size - self._read)
            if block is None:
                self._total = self._read
                break
            self._put(np.arange(self._read - block.rows, self._read), block)
        self._picks.seek(0, self._total)

    def _next_rows(self, most: int) -> Block | None:
        block = self._reader.read(most)
        if block is not None:
            if not self._marks or self._read - self._marks[-1][0] >= self._size // _MARKS:
                self._marks.append((self._read, block.cursor))
            self._read += block.rows
        return block

    def _put(self, slots: Indices, block: Block) -> None:
        try:
            self._store.put(slots, block)
        except RowError as fault:
            raise self.site.data_error(self._read - block.rows, fault.text) from None
        # A buffer that grows is copied once in a while, so that for a moment there are two of it.
        if isinstance(self._store, RowStore):
            if not self._lease.ask(2 * self._store.nbytes + _NUMBER * len(self._store)):
                self._move_to_disk(self._store)
        else:
            self._lease.note(self._store.nbytes + _NUMBER * len(self._store))

    def _move_to_disk(self, rows: RowStore) -> None:
        """The budget has no room for more rows: from now on all of them are on disk."""
        spilled = SpilledRows(self._spill)
        for start in range(0, len(rows), self._pace.rows):
            slots = np.arange(start, min(start + self._pace.rows, len(rows)))
            spilled.put(slots, rows.take(slots))
        rows.close()
        self._store = spilled
        self._lease.note(spilled.nbytes + _NUMBER * len(spilled))

    def moved(self) -> float | None:
        """As the picks were."""
        return self._picks.moved

    def close(self) -> None:
        """Let go of the rows."""
        self._store.close()
        self._lease.release()
        super().close()

    def _state(self) -> dict[str, Any]:
        """Where to begin reading again so that every row of the buffer comes by."""
        step = self._picks.position
        if step >= self._next_look and len(self._picks.buffer):
            # Looking costs one pass over the buffer. An older answer only means reading a little more on resume.
            self._oldest = self._picks.oldest
            self._next_look = step + max(self._size // 4, 1)
        while len(self._marks) > 1 and self._marks[1][0] <= self._oldest:
            self._marks.popleft()
        first, cursor = self._marks[0] if self._marks else (0, Cursor(None))
        inside = max(self._oldest - first, 0)
        return {"step": step, "first": first + inside, "in": cursor.after(inside).to_json()}


def _sorted(buffer: Indices) -> Callable[[int, int], tuple[Indices, Indices]]:
    """As ``Picks.between``, for buffers too large for that."""
    order = np.argsort(buffer, kind="stable")

    def between(low: int, high: int) -> tuple[Indices, Indices]:
        begin, end = np.searchsorted(buffer, [low, high], sorter=order)
        return order[begin:end], buffer[order[begin:end]]

    return between
