"""How many rows to make into the next block."""

import time

# Per-block work costs some ten microseconds; beyond this many rows it no longer shows in the cost of a row.
MAX_ROWS = 16384
# Slow functions: rows that take longer together than this come out in smaller blocks, so that the consumer,
# a checkpoint or a close never waits long for the rest of one.
MAX_SECONDS = 0.02
# A block may take long however many rows it has, as a request to a server does. To find out, one that takes up to so
# many seconds is followed by one of twice the rows.
_TRIED_SECONDS = 0.5
# On workers nobody waits for a single block, and each has to be handed over and back.
MAX_SECONDS_AHEAD = 0.05
GROWTH = 4
# Rows may turn out larger than those before them, by which their number was chosen: so many times the size of a block
# are enough for one.
ENOUGH_BLOCKS = 4
# A unit that is larger than so many blocks is put together from smaller ones: one copy more, but far less held by
# every step on the way.
UNIT_BLOCKS = 4


class Pace:
    """Starts small, so that the first rows come at once, and grows to blocks of the target size.

    The answers depend on clocks and sizes, so nothing may follow from them but where blocks are cut.
    """

    def __init__(self, block_bytes: int, unit: int = 1, first: int = 1, seconds: float = MAX_SECONDS) -> None:
        self.block_bytes = block_bytes
        self._unit = unit
        self._seconds = seconds
        self._tried: tuple[int, float] | None = None  # A block that took long: its rows, and its seconds ...
        self._fixed: float | None = None  # ... and how many of these a block takes in any case, once that is known.
        self.rows = max(unit, first)

    @staticmethod
    def in_time(began: float) -> bool:
        """Whether there is time left for more rows in a block that was begun then."""
        return time.perf_counter() - began < MAX_SECONDS

    def observe(self, rows: int, nbytes: int, seconds: float) -> None:
        """Learn from rows just made. Reads the size of the next block from `rows` afterwards."""
        fitting = self.block_bytes * rows // max(nbytes, 1)
        limit = min(self.rows * GROWTH, MAX_ROWS, fitting)
        if self._tried is not None and self._fixed is None and rows > self._tried[0]:
            self._fixed = self._in_any_case(rows, seconds)
        by_rows = seconds - (self._fixed or 0.0)
        in_time = int(self._seconds * rows / by_rows) if by_rows > 0 else limit
        if in_time < rows and self._tried is None and seconds <= _TRIED_SECONDS:
            self._tried = rows, seconds
            in_time = 2 * rows
        if in_time < self._unit or fitting * UNIT_BLOCKS < self._unit:
            # Rows that take so long each, or so much memory, do not wait until a whole unit is there.
            self.rows = max(min(limit, in_time), 1)
        else:
            self.rows = max(min(limit, in_time) // self._unit, 1) * self._unit

    def _in_any_case(self, rows: int, seconds: float) -> float:
        """What a block took that had nothing to do with its rows, if that was most of it."""
        assert self._tried is not None
        fewer, before = self._tried
        fixed = before - max(seconds - before, 0.0) / (rows - fewer) * fewer
        return fixed if fixed > before / 2 else 0.0
