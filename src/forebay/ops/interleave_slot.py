"""One place in the cycle of ``interleave``: an inner dataset, the rows of it at hand, and the way to more."""

import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from forebay.block import Block, Cursor, Uniform
from forebay.block.dense import Dense
from forebay.errors import FileError, FunctionError
from forebay.ledger import UNSEEN, Lease
from forebay.ops.inner import Inner, check_inner
from forebay.run import Site
from forebay.run.hesitation import Hesitation
from forebay.run.later import Later
from forebay.run.meter import Meter
from forebay.uninterrupted import take

# Bytes above which rows are fetched and put in order as they are needed: each has about a buffer of its own.
_LARGE = 1 << 16
# Blocks of more than this hold large rows, however many small ones are with them: slots ask for less.
_BULKY = 1 << 20


class Supply:
    """What the slots of an operator share: how rows are fetched, and what they are checked against.

    Without `submit` a slot fetches rows when it is asked for them. With it, `submit(fetch)` has another thread call
    `fetch`, one call per slot at a time, and there is always one block on the way while another is in use: memory
    is bounded by two blocks a slot.

    That thread leaves its rows in the slot first and a notice in a queue second. So who finds nothing in a slot and
    then waits for a notice misses none; and a SimpleQueue, unlike a Condition, is never left locked by a Ctrl-C.
    """

    def __init__(self, site: Site, meter: Meter, lease: Lease) -> None:
        self.site = site
        self.meter = meter
        self._lease = lease
        self._in_use = 0  # Bytes of blocks of whose slots the next one is on the way already,
        self._on_the_way = 0  # how many are on the way,
        self._largest = 0  # and how large they may be: as the largest so far.
        self.uniform = Uniform()
        self.submit: Callable[[Callable[[], None]], object] | None = None
        self.hesitation: Hesitation | None = None
        self._notices: SimpleQueue[None] = SimpleQueue()

    def afford(self) -> bool:
        """Whether the budget has room for one block more than is needed. One may always be on the way."""
        if not self._largest and (self._on_the_way + 1) * UNSEEN > self._lease.budget:
            return not self._on_the_way
        return not self._on_the_way or self._lease.ask(self._in_use + (self._on_the_way + 1) * self._largest)

    def sent(self, in_use: int) -> None:
        """A block is on the way to a slot that has one of so many bytes."""
        self._count(1, in_use)

    def came(self, size: int) -> None:
        """It is there. From now on the inner dataset counts it, as long as it is the last one it gave."""
        self._largest = max(self._largest, size)
        self._count(-1, 0)

    def used(self, size: int) -> None:
        """A block of so many bytes is used up, behind which another one was on the way."""
        self._count(0, -size)

    def _count(self, on_the_way: int, in_use: int) -> None:
        self._on_the_way += on_the_way
        self._in_use += in_use
        self._lease.note(self._in_use + self._on_the_way * self._largest)

    def notify(self) -> None:
        """Say that a slot has got something."""
        self._notices.put(None)

    def wait(self) -> None:
        """Until a slot has got something, or had before; look at the slots and, if need be, wait again."""
        began = time.perf_counter()
        take(self._notices)
        self.meter.waited += time.perf_counter() - began
        self.forget()

    def forget(self) -> None:
        """Throw away the notices there are: who waits looks at the slots first."""
        while not self._notices.empty():
            self._notices.get()


class Slot:
    """Used by one thread, except for ``_fetch``."""

    def __init__(self, supply: Supply, inner: Inner, at: Cursor) -> None:
        self._supply = supply
        self._inner = inner
        self._at = at  # Of the next row while none is at hand.
        self._blocks: deque[Block] = deque()  # Two of them only where the first has too few rows left.
        self._given = 0  # Rows of the first block that have been read,
        self._counted = 0  # and bytes of it that the budget knows of.
        self.rows = 0
        """How many are at hand."""
        self.stays = True
        """Whether they, and all before them, stay in their buffers, whatever order they are put in."""
        self.large = 0
        """Bytes of a row, if they are large."""
        self._differ = False  # Whether rows at hand may differ in size.
        self._asked = False
        self._outcome: tuple[Block | None, BaseException | None] | None = None
        self._spent = (0.0, 0.0)  # Seconds that the outcome took, and of processor time.
        self._begun = False
        self.ended = False
        self._error: Later | None = None
        self.first: Cursor | None = None
        """Where the rows began, once some have come, if they come in a free order: it holds the log of that."""

    @property
    def error(self) -> Exception | None:
        """Why there are no more rows, if that is not their end."""
        return None if self._error is None else self._error.error

    @property
    def waiting(self) -> bool:
        """Whether rows are there that nobody has asked for."""
        return self.rows > 0 or self._outcome is not None

    @property
    def origin(self) -> Cursor:
        """Of the input's row that the inner dataset was made of."""
        return self._inner.origin

    @property
    def index(self) -> int:
        """The number of that row."""
        return self._inner.index

    @property
    def unmade(self) -> bool:
        """Whether there is no dataset because the function failed for that row."""
        return not self._inner.made and isinstance(self.error, (FunctionError, FileError))

    def leave_out(self) -> None:
        """Be a dataset without rows."""
        self._error, self.ended = None, True

    def state(self) -> dict[str, Any]:
        """What it takes to make this slot again. One at its end stays until its turn comes, and has no place."""
        at = self._blocks[0].cursor.after(self._given) if self._blocks else self._at
        over = self.ended and not self._blocks
        return {"index": self.index, "input": self.origin.to_json(), "at": None if over else at.to_json()}

    def ask(self, needed: bool = False) -> None:
        """Have the next rows fetched by another thread, where there is one; unless `needed`, only if there is room."""
        supply = self._supply
        if supply.submit is None or self._asked or self.ended or not (needed or supply.afford()):
            return
        self._asked = True
        self._counted = self._blocks[0].nbytes if self._blocks else 0
        supply.sent(self._counted)
        supply.submit(self._fetch)

    def ready(self, wait: bool = True, least: int = 1) -> int:
        """How many rows are at hand; 0 at the end, after an error, or if none are there yet and it may not wait.

        Where no other thread fetches rows, one more block is fetched if there are fewer than `least`. Only of rows that
        stay in their buffers, and of which many fit into a block: those that are copied into a block of the output need
        not all be there at once, and of large ones each takes a buffer.
        """
        wanted = least if self._supply.submit is None and self.stays and not self.large else 1
        if self.rows < wanted and not self.ended and self._error is None:
            if self._supply.submit is None:
                # The time is in the caller's already.
                hesitation = self._supply.hesitation
                began = time.perf_counter() if hesitation else 0.0
                self._receive(*self._next())
                if hesitation:
                    hesitation.observe(time.perf_counter() - began)
                return self.rows
            self.ask(needed=wait)
            while wait and self._outcome is None:
                self._supply.wait()
            outcome, self._outcome = self._outcome, None
            if outcome is not None:
                self._answered(0 if outcome[0] is None else outcome[0].nbytes)
                if wait:
                    # Otherwise it may be about a slot that the caller has looked at already.
                    self._supply.forget()
                self._supply.meter.worked += self._spent[0]
                self._supply.meter.cpu += self._spent[1]
                self._receive(*outcome)
        return self.rows

    def read(self, rows: int) -> list[Block]:
        """So many of the rows at hand."""
        parts = []
        self.rows -= rows
        while rows:
            block = self._blocks[0]
            start, stop = self._given, min(self._given + rows, block.rows)
            parts.append(block.slice(start, stop))
            rows -= stop - start
            self._given = stop
            if stop == block.rows:
                self._at = block.cursor.after(stop)
                self._blocks.popleft()
                self._given = 0
                self._uncount()
        return parts

    @property
    def uneven(self) -> int:
        """Bytes of the rows at hand, at the most, if these differ in size and it matters how many of them go together.

        It does if they are copied to be put in order, or if some are large: those that have been handed on stay there
        for whoever has them, while others are read.
        """
        if not self._differ:
            return 0
        sizes = [block.nbytes for block in self._blocks]
        return sum(sizes) if sizes and (not self.stays or max(sizes) > _BULKY) else 0

    def size(self, rows: int) -> int:
        """Bytes of so many of the rows at hand."""
        size, start = 0, self._given
        for block in self._blocks:
            stop = min(start + rows, block.rows)
            size += block.slice(start, stop).nbytes
            rows -= stop - start
            start = 0
            if not rows:
                break
        return size

    def _uncount(self) -> None:
        if self._counted:
            self._supply.used(self._counted)
            self._counted = 0

    def _answered(self, size: int) -> None:
        if self._asked:
            self._asked = False
            self._supply.came(size)

    def abandon(self) -> None:
        """Have a thread that fetches from it end soon."""
        self._inner.abandon()

    def close(self) -> None:
        """Release the inner dataset; no thread may be fetching from it."""
        self._answered(0)
        self._uncount()
        self._inner.close()
        # An error that nobody asked for leads to blocks that were in the making, and back to this.
        self._outcome = None

    def _fetch(self) -> None:
        began, cpu = time.perf_counter(), time.thread_time()
        outcome = self._next()
        self._spent = time.perf_counter() - began, time.thread_time() - cpu
        self._outcome = outcome
        # Or an error would lead to itself by way of this frame.
        del outcome
        self._supply.notify()

    def _next(self) -> tuple[Block | None, BaseException | None]:
        try:
            return self._inner.next(), None
        except BaseException as error:
            return None, error

    def _receive(self, block: Block | None, failure: BaseException | None) -> None:
        if isinstance(failure, Exception):
            self._error = Later(failure)
        elif failure is not None:
            raise failure
        elif block is None:
            self.ended = True
        else:
            try:
                check_inner(self._supply.uniform, self._supply.site, self.index, block)
            except Exception as error:
                self._error = Later(error)
                return
            if not self._begun:
                self._begun = True
                self.first = block.cursor if self._inner.free else None
            self.stays = self.stays and all(column.stays for column in block.columns)
            self._differ = not all(type(column) is Dense for column in block.columns)
            size = block.nbytes // block.rows
            self.large = size if size > _LARGE else 0
            self._blocks.append(block)
            self.rows += block.rows
            self.ask()
