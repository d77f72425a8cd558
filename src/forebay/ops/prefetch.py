"""``prefetch``: the input works ahead on a thread of its own."""

import time
from dataclasses import dataclass

from forebay.block import Block, Cursor
from forebay.plan.check import keep_whole
from forebay.plan.node import AUTOTUNE, Build, Holding, Node, Sizes, Traits
from forebay.run import Access, Operator, Setup
from forebay.run.ahead import Ahead
from forebay.run.crew import Choice
from forebay.run.overlap import Overlap

# A block or two in hand hide the producer's latency; more only hide its jitter, and cost memory.
_AUTO_BLOCKS = 4
_AUTO_MOST_BYTES = 64 << 20
# A count of elements says nothing of their size; beyond this, more of them ahead would only be held.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Prefetch(Node):
    """``Dataset.prefetch``."""

    buffer_size: int | None
    max_bytes: int | None = None

    kind = "prefetch"
    traits = Traits(one_to_one=True, same_elements=True, transparent=True)

    def __post_init__(self) -> None:
        if self.buffer_size is not None:
            keep_whole(self, "buffer_size", 0, also=(AUTOTUNE,))
        if self.max_bytes is not None:
            keep_whole(self, "max_bytes", 1)

    def cardinality(self) -> int:
        """The input's."""
        return self.input.cardinality()

    def access(self) -> Access | None:
        """The input's: rows by number need no thread that works ahead."""
        return self.input.access()

    def holds(self, sizes: Sizes) -> Holding:
        """The elements ahead."""
        if self.buffer_size in (None, AUTOTUNE):
            most = min(self.max_bytes or _AUTO_MOST_BYTES, max(_AUTO_MOST_BYTES, sizes.block))
            return Holding(max(most, sizes.block), "grows to this only if it is found empty; backs off at the budget")
        ahead = max(int(self.buffer_size or 0) * sizes.element, sizes.block)
        return Holding(
            min(ahead, self.max_bytes or _MOST_BYTES), f"{self.buffer_size} elements ahead, at least a block"
        )

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
    iterator that nobody pulls from costs nothing. With AUTOTUNE it also ends where it only costs: whoever asks for
    blocks does nothing with them for which the next could not wait. It comes back when that changes.
    """

    def __init__(self, node: Prefetch, setup: Setup, source: Operator) -> None:
        super().__init__(node.site, source)
        auto = node.buffer_size in (None, AUTOTUNE)
        self._most_rows = None if auto else node.buffer_size
        self._up_to = node.max_bytes or (_AUTO_MOST_BYTES if auto else _MOST_BYTES)
        self._most_bytes = min(_AUTO_BLOCKS * setup.block_bytes, self._up_to) if auto else self._up_to
        crew = setup.parallelism.crew
        if not crew.tuner.enabled:
            self._up_to = self._most_bytes
        self._choices = crew.parking.choices
        known = self._choices.get(node.site.key)
        tuned = auto and crew.tuner.enabled
        self._overlap = Overlap(ahead=known is None or known.kind != "inline") if tuned else None
        self._lease = setup.ledger.lease(str(node.site))
        self._worker: Ahead | None = None
        self._ended = False

    def origin(self, cursor: Cursor) -> str | None:
        """Cursors are the input's."""
        return self.inputs[0].origin(cursor)

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Stop working ahead on the wrong rows, and let the input seek."""
        self._stop()
        self._ended = False
        return self.inputs[0].begin(cursor, epoch)

    def pull(self) -> Block | None:
        """The oldest block in hand, waiting for it if need be."""
        if self._ended:
            return None
        began = time.perf_counter()
        self._settle(began)
        # An interrupt while waiting leaves the worker as it is: the rows it holds must not be lost.
        block = self._worker.take() if self._worker is not None else None
        if block is None:
            block = self._without_worker()
        now = time.perf_counter()
        self.meter.waited += now - began
        if self._overlap is not None:
            self._overlap.given(now)
        return block

    def _settle(self, now: float) -> None:
        """Have a thread if it is of use."""
        overlap = self._overlap
        before = overlap is None or overlap.ahead
        ahead = overlap is None or overlap.asked(now)
        if ahead and self._worker is None:
            self._worker = Ahead(
                self.inputs[0], self._most_rows, self._most_bytes, str(self.site), self._lease, self._up_to
            )
            self._worker.start()
        elif self._worker is not None and not ahead:
            self._worker.leave()
        if overlap is not None and ahead != before:
            reason = f"whoever asks is busy for {1e3 * overlap.busy:.2g} ms a block"
            self._choices[self.site.key] = Choice("thread" if ahead else "inline", reason)

    def _without_worker(self) -> Block | None:
        """The next block if there is no thread to make it, or none any more."""
        worker, error = self._worker, None
        if worker is not None:
            error, self._ended = worker.error, worker.finished or worker.error is not None
            self._stop()
        if error is not None:
            raise error
        return None if self._ended else self.inputs[0].fetch()

    own_thread = True

    def load(self) -> tuple[int, int, str]:
        """Blocks in hand, and the thread, if there is one."""
        return (self._worker.queue, 1, "thread") if self._worker is not None else (0, 0, "")

    def held(self) -> tuple[int, float]:
        """Blocks in hand, against the rows or bytes that are enough."""
        rows, held = self._worker.in_hand if self._worker is not None else (0, 0)
        return held, min(1.0, max(rows / self._most_rows if self._most_rows else 0.0, held / self._up_to))

    def _stop(self) -> None:
        if self._worker is not None:
            # Forgotten only afterwards: should this be interrupted, the next close still waits for the thread.
            self._worker.stop()
            self._worker = None

    def close(self) -> None:
        """Join the thread before the input is closed under it."""
        if self._worker is not None:
            self.abandon()
        self._stop()
        super().close()
