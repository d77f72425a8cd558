"""How ``interleave`` and ``flat_map`` run: datasets made of elements, in slots that take turns."""

import time
from dataclasses import replace
from typing import Any

from forebay.block import START, Block, Cursor
from forebay.errors import DataError, ForebayError
from forebay.ops.inner import InnerDatasets
from forebay.ops.interleave_feed import Feed, SavedSlot
from forebay.ops.interleave_schedule import ENDLESS, Cycle, Schedule
from forebay.ops.interleave_slot import Slot, Supply
from forebay.ops.interleave_threads import Threads
from forebay.ops.interleave_woven import Woven, in_bytes
from forebay.run import Operator, Pace, Setup, Site
from forebay.run.coalesce import coalesce
from forebay.run.faults import Faults, Tolerance
from forebay.run.pace import ENOUGH_BLOCKS
from forebay.run.weave import available, shares, woven

# Datasets that ``flat_map`` may have open ahead of the one whose turn it is.
_MOST_OPEN = 32


class InterleavedRows(Operator):
    """State: the cursor of the next input row, and for each slot of the cycle its input row and the inner cursor.

    The slots take turns of a number of rows. A slot whose dataset ends gives its turn up; when its next turn comes,
    the next input row's dataset takes its place, or, if there is none, its turns are left out from then on.
    Between such changes the order of rows is a formula, so a block is read in one piece from each slot and put in
    order by one permutation, and a cursor inside it says at once how far each slot is.

    In a free order, whoever has rows takes the next turns. Then the state also holds a log of what was decided after
    it. The same goes where the input or an inner dataset comes in a free order.
    """

    makes_rows = True

    def __init__(
        self,
        site: Site,
        datasets: InnerDatasets,
        setup: Setup,
        source: Operator,
        cycle: Cycle,
        tolerance: Tolerance,
    ) -> None:
        super().__init__(site, source)
        self._cycle = cycle.slots
        self._turn = cycle.turn
        self._free_order = cycle.free_order
        self._gate = setup.gate
        self._supply = Supply(site, self.meter, setup.ledger.lease(str(site)))
        self._threads = Threads(site, self._supply, cycle, setup.parallelism.crew.parking, datasets.ahead)
        self._datasets = datasets
        if cycle.turn < ENDLESS:
            # Nothing comes out before there is a whole batch, of which each dataset has to give its part.
            self._datasets.first = -(-setup.unit // cycle.slots)
        self._skips = tolerance.skips
        self._faults = Faults(tolerance, self.meter)
        self._feed = Feed(self._supply, source, self._datasets, self._threads.count)
        # Blocks that are handed on as they are cannot be made to fit.
        self._unit = setup.unit if cycle.turn < ENDLESS else 1
        self._given = 0  # Rows, since the row that was sought.
        self._pace = Pace(setup.block_bytes, self._unit)
        self._enough = ENOUGH_BLOCKS * setup.block_bytes
        self._start: dict[str, Any] = {"in": START.to_json(), "index": 0, "slots": [None] * cycle.slots}
        self._start |= {"order": list(range(cycle.slots)), "done": 0, "rows": 0}
        self._schedule = Schedule(cycle.turn, None)
        self._slots: list[Slot | None] = []
        self._saved: list[SavedSlot] = []  # Of the cursor to begin at, until the first pull.
        self._slot = 0
        self._done = 0  # Rows of the turn of `_slot` that have been given.
        self._woven = Woven(setup.ledger.lease(str(site)), self._unit)
        self._state_due = True
        self.tuned_workers = self._threads.wanted
        self.most_workers = min(
            cycle.slots if cycle.turn < ENDLESS else _MOST_OPEN, setup.parallelism.most or _MOST_OPEN
        )
        if cycle.tuned and cycle.threads:
            setup.parallelism.crew.tuner.add(self)

    @property
    def free(self) -> bool:
        """Of its own will, or because of the inner datasets or the input."""
        return self._free_order or self._datasets.free or super().free

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Rows are skipped by the inner datasets up to where one of them ended; the number of others is returned."""
        self._stop()
        state = cursor.state or self._start
        order, done, rows = state["order"], state["done"], state["rows"]
        self._faults.count = state.get("faults", 0)
        width = len(state["slots"])
        if (width != self._cycle and self._turn != ENDLESS) or not order or not 0 <= done < self._turn:
            raise ValueError(f"not a state of {self.site}: {state!r}")
        schedule = self._schedule = Schedule(self._turn, state.get("log"))
        if rows:
            schedule.pending.appendleft([rows, done, *order])
        saved = {i: SavedSlot.from_json(i, slot) for i, slot in enumerate(state["slots"]) if slot is not None}
        for number, slot in saved.items():
            saved[number] = replace(slot, at=schedule.starts.get(slot.index, slot.at))
        self._slot, self._done = order[0], done
        left = cursor.skip
        while left and schedule.pending and isinstance(schedule.pending[0], list):
            rows, done, *order = schedule.pending[0]
            some: int = min(left, rows)
            given, turn, self._done = shares(some, done, self._turn, len(order))
            self._slot = order[turn]
            for number, count in zip(order, given):
                if count:
                    saved[number] = saved[number].after(count)
            schedule.repeated(some)
            left -= some
        if "log" not in state:
            schedule.pending.clear()
        self._saved = list(saved.values())
        self._slots = [None] * max(self._cycle, width)
        at = None if state["in"] is None else Cursor.from_json(state["in"])
        self._feed.seek(at, state["index"], epoch, schedule.starts)
        self._given = -left
        return left

    def pull(self) -> Block | None:
        """The next rows in turn, from all slots together."""
        self._state_due = True
        try:
            self._begin()
            if self._free_order and self._gate.open:
                # Not coalesced: what is ready does not wait for what is not.
                self.raise_pending()
                block = self._next_rows()
                if block is not None:
                    self._pace.observe(block.rows, block.nbytes, 0.0)
            else:
                block = coalesce(self, self._pace, self._next_rows)
        except BaseException:
            self._stop()
            raise
        if block is None:
            self._threads.ended()
            self._stop()
        return block

    def _begin(self) -> None:
        self._threads.tune(self.tuned_workers)
        self._feed.ahead = self._threads.count
        begun = not self._over() and self._threads.start()
        if self._saved:
            for number, slot in self._feed.restore(self._saved).items():
                self._slots[number] = slot
            self._saved = []
            begun = True
        if begun and any(self._slots):
            for number in self._circle():
                waiting = self._slots[number]
                if waiting is not None:
                    waiting.ask()
            self._feed.prepare()

    def load(self) -> tuple[int, int, str]:
        """Slots with rows at hand, and the threads that fetch more."""
        waiting = sum(slot is not None and slot.waiting for slot in list(self._slots))
        return waiting, self._threads.count, "thread" if self._threads.count else ""

    def _next_rows(self) -> Block | None:
        return self._woven.next(self._pace.rows) or self._weave()

    def _weave(self) -> Block | None:
        began = time.perf_counter()
        order, most = self._whose_turn()
        if order is None:
            return None
        length, limit = self._turn, min(self._pace.rows, most, self._fitting())
        needed = -(-(self._done + limit) // length)
        if needed == 1 and (first := self._slots[order[0]]) is not None:
            # Rows of a single slot are in one piece already, so there may be more of them.
            rows = min(first.ready(wait=False), length - self._done, most)
            given = [rows]
            turn, done = divmod(self._done + rows, length)
            turn %= len(order)
        else:
            rows = available(self._at_hand(order, needed, began), self._done, length)
            as_told = most < ENDLESS or self.free
            rows = self._to_whole_units(min(rows, limit) if as_told else self._woven.most(rows, limit, self._slots))
            rows = in_bytes([self._slots[number] for number in order], rows, self._done, length, self._enough)
            given, turn, done = shares(rows, self._done, length, len(order))
        givers = [(slot, count) for number, count in zip(order, given) if count and (slot := self._slots[number])]
        for slot, _ in givers:
            if slot.first is not None:
                self._schedule.began(slot.index, slot.first)
                slot.first = None
        self._schedule.took(rows, self._done, order)
        state = self._state(order, rows) if self._state_due or rows > limit else START
        block = woven([slot.read(count) for slot, count in givers], self._done, length)
        if self._schedule.pending:
            self._schedule.repeated(rows)
        self._slot, self._done = order[turn], done
        self._given += rows
        self._state_due = False
        self._datasets.first = max(self._pace.rows // len(order), 1)
        return self._woven.first(block.at(state), limit if len(givers) > 1 else rows)

    def _fitting(self) -> int:
        """How many rows are enough for a block: those at hand may be larger than the ones before."""
        largest = max([slot.large for slot in self._slots if slot is not None], default=0)
        return max(self._enough // largest, 1) if largest else ENDLESS

    def _to_whole_units(self, rows: int) -> int:
        """Fewer, if that makes the rows given so far whole batches and they are not the last ones at hand."""
        over = (self._given + rows) % self._unit
        return rows - over if rows - over >= self._pace.rows // 2 else rows

    def _at_hand(self, order: list[int], needed: int, began: float) -> list[int]:
        """How many rows the slots have, up to the first that has none."""
        at_hand = [0] * len(order)
        least = max(self._pace.rows // len(order), 1)
        # Only slots that rows are needed of are looked at, and those only as long as it does not take long.
        for place, number in enumerate(order[:needed]):
            if place and not self._pace.in_time(began):
                break
            slot = self._slots[number] or self._opened(number)
            if slot is None:
                break
            at_hand[place] = slot.ready(wait=False, least=least)
            if not at_hand[place]:
                break
        return at_hand

    def _whose_turn(self) -> tuple[list[int] | None, int]:
        """The slots in the order of their turns, of which the first has rows, and how many rows that order is for."""
        pending = self._schedule.pending
        while pending:
            decision = pending[0]
            if isinstance(decision, list):
                rows, self._done, *order = decision
                self._slot = order[0]
                if not self._wait_for(self._slot):
                    raise self._changed()
                return order, rows
            pending.popleft()
            if decision >= 0:
                if not self._take_next(decision):
                    raise self._changed()
            elif self._wait_for(~decision):
                raise self._changed()
            else:
                self._end(~decision)
        return self._ready_slots() if self._free_order and self._gate.open else self._settle(), ENDLESS

    def _settle(self) -> list[int] | None:
        """Go to the next row in turn; the slots in the order of their turns from there, or None at the end."""
        while not self._over():
            slot = self._slots[self._slot]
            if slot is None:
                if not self._open(self._slot):
                    self._next_turn()
            elif slot.ready():
                return [i for i in self._circle() if self._slots[i] is not None or self._can_open(i)]
            else:
                self._raise_or_leave_out(slot)
                self._end(self._slot)
        return None

    def _ready_slots(self) -> list[int] | None:
        """The same for whatever order: all slots that have rows at hand, once there is one."""
        while True:
            self._supply.forget()
            order = [number for number in self._circle() if self._refill(number)]
            if order:
                if order[0] != self._slot:
                    self._slot, self._done = order[0], 0
                return order
            if self._over():
                return None
            # Where the budget has no room for rows ahead, somebody still has to go on.
            waiting = next((slot for number in self._circle() if (slot := self._slots[number]) is not None), None)
            if waiting is not None:
                waiting.ask(needed=True)
            self._supply.wait()

    def _refill(self, number: int) -> bool:
        """Whether the slot has rows at hand; at the end of a dataset the next takes its place."""
        while True:
            slot = self._slots[number]
            if slot is None:
                if not self._open(number):
                    return False
            elif slot.ready(wait=False):
                return True
            elif slot.error is not None:
                self._raise_or_leave_out(slot)
            elif slot.ended:
                self._end(number)
            else:
                return False

    def _wait_for(self, number: int) -> int:
        slot = self._slots[number]
        if slot is None:
            return 0
        rows = slot.ready()
        if not rows:
            self._raise_or_leave_out(slot)
        return rows

    def _raise_or_leave_out(self, slot: Slot) -> None:
        """At an element that the function failed for there is nothing; anything else that failed is raised."""
        error = slot.error
        if error is not None:
            if not slot.unmade or not isinstance(error, ForebayError) or not self._skips:
                raise error
            if not self._faults.passes(error):
                raise self._faults.refused(error)
            self._faults.add(error)
            slot.leave_out()

    def _over(self) -> bool:
        return self._feed.ended and not self._saved and not any(self._slots)

    def _circle(self) -> list[int]:
        return [*range(self._slot, len(self._slots)), *range(self._slot)]

    def _next_turn(self) -> None:
        self._slot, self._done = (self._slot + 1) % len(self._slots), 0

    def _can_open(self, number: int) -> bool:
        # A state may hold more slots than there are to be from now on.
        return number < self._cycle and not self._feed.ended

    def _open(self, number: int) -> bool:
        """Have a slot take the next dataset; whether it may, and there is one."""
        return self._can_open(number) and self._take_next(number)

    def _opened(self, number: int) -> Slot | None:
        """The slot with the next dataset ahead of its turn, if that can be had. What fails fails again in its turn."""
        if self._schedule.pending:
            # The log tells when.
            return None
        try:
            return self._slots[number] if self._open(number) else None
        except Exception:
            return None

    def _take_next(self, number: int) -> bool:
        slot = self._slots[number] = self._feed.take()
        if slot is None:
            return False
        self._schedule.opened(number)
        return True

    def _end(self, number: int) -> None:
        self._schedule.ended(number)
        self._release(number)
        if number == self._slot:
            self._next_turn()

    def _release(self, number: int) -> None:
        if (slot := self._slots[number]) is not None:
            slot.close()
            self._slots[number] = None

    def _changed(self) -> DataError:
        return self.site.data_error(
            self._feed.index, "the datasets before it are not as long as when the state was saved: they have changed"
        )

    def _state(self, order: list[int], rows: int) -> Cursor:
        """The first of `rows` rows that come from the slots in this order."""
        slots = [None if slot is None else slot.state() for slot in self._slots]
        state = {**self._feed.state(), "slots": slots, "order": order, "done": self._done, "rows": rows}
        if self._skips:
            state["faults"] = self._faults.count
        if self.free or self._schedule.pending:
            state["log"] = self._schedule.log()
        return Cursor(state)

    def _stop(self) -> None:
        """End the threads, then what they worked on. What an interrupt keeps from ending is still there to be ended."""
        self._woven.drop()
        self._threads.stop()
        self._feed.close()
        for number in range(len(self._slots)):
            self._release(number)
        self._threads.stop_reading()

    def abandon(self) -> None:
        """Inner datasets too."""
        self._feed.abandon()
        for slot in list(self._slots):
            if slot is not None:
                slot.abandon()
        super().abandon()

    def close(self) -> None:
        """Threads and inner datasets before the input."""
        if self._threads.running:
            self.abandon()
        self._stop()
        super().close()
