"""Rows by number in files whose rows lie behind one another, each in a range of bytes that an index tells."""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import closing

import numpy as np

from forebay.block import Block, Indices
from forebay.errors import FileError, place
from forebay.run.faults import Tolerance
from forebay.sources.files import FileIndex, FileRows, changed
from forebay.storage.files import Bytes, InputFile, open_file
from forebay.storage.marks import MARK, mark_of
from forebay.storage.row_index import RowIndex, load_index, save_index


class SpanIndex(FileIndex):
    """Rows by number. One that cannot be read is a row too, of no bytes, and fails when it is asked for."""

    def __init__(
        self, path: str, checked: str | None, tolerance: Tolerance, build: Callable[[InputFile], RowIndex]
    ) -> None:
        self._path = path
        file = open_file(path)
        try:
            found = load_index(file, checked)
            # One with more faults than are allowed is made again for the error that names the first of those.
            anew = found is None or not tolerance.allows(found.faults)
            if found is None or anew:
                found = build(file)
            # Only files that begin with no row can be of another format, and need a look.
            other = None if len(found.starts) and found.stops[0] else mark_of(_head(path))
            if other is not None and not tolerance.skips:
                raise FileError(path, other)
            # Whoever names all files of a folder would otherwise find an index of an index, and one of that, ...
            if anew and other is None:
                save_index(file, found)
        finally:
            file.close()
        self._rows = found
        self._version = file.version
        self.length = len(found.starts)
        self._opened: InputFile | None = None

    @abstractmethod
    def made(self, data: Bytes, starts: Indices, stops: Indices) -> Block:
        """The rows whose bytes follow one another in `data` as these ranges do; they lie there in the file."""

    @abstractmethod
    def rows_from(self, at: int) -> FileRows:
        """The rows in order, from a place on."""

    def origin(self, row: int) -> str:
        """Where it begins."""
        return place(self._path, int(self._rows.starts[row]))

    def read(self, start: int, stop: int) -> Block:
        """In one piece, where the rows lie in one piece."""
        return self._read(self._rows.starts[start:stop], self._rows.stops[start:stop])

    def gather(self, rows: Indices) -> Block:
        """One read for each run of rows that lie behind one another."""
        return self._read(self._rows.starts[rows], self._rows.stops[rows])

    def _read(self, starts: Indices, stops: Indices) -> Block:
        empty = np.flatnonzero(starts == stops)
        if len(empty):
            raise self.fault(int(starts[empty[0]]))
        if self._opened is None:
            opened = open_file(self._path)
            if opened.version != self._version:
                opened.close()
                raise changed(self._path)
            self._opened = opened
        data = np.empty(int((stops - starts).sum()), np.uint8)
        # Where one begins at the end of the one before, they are read together.
        breaks = np.flatnonzero(starts[1:] != stops[:-1]) + 1
        firsts, lasts = np.concatenate([[0], breaks]), np.concatenate([breaks, [len(starts)]]) - 1
        self._opened.read_ranges(starts[firsts], stops[lasts], data)
        return self.made(data, starts, stops)

    def fault(self, at: int) -> FileError:
        """What reading in order says about that place."""
        rows = self.rows_from(at)
        try:
            rows.read(1)
        except FileError as error:
            return error
        finally:
            rows.close()
        return FileError(self._path, "has changed since its index was made", at)


def _head(path: str) -> bytes:
    # Whoever made the index has closed the file.
    with closing(open_file(path)) as file:
        head = np.empty(min(MARK, file.size), np.uint8)
        return head[: file.read_at(0, head)].tobytes()
