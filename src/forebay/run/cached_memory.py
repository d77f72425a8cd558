"""A cache in memory as far as the budget allows, and from there on in a file without a name."""

import json
import threading
import weakref
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from forebay.block import START, Block, Cursor, RowError, concat_blocks
from forebay.ledger import Lease, Ledger
from forebay.run.cached import Content, compact, fitting, shared
from forebay.run.operator import Operator, Setup
from forebay.run.spill import Place, SpillFile
from forebay.run.spill_room import SpillStore
from forebay.run.waiting import Waiting, most_waiting

# Of the budget; the other steps have to live too.
SHARE = 0.5
# What a block costs besides its rows, roughly.
_OVERHEAD = 1024
# Blocks of a few rows, which slow functions give, are joined up to this size. Larger ones would make it dear to go
# back to a row in the middle, and no longer make the overhead smaller.
_JOIN_ROWS = 1024
_JOIN_BYTES = 1 << 18


@dataclass(slots=True)
class _InMemory:
    rows: int
    cursor: Cursor
    layout: str
    block: Block

    def read(self) -> Block:
        return self.block


@dataclass(slots=True)
class _OnDisk:
    # There are as many as the data has megabytes, so they are kept small: a cursor's text takes a fifth of its objects.
    text: bytes
    layout: str
    file: SpillFile
    place: Place
    structure: int

    @property
    def rows(self) -> int:
        return self.place.rows

    @property
    def cursor(self) -> Cursor:
        return Cursor.from_json(json.loads(self.text))

    def read(self) -> Block:
        return self.file.read(self.place, self.structure, START)


class MemoryContent(Content):
    """Freed with the last operator or plan that refers to it."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._starts: list[int] = []
        self._kept: list[_InMemory | _OnDisk] = []
        self._bytes = 0
        # Who had no room has none later: what becomes free belongs to steps that come and go.
        self._refused: weakref.WeakSet[Ledger] = weakref.WeakSet()
        self._file: tuple[SpillStore, SpillFile] | None = None
        self._waiting = Waiting()
        self._leases: weakref.WeakKeyDictionary[Ledger, weakref.ref[Lease]] = weakref.WeakKeyDictionary()
        # The memory outlasts the iterators that filled it, and so does its place in their budget.
        self._lease: Lease | None = None

    def enter(self, user: Operator, setup: Setup) -> Any:
        """What is in memory counts in every budget under which it is used."""
        super().enter(user, setup)
        with self._lock:
            return self._lease_on(setup.ledger)

    def _lease_on(self, ledger: Ledger) -> Lease:
        known = self._leases.get(ledger)
        lease = known() if known is not None else None
        if lease is None:
            lease = ledger.lease("cache")
            lease.note(self._bytes)
            self._leases[ledger] = weakref.ref(lease)
        return lease

    @property
    def waiting(self) -> int:
        """Those that memory had no room for."""
        return self._waiting.nbytes

    def held(self) -> int:
        """Bytes of the blocks that are not in the file."""
        return self._bytes + self.waiting

    def read(self, row: int, layout: str) -> Block | None:
        """A view of what is in memory, or a block read from the file."""
        with self._lock:
            if row >= self.rows:
                return None
            if self._waiting.blocks and row >= self._waiting.start:
                return self._waiting.read(row, layout)
            at = bisect_right(self._starts, row) - 1
            start, kept = self._starts[at], self._kept[at]
        return kept.read().at(fitting(kept.cursor, kept.layout, layout, start)).slice(row - start, kept.rows)

    def add(self, row: int, block: Block, layout: str, setup: Setup) -> Block:
        """In memory if there is room."""
        if row != self.rows:
            return block
        block = compact(block)
        with self._lock:
            if row != self.rows or self.complete:
                return block
            kept = shared(block)
            if not self._keep(kept, layout, setup):
                self._write_later(kept, layout, setup)
            self.rows += block.rows
        return kept

    def _write_later(self, block: Block, layout: str, setup: Setup) -> None:
        if self._file is None or self._file[0] is not setup.spill:
            self._file = (setup.spill, SpillFile(setup.spill))
        if self._waiting.is_due(block, layout, setup):
            self._write()
        self._waiting.add(self.rows, block, layout)

    def _write(self) -> None:
        """Have on disk what waits for it. If that fails, it goes on waiting."""
        if not self._waiting.blocks:
            return
        assert self._file is not None
        file, block = self._file[1], self._waiting.together()
        place, structure = file.append(block)
        text = json.dumps(block.cursor.to_json(), separators=(",", ":")).encode()
        self._starts.append(self._waiting.start)
        self._kept.append(_OnDisk(text, self._waiting.layout, file, place, structure))
        self._waiting.clear()

    def finish(self, row: int) -> None:
        """Nothing has to wait any more."""
        with self._lock:
            self._write()
            super().finish(row)

    def _keep(self, block: Block, layout: str, setup: Setup) -> bool:
        size = self._bytes + block.nbytes + _OVERHEAD
        ledger = setup.ledger
        lease = self._lease_on(ledger)
        # With those that are still to be written for a plan with a smaller budget.
        size += self._waiting.nbytes
        # What does not fit any more will wait in memory too before it is written.
        room = SHARE * ledger.budget - most_waiting(setup)
        if ledger in self._refused or size > room or not lease.ask(size):
            self._refused.add(ledger)
            return False
        for start, earlier in zip(self._waiting.starts, self._waiting.blocks):
            self._starts.append(start)
            self._kept.append(_InMemory(earlier.rows, earlier.cursor, self._waiting.layout, earlier))
        self._waiting.clear()
        self._lease = lease
        self._starts.append(self.rows)
        self._kept.append(_InMemory(block.rows, block.cursor, layout, block))
        self._bytes = size
        self._join()
        for other in self._leases.values():
            held = other()
            if held is not None:
                held.note(self._bytes)
        return True

    def _join(self) -> None:
        """Join the last blocks as long as each is no larger than the next, so that a row is copied a few times only."""
        while len(self._kept) > 1:
            first, second = self._kept[-2:]
            rows = first.rows + second.rows
            if first.rows > second.rows or rows > _JOIN_ROWS or first.layout != second.layout:
                return
            if isinstance(first, _OnDisk) or isinstance(second, _OnDisk):
                return
            if first.block.nbytes + second.block.nbytes > _JOIN_BYTES:
                return
            try:
                joined = shared(concat_blocks([first.block, second.block]))
            except RowError:
                return
            self._kept[-2:] = [_InMemory(rows, first.cursor, first.layout, joined)]
            self._starts.pop()
            self._bytes -= _OVERHEAD

    def frontier(self, layout: str) -> tuple[int, Cursor]:
        """Behind the last row."""
        with self._lock:
            if self._waiting.blocks:
                return self.rows, self._waiting.end(layout)
            if not self._kept:
                return 0, START
            last = self._kept[-1]
            return self.rows, fitting(last.cursor, last.layout, layout, self._starts[-1]).after(last.rows)
