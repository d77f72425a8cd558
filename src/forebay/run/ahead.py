"""A thread that pulls blocks before they are asked for."""

import threading
from queue import SimpleQueue

from forebay.block import Block
from forebay.run.leaving import join
from forebay.run.operator import Operator
from forebay.run.uninterrupted import uninterrupted


class Ahead:
    """Pulls from an operator on a thread until enough is in hand, the operator ends or fails, or it is told to stop.

    The two sides share nothing but two queues, blocks one way and receipts the other. A SimpleQueue is never left
    half-way by a Ctrl-C, as a Condition can be: its Python code may be interrupted while it holds the lock.

    Args:
        source: used by the thread alone from now on, until ``stop`` has returned.
        most_rows: so many rows in hand are enough; one block is always worked on.
        most_bytes: so many bytes are enough.
        name: what to call the thread.
    """

    def __init__(self, source: Operator, most_rows: int | None, most_bytes: int, name: str) -> None:
        self._source = source
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._made: SimpleQueue[Block | None] = SimpleQueue()
        self._taken: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self._stopping = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"forebay {name}", daemon=True)

    def start(self) -> None:
        """Begin. Apart from making it, so that whoever is to stop it knows it before there is anything to stop."""
        uninterrupted(self._thread.start)

    def take(self) -> Block | None:
        """The next block, waiting for it if need be; None, once, when the source has ended or failed with `error`."""
        block = self._made.get()
        if block is not None:
            self._taken.put((block.rows, block.nbytes))
        return block

    def stop(self) -> None:
        """Returns once the thread has ended, after the block it is on."""
        self._stopping = True
        self._taken.put((0, 0))
        if self._thread.ident is not None:
            join(self._thread)

    def _run(self) -> None:
        rows = size = 0
        try:
            while not self._stopping:
                full = size > 0 and (
                    size >= self._most_bytes or (self._most_rows is not None and rows >= self._most_rows)
                )
                if full or not self._taken.empty():
                    fewer, smaller = self._taken.get()
                    rows -= fewer
                    size -= smaller
                    continue
                block = self._source.pull()
                if block is None:
                    return
                rows += block.rows
                size += block.nbytes
                self._made.put(block)
        except BaseException as error:
            self.error = error
        finally:
            self._made.put(None)
