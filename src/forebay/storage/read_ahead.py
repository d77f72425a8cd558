"""A file behind a URL, read from front to back: what comes next is asked for before it is needed.

Nothing else differs: the same bytes come, and where the budget leaves no room, they come when they are asked for.
"""

import hashlib
from collections import deque
from typing import TYPE_CHECKING

from forebay.ledger import Lease
from forebay.storage.fetch import Fetch, damaged
from forebay.storage.input_file import Bytes, InputFile

if TYPE_CHECKING:
    from forebay.storage.remote import RemoteFile

# Less than this is not worth a request of its own.
_LEAST = 1 << 16
# The part of the whole budget that one file may have ahead.
_SHARE = 8


class ReadAhead(InputFile):
    """For one reader. It begins to look ahead when a second read follows the first, and goes twice as far each time."""

    def __init__(self, file: "RemoteFile", lease: Lease) -> None:
        self.path, self.size, self.piece, self.version = file.path, file.size, file.piece, file.version
        self._file = file
        self._lease = lease
        most = file.run.options.read_ahead
        assert isinstance(most, int)
        self._most = min(most, lease.budget // _SHARE)
        self._fetches: deque[Fetch] = deque()
        self._at = 0  # Where the reader stands,
        self._end = 0  # and up to where bytes have been asked for.
        self._depth = 0
        self._sum = hashlib.md5(usedforsecurity=False)
        self._summed = 0

    def read_at(self, offset: int, into: Bytes) -> int:
        """From what is under way, and what is missing in addition."""
        stop = min(offset + len(into), self.size)
        if stop <= offset:
            return 0
        if offset != self._at:
            self._drop()
            self._at = self._end = offset
        try:
            self._ask(stop)
            self._fill(into[: stop - offset])
        except BaseException:
            # Whoever asks again begins anew.
            self._drop()
            self._end = self._at
            raise
        self._add_up(offset, into[: stop - offset])
        self._at = stop
        self._end = max(self._end, stop)
        self._lease.note(self._end - stop)
        self._depth = min(max(2 * self._depth, stop - offset), self._most)
        return stop - offset

    def _fill(self, into: Bytes) -> None:
        done = 0
        while done < len(into):
            if not self._fetches:
                self._file.read_at(self._at + done, into[done:])
                return
            done += self._fetches[0].read(into[done:])
            if self._fetches[0].at == self._fetches[0].stop:
                self._fetches.popleft()

    def _ask(self, stop: int) -> None:
        """Have requests under way up to behind `stop`, if that is worth while and the budget has room for it."""
        depth = self._depth
        if self._end - stop > depth // 2:
            return
        while depth >= _LEAST and not self._lease.ask(min(stop + depth, self.size) - self._at):
            depth //= 2
        until = min(stop + depth, self.size)
        if depth < _LEAST or until - self._end < min(_LEAST, self.size - self._end):
            return
        while self._end < until:
            end = min(self._end + self.piece, until)
            self._fetches.append(self._file.fetch(self._end, end))
            self._end = end

    def _add_up(self, offset: int, data: Bytes) -> None:
        """The sum of all bytes, as long as none is left out; at the end it has to be that of the store."""
        if offset != self._summed or self._file.md5 is None or len(data) == self.size:
            # What is read at once is looked at by the file itself.
            self._summed = -1
            return
        total = self._sum.copy()
        total.update(data.data)
        if offset + len(data) == self.size and total.hexdigest() != self._file.md5:
            raise damaged(self.path, offset)
        self._sum, self._summed = total, offset + len(data)

    def _drop(self) -> None:
        self._depth = 0
        while self._fetches:
            self._fetches.popleft().cancel()
        self._lease.release()

    def close(self) -> None:
        """What is under way is given up."""
        self._drop()
