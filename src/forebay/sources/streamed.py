"""What formats share whose files are read from front to back, plain or compressed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay._native import scan_lines
from forebay.errors import FileError
from forebay.ledger import Lease, Ledger
from forebay.plan.check import keep_whole
from forebay.run import Setup
from forebay.sources.files import FileRows, FilesNode
from forebay.storage.files import open_file
from forebay.storage.marks import MARK, mark_of
from forebay.storage.streams import Window, compression_of, open_stream

# A little more than rows will take, so that blocks come out as large as they were asked for.
_AHEAD = 1.03
_LOOK_BYTES = 64 << 20
_LOOK_PIECE = 1 << 16


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamedFiles(FilesNode):
    """Files whose place is an offset in their contents."""

    compression: str | None = None
    buffer_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "compression", compression_of(self.kind, self.compression))
        if self.buffer_size is not None:
            keep_whole(self, "buffer_size", 0)

    @property
    def counts_lines(self) -> bool:
        """Not in what has to be unfolded for it."""
        return self.in_lines and self.compression is None

    def params(self) -> dict[str, Any]:
        """What decides about the rows."""
        return {name: value for name, value in super().params().items() if name != "buffer_size"}

    def settings(self) -> dict[str, Any]:
        """How they are read."""
        return {"buffer_size": self.buffer_size}


@dataclass(frozen=True, slots=True)
class Look:
    """A file whose start is looked at before there is a plan, to find out what is in it.

    It is read within a small budget of its own, whatever is in it.
    """

    path: str
    compression: str | None
    buffer_size: int | None = None

    def setup(self) -> Setup:
        """How it is read."""
        return Setup(block_bytes=_LOOK_PIECE, ledger=Ledger(_LOOK_BYTES))


class StreamedFile:
    """An open file behind a window."""

    text = True
    """Whether files that begin with the mark of a binary format must be a mistake."""

    def __init__(self, node: StreamedFiles | Look, path: str, at: int, lease: Lease, setup: Setup) -> None:
        self.path = path
        self._file = open_file(path)
        try:
            stream = open_stream(self._file, node.compression, lease, at)
        except FileError:
            self._file.close()
            raise
        piece = node.buffer_size or setup.block_bytes
        if node.compression is None:
            # A small file needs no more than its size.
            piece = max(min(piece, self._file.size), 1)
        self._budget = setup.ledger.budget
        self.window = Window(stream, path, lease, piece, self._budget)
        self.last = False
        """Whether the window shows all that is left of the file."""
        self._row_bytes = 0.0
        if self.text and at == 0 and node.compression is None:
            try:
                self._check_text()
            except FileError:
                self.close()
                raise

    def _check_text(self) -> None:
        self.window.fill(min(MARK, self._budget))
        what = mark_of(self.window.data[:MARK].tobytes())
        if what is not None:
            raise FileError(self.path, what)

    @property
    def at(self) -> int:
        """The offset of the next row."""
        return self.window.position

    def show(self, rows: int) -> None:
        """Have about so many rows in the window, going by the size of the last ones."""
        try:
            self.window.fill(int(rows * self._row_bytes * _AHEAD) + 1)
        except FileError:
            # What is there already comes out first.
            if not self.window.size:
                raise

    def used(self, rows: int, consumed: int) -> None:
        """Go on behind these rows."""
        self._row_bytes = consumed / rows
        self.window.move(consumed)

    def show_more(self) -> None:
        """Have more in the window, for a row that is not whole; or know that there is no more."""
        size = self.window.size
        # Twice as much at a time, so that a long row is not looked at again and again; the last step goes as far as
        # the budget does.
        wanted = max(min(2 * size, self._budget), size + 1)
        self.last = self.window.fill(wanted) == size

    def next_line(self) -> bool:
        """Go behind the next line feed, however far away; whether anything is there."""
        start, stop = np.empty(1, np.int64), np.empty(1, np.int64)
        while self.window.fill():
            count, consumed = scan_lines(self.window.data, False, start, stop)
            self.window.move(consumed if count else self.window.size)
            if count:
                return self.window.fill() > 0
        return False

    def close(self) -> None:
        """The file and the window."""
        self.window.close()
        self._file.close()


class StreamedRows(StreamedFile, FileRows):
    """The rows that a format finds in what the window shows."""

    @property
    def offset(self) -> int:
        """Where the next row begins."""
        return self.at
