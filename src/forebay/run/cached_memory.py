"""A cache in memory as far as the budget allows, and from there on in a file without a name."""

import threading
import weakref
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from forebay.block import START, Block, Cursor, RowError, concat_blocks
from forebay.forks import is_torn, tell_children
from forebay.ledger import Lease, Ledger
from forebay.run.cached import Content, compact, fitting, shared
from forebay.run.operator import Operator, Setup
from forebay.run.places import Place
from forebay.run.spill import SpillFile
from forebay.run.spill_room import SpillStore
from forebay.run.stretches import Stretch, Stretches
from forebay.run.waiting import Waiting, most_waiting

# Of the budget; the other steps have to live too.
SHARE = 0.5
TOLD_PART = 16
"""Of what is on disk: no more than such a part is not rows, but what tells of them."""
# What a block costs besides its rows, roughly.
_OVERHEAD = 1024
# Blocks of a few rows, which slow functions give, are joined up to this size. Larger ones would make it dear to go
# back to a row in the middle, and no longer make the overhead smaller.
_JOIN_ROWS = 1024
_JOIN_BYTES = 1 << 18


@dataclass(slots=True)
class _InMemory:
    start: int
    layout: str
    block: Block


class _OnDisk:
    """Where rows lie in files: a few numbers for each record, of which there are as many as the data has megabytes."""

    def __init__(self) -> None:
        self.starts = array("q")
        self._places = array("q")
        self._from = array("i")
        # One for every iterator that has written anything.
        self._sources: list[tuple[SpillFile, str]] = []

    @property
    def nbytes(self) -> int:
        return sum(numbers.itemsize * len(numbers) for numbers in (self.starts, self._places, self._from))

    def append(self, start: int, block: Block, file: SpillFile, layout: str) -> None:
        place = array("q", file.append(block))
        new = [] if self._sources and self._sources[-1] == (file, layout) else [(file, layout)]
        number = array("i", [len(self._sources) + len(new) - 1])
        starts = array("q", [start])
        # From here on nothing is called, as in ``MemoryContent``.
        self._places += place
        self._sources += new
        self._from += number
        self.starts += starts

    def files(self) -> list[SpillFile]:
        """Each of them once."""
        return list({id(file): file for file, _ in self._sources}.values())

    def following(self, number: int, start: int) -> Stretch | None:
        """Where the record behind that one is, if it begins with the row `start`."""
        if number + 1 >= len(self.starts) or self.starts[number + 1] != start:
            return None
        place, file, _ = self.record(number + 1)
        return file.stretch(place)

    def record(self, number: int) -> tuple[Place, SpillFile, str]:
        """Where it is, in which file, and the layout that its cursor belongs to."""
        fields = len(Place._fields)
        place = Place(*self._places[number * fields : (number + 1) * fields])
        return place, *self._sources[self._from[number]]


class MemoryContent(Content):
    """Freed with the last operator or plan that refers to it.

    Iterations that are interrupted anywhere leave it to later ones. So what is to be kept is made ready first, and then
    noted without a call, so that no interrupt can fall between.
    """

    def __init__(self) -> None:
        super().__init__()
        self._begin()
        tell_children(self)

    def _begin(self) -> None:
        self.rows, self.complete = 0, False
        self._lock = threading.Lock()
        self._kept: list[_InMemory] = []
        self._written = _OnDisk()
        # Where the input has the row behind the last that is kept, for plans of that layout.
        self._end: tuple[Cursor, str] = (START, "")
        self._bytes = 0
        # Who had no room has none later: what becomes free belongs to steps that come and go.
        self._refused: weakref.WeakSet[Ledger] = weakref.WeakSet()
        self._file: tuple[SpillStore, SpillFile] | None = None
        self._waiting = Waiting()
        self._leases: weakref.WeakKeyDictionary[Ledger, weakref.ref[Lease]] = weakref.WeakKeyDictionary()
        # The memory outlasts the iterators that filled it, and so does its place in their budget.
        self._lease: Lease | None = None

    def in_child(self) -> None:
        """What its parent has kept is here too, unless a thread was adding to it just now."""
        super().in_child()
        if is_torn(self._lock):
            self._begin()

    def enter(self, user: Operator, setup: Setup) -> Any:
        """What is in memory counts in every budget under which it is used."""
        super().enter(user, setup)
        setup.spill.reads(self)
        with self._lock:
            return self._lease_on(setup.ledger)

    def on_disk_beside(self, store: SpillStore) -> int:
        """Of the files that other iterations have written."""
        with self._lock:
            return sum(len(file) for file in self._written.files() if file.store is not store)

    def _lease_on(self, ledger: Ledger) -> Lease:
        known = self._leases.get(ledger)
        lease = known() if known is not None else None
        if lease is None:
            lease = ledger.lease("cache")
            lease.note(self._held)
            self._leases[ledger] = weakref.ref(lease)
        return lease

    @property
    def waiting(self) -> int:
        """Those that memory had no room for."""
        return self._waiting.nbytes

    def held(self) -> int:
        """Bytes of the blocks that are not in the file."""
        return self._held + self.waiting

    @property
    def _held(self) -> int:
        return self._bytes + self._written.nbytes

    def _note(self) -> None:
        for each in self._leases.values():
            lease = each()
            if lease is not None:
                lease.note(self._held)

    def read(self, row: int, layout: str, stretches: Stretches) -> Block | None:
        """A view of what is in memory, or a block read from the file."""
        with self._lock:
            if row >= self.rows:
                return None
            if self._waiting.blocks and row >= self._waiting.start:
                return self._waiting.read(row, layout)
            kept = bisect_right(self._kept, row, key=_start) - 1
            written = bisect_right(self._written.starts, row) - 1
            start = self._written.starts[written] if written >= 0 else -1
            if kept >= 0 and self._kept[kept].start > start:
                start, known, block = self._kept[kept].start, self._kept[kept].layout, self._kept[kept].block
                return block.at(fitting(block.cursor, known, layout, start)).slice(row - start, block.rows)
            place, file, known = self._written.record(written)
            then = self._written.following(written, start + place.rows)
        block = file.read_next(place, stretches, then)
        return block.at(fitting(block.cursor, known, layout, start)).slice(row - start, block.rows)

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
        return kept

    def _write_later(self, block: Block, layout: str, setup: Setup) -> None:
        if self._file is None or self._file[0] is not setup.spill:
            self._file = (setup.spill, SpillFile(setup.spill, inherited=True))
        if self._waiting.is_due(block, layout, setup):
            self._write()
        self._waiting.add(self.rows, block, layout)
        self.rows += block.rows

    def _write(self) -> None:
        """Have on disk what waits for it. If that fails, it goes on waiting."""
        if not self._waiting.blocks:
            return
        assert self._file is not None
        block, layout = self._waiting.together(), self._waiting.layout
        end, empty = (self._waiting.end(layout), layout), Waiting()
        self._written.append(self._waiting.start, block, self._file[1], layout)
        self._end, self._waiting = end, empty
        self._note()

    def finish(self, row: int) -> None:
        """Nothing has to wait any more."""
        with self._lock:
            self._write()
            super().finish(row)

    def _keep(self, block: Block, layout: str, setup: Setup) -> bool:
        size = self._held + block.nbytes + _OVERHEAD
        ledger = setup.ledger
        lease = self._lease_on(ledger)
        # With those that are still to be written for a plan with a smaller budget.
        size += self._waiting.nbytes
        # What does not fit any more will wait in memory too before it is written.
        room = SHARE * ledger.budget - most_waiting(setup)
        if ledger in self._refused or size > room or not lease.ask(size):
            self._refused.add(ledger)
            return False
        waited = zip(self._waiting.starts, self._waiting.blocks)
        kept = [_InMemory(start, self._waiting.layout, earlier) for start, earlier in waited]
        kept.append(_InMemory(self.rows, layout, block))
        end, empty = (block.cursor.after(block.rows), layout), Waiting()
        nbytes = size - self._written.nbytes
        self._kept += kept
        self._end, self._waiting = end, empty
        self._bytes, self._lease = nbytes, lease
        self.rows += block.rows
        self._join()
        self._note()
        return True

    def _join(self) -> None:
        """Join the last blocks as long as each is no larger than the next, so that a row is copied a few times only."""
        while len(self._kept) > 1:
            first, second = self._kept[-2:]
            rows = first.block.rows + second.block.rows
            if first.block.rows > second.block.rows or rows > _JOIN_ROWS or first.layout != second.layout:
                return
            if first.start + first.block.rows < second.start:
                # What lies between them is on disk.
                return
            if first.block.nbytes + second.block.nbytes > _JOIN_BYTES:
                return
            try:
                joined = shared(concat_blocks([first.block, second.block]))
            except RowError:
                return
            kept = [_InMemory(first.start, first.layout, joined)]
            self._kept[-2:] = kept
            self._bytes -= _OVERHEAD

    def frontier(self, layout: str) -> tuple[int, Cursor]:
        """Behind the last row."""
        with self._lock:
            if self._waiting.blocks:
                return self.rows, self._waiting.end(layout)
            cursor, known = self._end
            return self.rows, fitting(cursor, known, layout, self.rows)


def _start(kept: _InMemory) -> int:
    return kept.start
