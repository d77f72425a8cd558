"""``shuffle``: rows in random order, through a buffer or over everything."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.random

from forebay._native import permute
from forebay.block import LEAF, Block, Cursor, Indices, column_from_rows
from forebay.block.dense import Dense
from forebay.errors import InternalError, PlanError
from forebay.lazy import cached_property
from forebay.ops.external_parts import ExternalParts
from forebay.ops.external_shuffle import ExternalShuffle
from forebay.ops.prefetch import prefetch_below
from forebay.ops.shuffle_buffer import ShuffleBuffer
from forebay.plan.check import flag, keep_seed, keep_whole
from forebay.plan.node import INFINITE, Build, Holding, Node, Sizes, Traits
from forebay.run import Access, Operator, Pace, ReadRows, Setup
from forebay.run.access import gather_until_fault
from forebay.run.keys import key_of, words
from forebay.run.layout import WORD, Layout
from forebay.run.picks import Picks, fit, group
from forebay.run.row_store import stored_bytes
from forebay.run.slot_numbers import NUMBER, SlotNumbers
from forebay.run.spilled_rows import most_spilled
from forebay.run.stats import WEAK
from forebay.run.steps import Shift
from forebay.sizes import size_text

# Up to here the permutation is drawn outright, exactly uniform; a bijection over a domain this small would not be.
_DRAWN = 1 << 16
# Steps of a buffer that are worked out at once where rows are read by number: a block of wide rows has few of them, and
# on a thread beside a busy interpreter, every call costs as much as hundreds of steps.
_PICKS = 1 << 14
# Slots of a buffer of rows: more than any input has time to fill, and few enough for int64.
_MOST = 1 << 62


@dataclass(frozen=True, eq=False, kw_only=True)
class Shuffle(Node):
    """``Dataset.shuffle``. `by_number` is set by a rule: the buffer's picks are read from the input by number."""

    buffer_size: int | None
    seed: int | None
    reshuffle_each_iteration: bool
    by_number: bool = False

    kind = "shuffle"
    traits = Traits(same_elements=True, random=True)

    def __post_init__(self) -> None:
        if self.buffer_size is not None:
            keep_whole(self, "buffer_size", 1)
        keep_seed(self)
        flag("shuffle", "reshuffle_each_iteration", self.reshuffle_each_iteration)
        if self.buffer_size is None and self.input.cardinality() == INFINITE:
            raise PlanError(
                f"shuffle() of everything never begins after an endless {self.input.kind}: give a buffer_size"
            )

    @cached_property
    def whole(self) -> bool:
        """Whether the order is uniform over everything.

        Part of what the plan means, not of how it is run: so it follows from what no rule and no prefetch changes.
        """
        return self.buffer_size is None or 0 <= self.input.cardinality() <= self.buffer_size

    @property
    def scatters(self) -> bool:
        """If there is no buffer of rows."""
        return self.by_number or (self.whole and self.access() is not None)

    @property
    def redraws(self) -> bool:
        """If it reshuffles."""
        return self.reshuffle_each_iteration

    def params(self) -> dict[str, Any]:
        """What the user wrote, and how it runs."""
        shown: dict[str, Any] = {"buffer_size": self.buffer_size, "seed": self.seed}
        if not self.reshuffle_each_iteration:
            shown["reshuffle_each_iteration"] = False
        if self.by_number:
            shown["reads"] = "permuted"
        return shown

    def layout(self) -> str:
        """By number or through a buffer."""
        return "shuffle by number" if self.by_number else "shuffle"

    def cardinality(self) -> int:
        """The input's."""
        return self.input.cardinality()

    def access(self) -> Access | None:
        """A permutation of numbers, where it covers everything."""
        inner = self.input.access() if self.whole else None
        if inner is None:
            return None
        # Without a seed this Access only serves to ask whether there is one; it is made again before running.
        return _Permuted(inner, self.seed or 0, self.reshuffle_each_iteration)

    def holds(self, sizes: Sizes) -> Holding:
        """Numbers of rows, rows, or a part of the budget and the rest on disk."""
        if self.whole and self.access() is not None:
            return Holding(2 * sizes.block, "reads rows in the new order; keeps none")
        budget = sizes.setup.ledger.budget
        if self.whole or self.buffer_size is None:
            return _external(sizes)
        rows = min(self.buffer_size, _MOST if sizes.rows is None else sizes.rows)
        weak = _weakness(rows, sizes.rows)
        if self.by_number:
            if fit(rows, budget):
                return Holding(NUMBER * rows + 2 * sizes.block, f"numbers of rows, not rows{weak}")
            return Holding(2 * sizes.block, f"numbers of rows, not rows, on disk{weak}", SlotNumbers.spilled(rows))
        first = _numbered(sizes)
        row = stored_bytes(first)
        # With the rows that come in, of which there may be fewer than a block.
        growing = 2 * (rows * row + min(sizes.block, rows * row))
        if growing > budget:
            # What has no end cannot be shuffled as a whole.
            better = "" if self.input.cardinality() == INFINITE else "; shuffle(), which is uniform, is faster"
            why = f"the buffer is on disk, once it has filled what others leave of the budget{weak}{better}"
            # Numbers of rows are there too, unless there is room for them in memory when the input has ended.
            disk = most_spilled(first, rows, sizes.rows) + SlotNumbers.spilled(rows)
            return Holding(budget, why, disk)
        return Holding(growing, f"{rows:,} rows, twice while it grows{weak}")

    def lower(self, setup: Setup, build: Build) -> Operator:
        """By number where everything is shuffled or a rule says so; otherwise through a buffer of rows."""
        if self.seed is None:
            raise InternalError("shuffle() has no seed after resolve_seeds")
        whole = self.access() if self.whole else None
        if whole is not None:
            reads = ReadRows(self.site, whole, setup)
            reads.uniform = True
            # Work that the user wanted on a thread stays on one, though it is now done in another order.
            ahead = prefetch_below(self.input)
            return reads if ahead is None else ahead.around(reads, setup)
        if self.whole or self.buffer_size is None:
            source = build(self.input, setup.with_unit(1))
            return ExternalShuffle(self.site, source, setup, self.seed, self.reshuffle_each_iteration)
        access = self.input.access() if self.by_number else None
        if access is not None:
            return _PermutedReads(self, access, setup)
        source = build(self.input, setup.with_unit(1))
        slots = min(self.buffer_size, _MOST)
        return ShuffleBuffer(self.site, source, setup, slots, self.seed, self.reshuffle_each_iteration)


def _external(sizes: Sizes) -> Holding:
    """Of a shuffle of everything that is not read by number: what it collects, and what goes to disk."""
    parts = ExternalParts.within(sizes.setup.ledger.share)
    row = sizes.element + WORD  # With the word that tells its place.
    times = None if sizes.rows is None else len(parts.scattered(sizes.rows, row))
    if sizes.rows is not None and times == 0:
        # They stay while a block of them is in somebody's hand.
        total = sizes.rows * row
        return Holding(2 * total + min(sizes.block, total), "fits into its part of the budget")
    # Rows are collected up to the block with which they are too many.
    collected = 2 * (parts.part + sizes.block // sizes.element * row) if sizes.element else 2 * parts.part
    if sizes.rows is None or times is None:
        known = f"once up to {size_text(parts.once())}, more often beyond"
        return Holding(collected, f"at most: if they do not fit, all rows go to disk, {known}", None)
    often = {1: "once", 2: "twice at this budget"}.get(times, f"{times} times at this budget")
    why = f"fills its part of the budget, then all rows go to disk, {often}"
    first = sizes.look()
    alike = first is not None and Layout.of(first) is not None
    return Holding(collected, why, parts.disk(sizes.rows, row, alike))


def _numbered(sizes: Sizes) -> Block:
    """A row as a buffer keeps it. One that nobody has looked at may differ in size from others, as batches do."""
    row = sizes.look() or Block(LEAF, [column_from_rows([bytes(sizes.element)])], 1)
    return Block(row.structure, [*row.columns, Dense(np.zeros(1, np.int64))], 1)


def _weakness(buffer: int, rows: int | None) -> str:
    """A word about a buffer so small that rows stay near their old places."""
    # A row stays for about as many steps as there are slots; in a uniform order it moves by a third of all rows.
    share = 3 * buffer / rows if rows else 1.0
    return f"; a weak shuffle: rows move {share:.1%} as far as in a uniform one" if share < WEAK else ""


class _Permuted(Access):
    """Row i is the row that a keyed permutation sends i to."""

    def __init__(self, inner: Access, seed: int, each_epoch: bool) -> None:
        super().__init__(inner.length)
        self._inner = inner
        self._seed = seed
        self._each_epoch = each_epoch
        self._drawn: tuple[int, Indices] | None = None

    def origin(self, row: int, epoch: int) -> str | None:
        """Where the permutation sends it."""
        return self._inner.origin(int(self._order(np.array([row]), epoch if self._each_epoch else 0)[0]), epoch)

    def gather(self, indices: Indices, epoch: int) -> Block:
        """Permute the numbers, then read."""
        return self._inner.gather(self._order(indices, epoch if self._each_epoch else 0), epoch)

    def _order(self, indices: Indices, epoch: int) -> Indices:
        key = key_of(self._seed, epoch, "shuffle")
        if self.length <= _DRAWN:
            if self._drawn is None or self._drawn[0] != epoch:
                self._drawn = (epoch, np.argsort(words(key, 0, self.length), kind="stable"))
            return self._drawn[1][indices]
        out = np.empty(len(indices), np.int64)
        permute(np.ascontiguousarray(indices), self.length, *key, out)
        return out


class _PermutedReads(Operator):
    """A buffered shuffle without a buffer of rows: the picks are simulated on numbers, then read. State: the step."""

    def __init__(self, node: Shuffle, access: Access, setup: Setup) -> None:
        super().__init__(node.site)
        if node.buffer_size is None or node.seed is None:
            raise InternalError("permuted reads need a buffer size and a seed")
        self._access = access
        self.entered = access.within(setup)
        self._size = node.buffer_size
        self._seed = node.seed
        self._each_epoch = node.reshuffle_each_iteration
        self._pace = Pace(setup.block_bytes, setup.unit)
        self._epoch = 0
        self._spill = setup.spill
        self._lease = setup.ledger.lease(str(node.site))
        self._at_once = _PICKS if fit(self._size, self._lease.budget) else group(self._lease.budget)
        self._picks = self._picks_of(0)
        self._shift = Shift()  # Of the rounds before this one.
        self._ahead: Indices = np.empty(0, np.int64)

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """The buffer's row numbers at any step are found without the steps before."""
        step = (cursor.state or {"step": 0})["step"] + cursor.skip
        self._epoch = epoch
        self._shift += self._picks.shift
        self._picks.close()
        self._picks = self._picks_of(epoch)
        self._picks.seek(step, self._access.length)
        self._lease.note(self._picks.nbytes)
        self._ahead = self._ahead[:0]
        return 0

    def pull(self) -> Block | None:
        """The rows of as many steps as make a block."""
        rows = self._pace.rows
        if not len(self._ahead):
            self._ahead = self._next_picks(max(rows, self._at_once))
        if not len(self._ahead):
            return None
        step = self._picks.position - len(self._ahead)
        block = gather_until_fault(self._access, self._ahead[:rows], self._epoch)
        self._ahead = self._ahead[block.rows :]
        self._pace.observe(block.rows, block.nbytes, 0.0)
        return block.at(Cursor({"step": step}))

    def moved(self) -> tuple[float, float] | None:
        """As the picks were."""
        return (self._shift + self._picks.shift).moved()

    def close(self) -> None:
        """Let go of the numbers."""
        self._picks.close()
        self._lease.release()
        super().close()

    def _picks_of(self, epoch: int) -> Picks:
        return Picks(self._size, self._seed, epoch if self._each_epoch else 0, self._lease.budget, self._spill)

    def _next_picks(self, rows: int) -> Indices:
        coming = self._access.length - self._picks.position - self._size
        if coming > 0:
            return self._picks.exchange(min(rows, coming))
        return self._picks.drain(min(rows, self._picks.live))
