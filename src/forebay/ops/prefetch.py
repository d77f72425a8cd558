"""``prefetch``: the input works ahead on a thread of its own."""

import threading
from collections import deque
from dataclasses import dataclass

from forebay.block import Block, Cursor
from forebay.plan.check import keep_whole
from forebay.plan.node import Build, Node, Traits
from forebay.run import Access, Operator, Setup

AUTOTUNE = -1
# A block or two in hand hide the producer's latency; more only hide its jitter, and cost memory.
_AUTO_BLOCKS = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Prefetch(Node):
    """``Dataset.prefetch``."""

    buffer_size: int | None

    kind = "prefetch"
    traits = Traits(one_to_one=True, same_elements=True, transparent=True)

    def __post_init__(self) -> None:
        if self.buffer_size is not None:
            keep_whole(self, "buffer_size", 0, also=(AUTOTUNE,))

    def cardinality(self) -> int:
        """The input's."""
        return self.input.cardinality()

    def access(self) -> Access | None:
        """The input's: rows by number need no thread that works ahead."""
        return self.input.access()

    def is_noop(self) -> bool:
        """Nothing ahead."""
        return self.buffer_size == 0

    def lower(self, setup: Setup, build: Build) -> Operator:
        """A thread between the input and whoever pulls."""
        return self.around(build(self.input, setup), setup)

    def around(self, source: Operator, setup: Setup) -> Operator:
        """A thread that pulls from that operator, unless nothing is to be ahead."""
        return source if self.buffer_size == 0 else _Prefetch(self, setup, source)


def prefetch_below(node: Node) -> Prefetch | None:
    """A step at or below this one that works ahead on a thread of its own, which reading by number would bypass."""
    if isinstance(node, Prefetch):
        return node
    found = (prefetch_below(child) for child in node.inputs)
    return next((step for step in found if step is not None), None)


class _Prefetch(Operator):
    """State: none; blocks pass through with their cursors.

    The thread is started by the first pull and ended by seek, close, the input's end, or an error, so that an
    iterator that nobody pulls from costs nothing.
    """

    def __init__(self, node: Prefetch, setup: Setup, source: Operator) -> None:
        super().__init__(node.site, source)
        self._most_rows = None if node.buffer_size in (None, AUTOTUNE) else node.buffer_size
        self._most_bytes = _AUTO_BLOCKS * setup.block_bytes
        self._worker: _Worker | None = None
        self._ended = False

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Stop working ahead on the wrong rows, and let the input seek."""
        self._stop()
        self._ended = False
        return self.inputs[0].begin(cursor, epoch)

    def pull(self) -> Block | None:
        """The oldest block in hand, waiting for it if need be."""
        if self._ended:
            return None
        if self._worker is None:
            self._worker = _Worker(self.inputs[0], self._most_rows, self._most_bytes, str(self.site))
        # An interrupt while waiting leaves the worker as it is: the rows it holds must not be lost.
        block = self._worker.take()
        if block is None:
            error = self._worker.error
            self._ended = True
            self._stop()
            if error is not None:
                raise error
        return block

    def _stop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()

    def close(self) -> None:
        """Join the thread before the input is closed under it."""
        self._stop()
        super().close()


class _Worker:
    """One thread that pulls blocks until its shelf is full, its source ends or fails, or it is told to stop."""

    def __init__(self, source: Operator, most_rows: int | None, most_bytes: int, name: str) -> None:
        self._source = source
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._shelf: deque[Block] = deque()
        self._rows = 0
        self._bytes = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._finished = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"forebay {name}", daemon=True)
        self._thread.start()

    def take(self) -> Block | None:
        """The next block; None once the source has ended or failed with `error`."""
        with self._changed:
            while not self._shelf and not self._finished:
                self._changed.wait()
            if self._shelf:
                block = self._shelf.popleft()
                self._rows -= block.rows
                self._bytes -= block.nbytes
                self._changed.notify()
                return block
            return None

    def stop(self) -> None:
        """Returns once the thread has ended, after the block it is on."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        # The last reference to an iterator may go on its own worker, which then cannot wait for itself.
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _full(self) -> bool:
        if not self._shelf:
            return False
        if self._most_rows is not None:
            return self._rows >= self._most_rows
        return self._bytes >= self._most_bytes

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    while self._full() and not self._stopping:
                        self._changed.wait()
                    if self._stopping:
                        return
                block = self._source.pull()
                if block is None:
                    return
                with self._changed:
                    self._shelf.append(block)
                    self._rows += block.rows
                    self._bytes += block.nbytes
                    self._changed.notify()
        except BaseException as error:
            self.error = error
        finally:
            with self._changed:
                self._finished = True
                self._changed.notify()
