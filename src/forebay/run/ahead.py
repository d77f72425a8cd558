"""A thread that pulls blocks before they are asked for."""

import threading
from contextvars import copy_context
from queue import SimpleQueue

from forebay.block import Block
from forebay.ledger import Lease
from forebay.run.cpus import share_heaps
from forebay.run.leaving import join
from forebay.run.operator import Operator
from forebay.run.tracebacks import let_go
from forebay.uninterrupted import take, uninterrupted


class Ahead:
    """Pulls from an operator on a thread until enough is in hand, the operator ends or fails, or it is told to stop.

    The two sides share nothing but two queues, blocks one way and receipts the other. A SimpleQueue is never left
    half-way by a Ctrl-C, as a Condition can be: its Python code may be interrupted while it holds the lock.

    Args:
        source: used by the thread alone from now on, until ``stop`` has returned.
        most_rows: so many rows in hand are enough; one block is always worked on.
        most_bytes: so many bytes are enough.
        name: what to call the thread.
        lease: what blocks in hand are counted against; one that is refused waits until others have been taken.
        up_to: to how many bytes that may grow by itself: where nothing was in hand although there was time to make
            more, twice as much would have been there.
    """

    def __init__(
        self,
        source: Operator,
        most_rows: int | None,
        most_bytes: int,
        name: str,
        lease: Lease,
        up_to: int | None = None,
    ) -> None:
        self._source = source
        self._lease = lease
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._made: SimpleQueue[Block | None] = SimpleQueue()
        self._taken: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self._up_to = up_to or most_bytes
        self._was_full = False
        self._stopping = False
        self.in_hand = (0, 0)  # Rows and bytes, as the thread last knew them.
        self.error: BaseException | None = None
        self.finished = False
        """Whether the operator has come to its end."""
        # In the context of whoever makes it, which says how files elsewhere are read.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._run,), name=f"forebay {name}", daemon=True
        )

    def start(self) -> None:
        """Begin. Apart from making it, so that whoever is to stop it knows it before there is anything to stop."""
        share_heaps()
        uninterrupted(self._thread.start)

    def take(self) -> Block | None:
        """The next block, waiting for it if need be; None, once, when the thread has ended.

        That is when the operator has `finished`, has failed with `error`, or all is handed out that was in hand when
        the thread was told to ``leave``.
        """
        if self._was_full and self._made.empty():
            self._was_full = False
            self._most_bytes = min(2 * self._most_bytes, self._up_to)
        block = take(self._made)
        if block is not None:
            self._taken.put((block.rows, block.nbytes))
        return block

    @property
    def queue(self) -> int:
        """How many blocks wait to be taken."""
        return self._made.qsize()

    def leave(self) -> None:
        """Make no more than the block it is on."""
        self._stopping = True
        self._taken.put((0, 0))

    def stop(self) -> None:
        """Returns once the thread has ended, after the block it is on."""
        self.leave()
        if self._thread.ident is not None:
            join(self._thread)
        if self.error is not None:
            let_go(self.error)
            self.error = None

    def _enough(self, rows: int, blocks: int) -> bool:
        """Of blocks that hold more rows than are asked for there are two: with one, either side would wait for the
        other to wake up before it goes on.
        """
        return self._most_rows is not None and rows >= self._most_rows and (blocks > 1 or rows == self._most_rows)

    def _run(self) -> None:
        blocks = rows = size = last = 0
        try:
            while not self._stopping:
                full = rows > 0 and (size >= self._most_bytes or self._enough(rows, blocks))
                self._was_full = self._was_full or full
                # With nothing in hand there has to be a next block, whatever the budget says.
                full = full or (rows > 0 and not self._lease.ask(size + last))
                if full or not self._taken.empty():
                    fewer, smaller = self._taken.get()
                    blocks -= 1
                    rows -= fewer
                    size -= smaller
                    self._lease.note(size)
                    self.in_hand = (rows, size)
                    continue
                block = self._source.fetch()
                if block is None:
                    self.finished = True
                    return
                last = block.nbytes
                blocks += 1
                rows += block.rows
                size += last
                self._lease.note(size)
                self.in_hand = (rows, size)
                self._made.put(block)
        except BaseException as error:
            self.error = error
        finally:
            self._lease.release()
            self._made.put(None)
