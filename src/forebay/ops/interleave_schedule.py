"""Whose turn it is in ``interleave``: how slots take turns, and in which order they have, where rows do not tell."""

from collections import deque
from dataclasses import dataclass
from math import gcd, lcm
from typing import Any

from forebay.block import Cursor
from forebay.run.log import Log, Logs, decisions
from forebay.run.weave import shares

ENDLESS = 1 << 62
"""The length of a turn that lasts as long as its dataset."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """So many `slots` take turns of `turn` rows; `threads` fetch them and open as many datasets ahead. If they are
    `tuned`, others may do so later; if `hesitant`, none do before it shows that they are of use.

    With `free_order` whichever slots have rows take turns. A cursor tells where each slot is, so the others may
    differ from those it was saved under, and the number of slots too, where turns are endless.
    """

    slots: int
    turn: int
    threads: int
    free_order: bool
    tuned: bool = False
    hesitant: bool = False

    def even(self, unit: int) -> int:
        """Of how many rows all slots have to give a multiple, so that together they make whole turns and units."""
        return 1 if self.turn == ENDLESS else lcm(self.turn, unit // gcd(unit, self.slots))


class Schedule:
    """Decisions that a log says to repeat, and the logs that get told of new ones.

    There are four kinds of decision: ``[rows, done, *order]``, so many rows were taken from the slots in this order,
    `done` rows of the first one's turn having been taken before; ``number``, a slot took the next dataset;
    ``~number``, a slot's dataset ended; ``{"index": i, "at": cursor}``, the dataset of element i began there.
    The last is told only of datasets that come in a free order themselves: their cursors hold a log of their own.
    """

    def __init__(self, turn: int, log: list[Any] | None) -> None:
        entries = decisions(log)
        self._turn = turn
        self._logs = Logs()
        self._expected: tuple[int, list[int]] | None = None  # With which the last decision would simply go on.
        self.pending: deque[Any] = deque(entry for entry in entries if not isinstance(entry, dict))
        self.starts = {entry["index"]: Cursor.from_json(entry["at"]) for entry in entries if isinstance(entry, dict)}

    def repeated(self, rows: int) -> None:
        """So many rows of the first decision have been taken."""
        planned, done, *order = self.pending[0]
        if rows == planned:
            self.pending.popleft()
        else:
            _, first, done = shares(rows, done, self._turn, len(order))
            self.pending[0] = [planned - rows, done, *order[first:], *order[:first]]

    def log(self) -> Log:
        """A log of the decisions from now on."""
        return self._logs.new()

    def took(self, rows: int, done: int, order: list[int]) -> None:
        """Tell that rows are taken. Whatever is told here must be true before the rows are given out."""
        logs = self._logs.held()
        if logs:
            goes_on = self._expected == (done, order)
            for log in logs:
                # One number instead of one entry for every block, as long as the same slots have rows.
                if goes_on and log:
                    log[-1][0] += rows
                else:
                    log.append([rows, done, *order])
            _, first, done = shares(rows, done, self._turn, len(order))
            self._expected = (done, [*order[first:], *order[:first]])

    def opened(self, number: int) -> None:
        """Tell that a slot has taken the next dataset."""
        self._add(number)

    def ended(self, number: int) -> None:
        """Tell that a slot's dataset has ended."""
        self._add(~number)

    def began(self, index: int, at: Cursor) -> None:
        """Tell where the rows of an element's dataset begin."""
        self._add({"index": index, "at": at.to_json()})

    def _add(self, decision: Any) -> None:
        self._expected = None
        self._logs.add(decision)
