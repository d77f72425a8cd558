"""``interleave``: a dataset for every element, several of them in turns."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from forebay.block import START, Block, Cursor, concat_blocks
from forebay.errors import InternalError, PlanError
from forebay.ops.inner import InnerDatasets
from forebay.ops.interleave_feed import Feed, SavedSlot
from forebay.ops.interleave_slot import Slot, Supply
from forebay.plan.check import arguments, flag, function, whole_number
from forebay.plan.node import UNKNOWN, Build, Node, Traits
from forebay.plan.spec import static_spec
from forebay.run import Operator, Pace, Reader, Setup
from forebay.run.coalesce import coalesce
from forebay.run.executor import ThreadExecutor
from forebay.run.weave import available, shares, weave

AUTOTUNE = -1
# The order follows from the cycle, so its default may not depend on the machine.
_DEFAULT_CYCLE = 16
# Below this, what a block costs as a whole begins to show in the cost of a row.
_LEAST_BYTES = 1 << 17


@dataclass(frozen=True, eq=False, kw_only=True)
class Interleave(Node):
    """``Dataset.interleave``. The seed is what unseeded random steps of the inner datasets derive theirs from."""

    map_func: Callable[..., Any]
    cycle_length: int | None = None
    block_length: int | None = None
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    seed: int | None = None

    kind = "interleave"
    traits = Traits(random=True)

    def __post_init__(self) -> None:
        function("interleave", "map_func", self.map_func)
        if self.cycle_length is not None:
            whole_number("interleave", "cycle_length", self.cycle_length, 1, also=(AUTOTUNE,))
        if self.block_length is not None:
            whole_number("interleave", "block_length", self.block_length, 1)
        if self.num_parallel_calls is not None:
            calls = whole_number("interleave", "num_parallel_calls", self.num_parallel_calls, 1, also=(AUTOTUNE,))
            if calls > self.cycle and self.cycle_length not in (None, AUTOTUNE):
                raise PlanError(
                    f"interleave(cycle_length={self.cycle}, num_parallel_calls={calls}): num_parallel_calls must be "
                    "at most cycle_length, there is no work for more"
                )
        if self.deterministic is not None:
            flag("interleave", "deterministic", self.deterministic)
        arguments("interleave", self.map_func, static_spec(self.input))

    @property
    def cycle(self) -> int:
        """How many inner datasets take turns."""
        return _DEFAULT_CYCLE if self.cycle_length in (None, AUTOTUNE) else int(self.cycle_length or 0)

    @property
    def turn(self) -> int:
        """How many rows each gives before the next one's turn."""
        return 1 if self.block_length is None else int(self.block_length)

    @property
    def threads(self) -> int:
        """How many threads fetch rows; none unless asked for."""
        if self.num_parallel_calls is None:
            return 0
        if self.num_parallel_calls == AUTOTUNE:
            # Inner datasets mostly wait for files, so there may be more of them than processors.
            return min(self.cycle, 2 * len(os.sched_getaffinity(0)))
        return int(self.num_parallel_calls)

    def params(self) -> dict[str, Any]:
        """What the rows and their order follow from."""
        return {"map_func": self.map_func, "cycle_length": self.cycle, "block_length": self.turn}

    def settings(self) -> dict[str, Any]:
        """What decides only who fetches the rows. Another order than the usual one is never relied on."""
        return {"num_parallel_calls": self.num_parallel_calls, "deterministic": self.deterministic}

    def cardinality(self) -> int:
        """Not known before it has run."""
        return UNKNOWN

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Many rounds of turns at a time."""
        return _Interleave(self, setup, build(self.input, setup.with_unit(1)))


class _Interleave(Operator):
    """State: the cursor of the next input row, and for each slot of the cycle its input row and the inner cursor.

    The slots take turns of a number of rows. A slot whose dataset ends gives its turn up; when its next turn comes,
    the next input row's dataset takes its place, or, if there is none, its turns are left out from then on.
    Between such changes the order of rows is a formula, so a block is read in one piece from each slot and put in
    order by one permutation, and a cursor inside it says at once how far each slot is.
    """

    def __init__(self, node: Interleave, setup: Setup, source: Operator) -> None:
        super().__init__(node.site, source)
        if node.seed is None:
            raise InternalError("interleave() has no seed after resolve_seeds")
        self._cycle = node.cycle
        self._turn = node.turn
        self._threads = node.threads
        self._any_order = node.deterministic is False and node.threads > 0
        self._supply = Supply(node.site)
        self._datasets = InnerDatasets(node.site, node.map_func, node.seed, _for_inner(setup, node.cycle))
        self._feed = Feed(self._supply, Reader(source), self._datasets, node.threads)
        self._pace = Pace(setup.block_bytes, setup.unit)
        self._executor: ThreadExecutor[None] | None = None
        self._start: dict[str, Any] = {"in": START.to_json(), "index": 0, "slots": [None] * node.cycle}
        self._start |= {"order": list(range(node.cycle)), "done": 0, "rows": 0}
        self._slots: list[Slot | None] = []
        self._saved: list[SavedSlot] = []  # Of the cursor to begin at, until the first pull.
        self._slot = 0
        self._done = 0  # Rows of the turn of `_slot` that have been given.
        self._state_due = True

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Rows that came in one piece are skipped by the inner datasets; the number of others is returned."""
        self._stop()
        state = cursor.state or self._start
        order: list[int] = state["order"]
        saved = [None if slot is None else SavedSlot.from_json(i, slot) for i, slot in enumerate(state["slots"])]
        if len(saved) != self._cycle or not order or not 0 <= state["done"] < self._turn:
            raise ValueError(f"not a state of {self.site}: {state!r}")
        direct: int = min(cursor.skip, state["rows"])
        given, turn, self._done = shares(direct, state["done"], self._turn, len(order))
        for number, rows in zip(order, given):
            slot = saved[number]
            if rows and slot is not None and slot.at is not None:
                saved[number] = replace(slot, at=slot.at.after(rows))
        self._slot = order[turn]
        self._saved = [slot for slot in saved if slot is not None]
        self._feed.seek(None if state["in"] is None else Cursor.from_json(state["in"]), state["index"], epoch)
        self._slots = [None] * self._cycle
        return cursor.skip - direct

    def pull(self) -> Block | None:
        """The next rows in turn, from all slots together."""
        self._state_due = True
        try:
            self._begin()
            if self._any_order:
                # Not coalesced: a cursor inside a block is only good for rows that came in one piece.
                block = self._next_rows()
                if block is not None:
                    self._pace.observe(block.rows, block.nbytes, 0.0)
            else:
                block = coalesce(self, self._pace, self._next_rows)
        except BaseException:
            self._stop()
            raise
        if block is None:
            self._stop()
        return block

    def _begin(self) -> None:
        if self._threads and self._executor is None and not self._over():
            self._executor = ThreadExecutor(lambda: _call, self._threads, str(self.site))
            self._supply.submit = self._executor.submit
        if self._saved:
            for number, slot in self._feed.restore(self._saved).items():
                self._slots[number] = slot
            self._saved = []
            for number in self._circle():
                waiting = self._slots[number]
                if waiting is not None:
                    waiting.ask()

    def _next_rows(self) -> Block | None:
        began = time.perf_counter()
        order = self._ready_slots() if self._any_order else self._settle()
        if order is None:
            return None
        length, limit = self._turn, self._pace.rows
        # Only slots that these rows can come from are looked at, and those only as long as it does not take long.
        needed = -(-(self._done + limit) // length)
        at_hand = [0] * len(order)
        for place, number in enumerate(order[:needed]):
            slot = self._slots[number]
            if slot is None or (place and not self._pace.in_time(began)):
                break
            at_hand[place] = slot.ready(wait=False)
            if not at_hand[place]:
                break
        rows = min(available(at_hand, self._done, length), limit)
        given, turn, done = shares(rows, self._done, length, len(order))
        state = self._state(order, rows) if self._state_due else START
        parts = [slot.read(count) for number, count in zip(order, given) if count and (slot := self._slots[number])]
        block = concat_blocks(parts)
        permutation = weave(given, self._done, length)
        if permutation is not None:
            block = block.take(permutation)
        self._slot, self._done = order[turn], done
        self._state_due = False
        self._datasets.first = max(self._pace.rows // len(order), 1)
        return block.at(state)

    def _settle(self) -> list[int] | None:
        """Go to the next row in turn; the slots in the order of their turns from there, or None at the end."""
        while not self._over():
            slot = self._slots[self._slot]
            if slot is None:
                if self._feed.ended:
                    self._next_turn()
                else:
                    self._slots[self._slot] = self._feed.take()
            elif slot.ready():
                return [i for i in self._circle() if not self._feed.ended or self._slots[i] is not None]
            elif slot.error is not None:
                raise slot.error
            else:
                self._end(self._slot)
                self._next_turn()
        return None

    def _ready_slots(self) -> list[int] | None:
        """The same for whatever order: all slots that have rows at hand, once there is one."""
        while True:
            order = [number for number in self._circle() if self._refill(number)]
            if order:
                if order[0] != self._slot:
                    self._slot, self._done = order[0], 0
                return order
            if self._over():
                return None
            self._supply.wait()

    def _refill(self, number: int) -> bool:
        """Whether the slot has rows at hand; at the end of a dataset the next takes its place."""
        while True:
            slot = self._slots[number]
            if slot is None:
                if self._feed.ended:
                    return False
                slot = self._slots[number] = self._feed.take()
                continue
            if slot.ready(wait=False):
                return True
            if slot.error is not None:
                raise slot.error
            if not slot.ended:
                return False
            self._end(number)

    def _over(self) -> bool:
        return self._feed.ended and not self._saved and not any(self._slots)

    def _circle(self) -> list[int]:
        return [*range(self._slot, self._cycle), *range(self._slot)]

    def _next_turn(self) -> None:
        self._slot, self._done = (self._slot + 1) % self._cycle, 0

    def _end(self, number: int) -> None:
        slot = self._slots[number]
        if slot is not None:
            slot.close()
            self._slots[number] = None

    def _state(self, order: list[int], rows: int) -> Cursor:
        """The first of `rows` rows that come from the slots in this order."""
        slots = [None if slot is None else slot.state() for slot in self._slots]
        return Cursor({**self._feed.state(), "slots": slots, "order": order, "done": self._done, "rows": rows})

    def _stop(self) -> None:
        """End the threads, then what they worked on. What an interrupt keeps from ending is still there to be ended."""
        self._supply.submit = None
        if self._executor is not None:
            self._executor.close()
            self._executor = None
        self._feed.close()
        for number in range(len(self._slots)):
            self._end(number)

    def close(self) -> None:
        """Threads and inner datasets before the input."""
        self._stop()
        super().close()


def _call(fetch: Callable[[], None]) -> None:
    fetch()


def _for_inner(setup: Setup, cycle: int) -> Setup:
    """Each slot holds a block or two and a block of the output takes little from each, so theirs are smaller."""
    return replace(setup, block_bytes=max(setup.block_bytes // cycle, min(setup.block_bytes, _LEAST_BYTES)))
