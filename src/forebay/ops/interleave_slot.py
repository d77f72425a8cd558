"""One place in the cycle of ``interleave``: an inner dataset, the rows of it at hand, and the way to more."""

import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from forebay.block import Block, Cursor, Uniform
from forebay.ops.inner import Inner, check_inner
from forebay.run import Site
from forebay.run.meter import Meter
from forebay.run.uninterrupted import take


class Supply:
    """What the slots of an operator share: how rows are fetched, and what they are checked against.

    Without `submit` a slot fetches rows when it is asked for them. With it, `submit(fetch)` has another thread call
    `fetch`, one call per slot at a time, and there is always one block on the way while another is in use: memory
    is bounded by two blocks a slot.

    That thread leaves its rows in the slot first and a notice in a queue second. So who finds nothing in a slot and
    then waits for a notice misses none; and a SimpleQueue, unlike a Condition, is never left locked by a Ctrl-C.
    """

    def __init__(self, site: Site, meter: Meter) -> None:
        self.site = site
        self.meter = meter
        self.uniform = Uniform()
        self.submit: Callable[[Callable[[], None]], object] | None = None
        self._notices: SimpleQueue[None] = SimpleQueue()

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
        self._block: Block | None = None
        self._given = 0  # Rows of the block that have been read.
        self._asked = False
        self._outcome: tuple[Block | None, BaseException | None] | None = None
        self._spent = (0.0, 0.0)  # Seconds that the outcome took, and of processor time.
        self._begun = False
        self.ended = False
        self.error: Exception | None = None
        self.first: Cursor | None = None
        """Where the rows began, once some have come, if they come in a free order: it holds the log of that."""

    @property
    def waiting(self) -> bool:
        """Whether rows are there that nobody has asked for."""
        return self._block is not None or self._outcome is not None

    @property
    def origin(self) -> Cursor:
        """Of the input's row that the inner dataset was made of."""
        return self._inner.origin

    @property
    def index(self) -> int:
        """The number of that row."""
        return self._inner.index

    def state(self) -> dict[str, Any]:
        """What it takes to make this slot again. One at its end stays until its turn comes, and has no place."""
        at = self._at if self._block is None else self._block.cursor.after(self._given)
        return {"index": self.index, "input": self.origin.to_json(), "at": None if self.ended else at.to_json()}

    def ask(self) -> None:
        """Have the next rows fetched by another thread, where there is one."""
        submit = self._supply.submit
        if submit is not None and not self._asked and not self.ended:
            self._asked = True
            submit(self._fetch)

    def ready(self, wait: bool = True) -> int:
        """How many rows are at hand; 0 at the end, after an error, or if none are there yet and it may not wait."""
        if self._block is None and not self.ended and self.error is None:
            if self._supply.submit is None:
                self._fetch()
            self.ask()
            while wait and self._outcome is None:
                self._supply.wait()
            outcome, self._outcome = self._outcome, None
            if outcome is not None:
                self._asked = False
                self._supply.forget()
                if self._supply.submit is not None:
                    # Otherwise the time is in the caller's already.
                    self._supply.meter.worked += self._spent[0]
                    self._supply.meter.cpu += self._spent[1]
                self._receive(*outcome)
        return 0 if self._block is None else self._block.rows - self._given

    def read(self, rows: int) -> Block:
        """So many of the rows at hand."""
        block = self._block
        assert block is not None
        start, self._given = self._given, self._given + rows
        if self._given == block.rows:
            self._at = block.cursor.after(block.rows)
            self._block = None
        return block.slice(start, start + rows)

    def close(self) -> None:
        """Release the inner dataset; no thread may be fetching from it."""
        self._inner.close()

    def _fetch(self) -> None:
        block: Block | None = None
        failure: BaseException | None = None
        began, cpu = time.perf_counter(), time.thread_time()
        try:
            block = self._inner.next()
        except BaseException as error:
            failure = error
        self._spent = time.perf_counter() - began, time.thread_time() - cpu
        self._outcome = (block, failure)
        self._supply.notify()

    def _receive(self, block: Block | None, failure: BaseException | None) -> None:
        if isinstance(failure, Exception):
            self.error = failure
        elif failure is not None:
            raise failure
        elif block is None:
            self.ended = True
        else:
            try:
                check_inner(self._supply.uniform, self._supply.site, self.index, block)
            except Exception as error:
                self.error = error
                return
            if not self._begun:
                self._begun = True
                self.first = block.cursor if self._inner.free else None
            self._block, self._given = block, 0
            self.ask()
