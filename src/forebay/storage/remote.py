"""Files behind URLs: ranges of their bytes, asked for several at a time, checked, and asked for again if need be."""

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from forebay.errors import FileError
from forebay.ledger import Lease
from forebay.remote_run import current
from forebay.storage.backends import Backend, backend_of
from forebay.storage.connect import connect
from forebay.storage.effort import asked
from forebay.storage.fetch import Fetch, damaged
from forebay.storage.input_file import Bytes, InputFile
from forebay.storage.read_ahead import ReadAhead

PIECE = 4 << 20
# Ranges so near to each other are asked for together: bytes in between cost less than another request.
_GAP = 1 << 16
# What may be under way at once, however little of it was asked for.
_LEAST_UNDER_WAY = 1 << 20


class RemoteFile(InputFile):
    """Ranges of an object. Nothing is kept: what is read is read again if it is asked for again.

    It goes by the options that were in force when it was opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.piece = PIECE
        self.run = current()
        self._process = os.getpid()
        self._backend = backend_of(path, *connect(path))
        info = asked(path, self.run, self._backend.describe)
        if info.get("type") == "directory":
            raise FileError(path, "is a folder")
        size, self.version = self._backend.learn(info)
        if size is None:
            raise FileError(path, "its size is not known; copy it to a place that tells")
        self.size = size

    @property
    def backend(self) -> Backend:
        """That of this process: connections are no use behind a fork."""
        if self._process != os.getpid():
            backend = backend_of(self.path, *connect(self.path))
            backend.learn(asked(self.path, self.run, backend.describe))
            self._backend, self._process = backend, os.getpid()
        return self._backend

    @property
    def md5(self) -> str | None:
        """Of all bytes, if the store tells and it is to be looked at."""
        return self._backend.md5 if self.run.options.checksum else None

    def fetch(self, start: int, stop: int) -> Fetch:
        """Ask for a range."""
        return Fetch(self.backend, self.run, start, stop)

    def read_at(self, offset: int, into: Bytes) -> int:
        """In pieces, several of which are under way at once. All of the file at once is held against its sum."""
        done = self._read(offset, into)
        if offset == 0 and done == self.size and self._differs(into[:done]):
            # A byte that was changed on the way is right the next time.
            self._read(offset, into)
            if self._differs(into[:done]):
                raise damaged(self.path, offset)
        return done

    def _differs(self, data: Bytes) -> bool:
        known = self.md5
        return known is not None and hashlib.md5(data.data, usedforsecurity=False).hexdigest() != known

    def _read(self, offset: int, into: Bytes) -> int:
        stop = min(offset + len(into), self.size)
        pieces = [(at, min(at + self.piece, stop)) for at in range(offset, stop, self.piece)]
        done = 0
        for fetch in self._under_way(pieces, len(into)):
            done += fetch.read(into[done:])
        return done

    def read_ranges(self, starts: NDArray[np.int64], stops: NDArray[np.int64], into: Bytes) -> None:
        """Those that are near to each other together."""
        if len(stops) and int(stops.max()) > self.size:
            raise FileError(self.path, "has become shorter", int(starts[int(stops.argmax())]))
        wanted = stops > starts
        starts, stops = starts[wanted], stops[wanted]
        if not len(starts):
            return
        groups = list(_groups(starts.tolist(), stops.tolist(), self.piece))
        spans = [(int(starts[first]), int(stops[last - 1])) for first, last in groups]
        done = 0
        for (first, last), fetch in zip(groups, self._under_way(spans, len(into))):
            for row in range(first, last):
                fetch.skip(int(starts[row]) - fetch.at)
                done += fetch.read(into[done : done + int(stops[row] - starts[row])])

    def _under_way(self, spans: Iterable[tuple[int, int]], wanted: int) -> Iterator[Fetch]:
        """Fetches in this order, with as many of the next under way as may be: no more bytes than were asked for."""
        most = self.run.options.requests
        assert most is not None
        rest = deque(spans)
        started: deque[Fetch] = deque()
        try:
            while rest or started:
                while rest and len(started) < most:
                    held = sum(fetch.stop - fetch.at for fetch in started)
                    if started and held + rest[0][1] - rest[0][0] > max(wanted, _LEAST_UNDER_WAY):
                        break
                    started.append(self.fetch(*rest.popleft()))
                yield started[0]
                started.popleft()
        finally:
            for fetch in started:
                fetch.cancel()

    def in_order(self, lease: Lease) -> InputFile:
        """With a part of what comes next under way already."""
        return ReadAhead(self, lease.beside())

    def close(self) -> None:
        """There is nothing to close: fsspec keeps connections by itself."""


def _groups(starts: list[int], stops: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Runs of ranges that are best asked for together: the numbers of the first, and of the one behind the last."""
    first = 0
    for row in range(1, len(starts)):
        gap = starts[row] - stops[row - 1]
        if not 0 <= gap <= _GAP or stops[row] - starts[first] > most:
            yield first, row
            first = row
    yield first, len(starts)
