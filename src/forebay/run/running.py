"""What an iterator runs, and how that ends."""

import time

from forebay.block import Cursor
from forebay.heaps import give_back
from forebay.ledger import Ledger
from forebay.remote_run import RemoteRun
from forebay.run.crew import Crew
from forebay.run.operator import Operator
from forebay.run.reader import Reader
from forebay.run.spill_room import SpillStore
from forebay.run.stats import Stats, stats_of


class Running:
    """The operators of an iterator, apart from it, so that they can be closed when it is gone."""

    def __init__(self, crew: Crew, ledger: Ledger, spill: SpillStore) -> None:
        self._crew = crew
        self.operator: Operator | None = None
        self._remote: RemoteRun | None = None
        self._ledger = ledger
        self._spill = spill
        self._began = 0.0
        self._stats = Stats()

    def start(self, operator: Operator, remote: RemoteRun, cursor: Cursor, epoch: int) -> Reader:
        """Go over to other operators; if they cannot seek to the cursor, stay with those there are."""
        reader = Reader(operator)
        try:
            reader.seek(cursor, epoch)
        except BaseException:
            remote.closing = True
            operator.close()
            remote.closed = True
            raise
        self.close()
        self.operator, self._remote = operator, remote
        self._ledger.enter(self)
        self._began = time.perf_counter()
        return reader

    def stats(self) -> Stats:
        """Of the operators there are, or of those there were."""
        operator = self.operator  # Whoever asks may be on another thread than the one that closes.
        if operator is None:
            return self._stats
        stats = stats_of(operator)
        stats.on_disk = self._spill.peak + self._spill.beside
        return stats

    def abandon(self) -> None:
        """Have a thread that waits for these operators get an error soon. Closes nothing under its hands."""
        operator, remote = self.operator, self._remote
        if remote is not None:
            remote.closing = True
        if operator is not None:
            operator.abandon()

    def close(self) -> None:
        """Stop all work and release what is held."""
        if self.operator is not None:
            self._stats = self.stats()
            if self._remote is not None:
                # Threads that wait for a server are to be joined too.
                self._remote.closing = True
            # Forgotten only afterwards: what an interrupt cuts short is done again by whoever closes next.
            self.operator.close()
            self.operator = None
            self._ledger.leave(self)
            if self._remote is not None:
                self._remote.closed = True
            if not self._crew.finished:
                # Steps that came to their end on the way have left workers, which nobody may ever need again.
                self._crew.parking.clear()
            # After the end the next epoch is likely to follow.
            give_back(self._ledger.peak, time.perf_counter() - self._began if self._crew.finished else None)
