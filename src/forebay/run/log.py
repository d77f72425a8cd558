"""What an operator decided that does not follow from its input, told to the cursors that have to repeat it.

A cursor names a row by a state and a number of rows after it. Where rows come in whatever order they are ready, that
number means something only together with the decisions taken since the state. So a block that was given out in a free
order carries a live log in its cursor's state. As long as anybody holds that cursor, later decisions go into the log,
and once the cursor is written down, all decisions are in it that led to the rows given out until then. Seeking to it
repeats them, and is free again after the last one.
"""

import weakref
from typing import Any

from forebay.block import START, Cursor


class Log(list[Any]):
    """Decisions since a block, in order, each a small JSON value. A list, so that it is written as one."""

    __slots__ = ("__weakref__",)


class Logs:
    """The logs of an operator that somebody still holds. Used by the operator's thread; others may read a log."""

    def __init__(self) -> None:
        self._held: list[weakref.ref[Log]] = []

    def new(self) -> Log:
        """An empty log, which gets what is added from now on."""
        log = Log()
        self._held.append(weakref.ref(log))
        return log

    def held(self) -> list[Log]:
        """Those that decisions have to go into, for an operator that joins a decision to the one before it."""
        if not self._held:
            return []
        logs = [log for held in self._held if (log := held()) is not None]
        if len(logs) < len(self._held):
            self._held = [weakref.ref(log) for log in logs]
        return logs

    def add(self, decision: Any) -> None:
        """Append to every log that is held. The logs share the value: it must not change afterwards."""
        for log in self.held():
            log.append(decision)


class Starts:
    """Where the streams of a free order began that an operator reads one after another, each from its start.

    A cursor in one of them may count rows on into the next, of which it knows nothing. So each one's first cursor,
    which holds a log, goes into the logs of those before it.
    """

    def __init__(self, log: list[Any] | None = None) -> None:
        self._known = {number: Cursor.from_json(at) for number, at in decisions(log)}
        self._logs = Logs()
        self._last = -1

    def of(self, number: int) -> Cursor:
        """Where to seek to for the start of that stream."""
        return self._known.get(number, START)

    def log(self, number: int, cursor: Cursor) -> Log:
        """The log for a block of that stream, which came with this cursor."""
        if number > self._last:
            self._last = number
            self._logs.add([number, cursor.to_json()])
        return self._logs.new()


def decisions(log: list[Any] | None) -> list[Any]:
    """A log's contents at this moment, shared with nobody: what ``seek`` found in a state, live, saved or missing."""
    if log is None:
        return []
    import json

    # One call into C cannot be overtaken by another thread's decision.
    copied: list[Any] = json.loads(json.dumps(log))
    return copied
