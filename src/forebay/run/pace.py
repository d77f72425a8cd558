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
# Times differ for other reasons too: later blocks with more or fewer rows by this part count as well, so much each.
_OTHER = 0.25
_WEIGHT = 0.3
# On workers nobody waits for a single block, and each has to be handed over and back.
MAX_SECONDS_AHEAD = 0.05
GROWTH = 4
# Rows may turn out larger than those before them, by which their number was chosen: so many times the size of a block
# are enough for one.
ENOUGH_BLOCKS = 4
# A unit that is larger than so many blocks is put together from smaller ones: one copy more, but far less held by
# every step on the way.
UNIT_BLOCKS = 4
# Threads make larger blocks, as long as those of all of them are a small part of the budget. Each time that one is
# handed over, whoever asks for it holds the interpreter's lock for a while, and functions that let go of it want it
# back several times a row.
_ON_THREADS = 4
_PART = 64


def on_threads_bytes(block_bytes: int, workers: int, budget: int) -> int:
    """The size of blocks that are made on so many threads."""
    return block_bytes if workers < 2 else max(block_bytes, min(_ON_THREADS * block_bytes, budget // (_PART * workers)))


class Pace:
    """Starts small, so that the first rows come at once, and grows to blocks of the target size.

    The answers depend on clocks and sizes, so nothing may follow from them but where blocks are cut.
    """

    def __init__(self, block_bytes: int, unit: int = 1, first: int = 1, seconds: float = MAX_SECONDS) -> None:
        self.block_bytes = block_bytes
        self._unit = unit
        self._seconds = seconds
        self._last: tuple[int, float] | None = None  # Rows of the block before, and its seconds.
        self._tried = False  # Whether it was tried how many of these a block takes in any case,
        self._fixed: float | None = None  # and how many that are, once that is known.
        self.rows = max(unit, first)

    @staticmethod
    def in_time(began: float) -> bool:
        """Whether there is time left for more rows in a block that was begun then."""
        return time.perf_counter() - began < MAX_SECONDS

    def observe(self, rows: int, nbytes: int, seconds: float, computing: bool = False) -> None:
        """Learn from rows just made. Reads the size of the next block from `rows` afterwards.

        Who was `computing` all the time needs it for every row.
        """
        fitting = self.block_bytes * rows // max(nbytes, 1)
        if self._tried:
            self._learn(rows, seconds)
        self._last = rows, seconds
        fixed = self._fixed or 0.0
        limit = min(max(self.rows, rows) * (2 if fixed else GROWTH), MAX_ROWS, fitting)
        by_rows = seconds - fixed
        # As long for the rows as for what comes with any number of them: more would gain little, should that be wrong.
        in_time = int(max(self._seconds, fixed) * rows / by_rows) if by_rows > 0 else limit
        if in_time < rows and not computing and not self._tried and seconds <= _TRIED_SECONDS:
            self._tried = True
            in_time = 2 * rows
        if in_time < self._unit or fitting * UNIT_BLOCKS < self._unit:
            # Rows that take so long each, or so much memory, do not wait until a whole unit is there.
            self.rows = max(min(limit, in_time), 1)
        else:
            self.rows = max(min(limit, in_time) // self._unit, 1) * self._unit

    def grown(self, row_bytes: int) -> int:
        """Rows of a block of the target size, if they take no time."""
        pace = Pace(self.block_bytes, self._unit)
        pace.observe(MAX_ROWS, MAX_ROWS * row_bytes, 0.0)
        return pace.rows

    def _learn(self, rows: int, seconds: float) -> None:
        """Compare a block with the one before it: what did it take that had nothing to do with its rows?"""
        assert self._last is not None
        if self._fixed == 0.0 or abs(rows - self._last[0]) < _OTHER * rows:
            return
        (fewer, short), (more, long) = sorted([self._last, (rows, seconds)])
        fixed = short - max(long - short, 0.0) / (more - fewer) * fewer
        if self._fixed is None:
            # Only if that was most of it.
            self._fixed = fixed if fixed > short / 2 else 0.0
        else:
            self._fixed += _WEIGHT * (max(fixed, 0.0) - self._fixed)
            if self._fixed < self._seconds / 2:
                self._fixed = 0.0
