"""``repeat``: the whole input, again and again."""

from dataclasses import dataclass
from typing import Any

from forebay.block import Block, Cursor
from forebay.plan.check import keep_whole
from forebay.plan.node import INFINITE, Build, Node, Traits
from forebay.run import Operator, Pace, Reader, Setup
from forebay.run.coalesce import coalesce
from forebay.run.log import Starts

# Epochs of one endless repeat; the next iteration of the same dataset counts on from here.
_ENDLESS = 1 << 32


@dataclass(frozen=True, eq=False, kw_only=True)
class Repeat(Node):
    """``Dataset.repeat``; None or -1 repeats for ever."""

    count: int | None

    kind = "repeat"
    traits = Traits(same_elements=True)

    def __post_init__(self) -> None:
        if self.count is not None:
            keep_whole(self, "count", 0, also=(-1,))

    @property
    def rounds(self) -> int | None:
        """How many times, or None for ever."""
        return None if self.count in (None, -1) else self.count

    @property
    def repeats(self) -> bool:
        """If there is more than one round."""
        return self.rounds is None or self.rounds > 1

    def cardinality(self) -> int:
        """The input's, times the rounds."""
        rows, rounds = self.input.cardinality(), self.rounds
        if rounds == 0 or rows == 0:
            return 0
        if rounds is None:
            return INFINITE
        return rows if rows < 0 else rows * rounds

    def is_noop(self) -> bool:
        """Once."""
        return self.rounds == 1

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Seek the input to its start after each round."""
        return _Repeat(self, setup, build(self.input, setup))


class _Repeat(Operator):
    """State: the round and the input's cursor. Every round is an epoch of its own to what shuffles below."""

    def __init__(self, node: Repeat, setup: Setup, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._pace = Pace(setup.block_bytes)
        self._rounds = node.rounds
        self._rows = node.input.cardinality()
        self._epoch = 0
        self._round = 0
        self._empty = True
        self._starts = Starts()

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Whole rounds are skipped by counting where the input's length is known, else by reading."""
        self._epoch = epoch
        state, skip = cursor.state, cursor.skip
        if state is None:
            state = {"round": 0, "in": [None, 0]}
            if self._rows > 0:
                state = {"round": skip // self._rows, "in": [None, skip % self._rows]}
                skip = 0
        self._starts = Starts(state.get("log"))
        self._start(state["round"], Cursor.from_json(state["in"]))
        # A cursor inside the input proves that there are rows, even if none are left after it.
        self._empty = self._empty and cursor.state is None
        return skip

    def _start(self, number: int, cursor: Cursor) -> None:
        self._round = number
        self._empty = cursor.state is None and cursor.skip == 0
        if self._rounds is None or number < self._rounds:
            self._reader.seek(cursor, self._epoch * (self._rounds or _ENDLESS) + number)

    def pull(self) -> Block | None:
        """Blocks of this round, then of the next; short rounds together."""
        return coalesce(self, self._pace, self._next_rows)

    def _next_rows(self) -> Block | None:
        while self._rounds is None or self._round < self._rounds:
            block = self._reader.next()
            if block is not None:
                self._empty = False
                state: dict[str, Any] = {"round": self._round, "in": block.cursor.to_json()}
                if self.free:
                    state["log"] = self._starts.log(self._round, block.cursor)
                return block.at(Cursor(state))
            if self._empty:
                # A round without rows ends it all, or it would never end.
                return None
            self._start(self._round + 1, self._starts.of(self._round + 1))
        return None
