"""Lines of text: ``TextLineDataset``.

A line's place in an uncompressed file is its offset, so resuming is a seek; a compressed file is unfolded again up to
there. Uncompressed files can be read by number with an index: where every line begins, which takes 8 bytes for each.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay._native import scan_lines
from forebay.block import LEAF, Block, Indices, TensorSpec
from forebay.block.ragged import gather
from forebay.block.spans import Spans
from forebay.block.spec import BYTES
from forebay.block.strings import Strings
from forebay.errors import FileError, PlanError, place
from forebay.ledger import Lease
from forebay.plan.check import flag
from forebay.run import Setup
from forebay.sources.files import FileIndex, FileRows
from forebay.sources.streamed import StreamedFiles, StreamedRows
from forebay.storage.files import Bytes, InputFile, open_file
from forebay.storage.marks import MARK, mark_of

_INDEX_PIECE = 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class TextLines(StreamedFiles):
    """The lines of files, as bytes."""

    index_files: bool = False

    kind = "TextLineDataset"
    in_lines = True

    def __post_init__(self) -> None:
        super().__post_init__()
        flag(self.kind, "index", self.index_files)
        if self.index_files and self.compression is not None:
            raise PlanError(
                f"TextLineDataset(compression_type={self.compression!r}, index=True): compressed files can only be "
                "read from the start on; leave one of the two out"
            )

    def params(self) -> dict[str, Any]:
        """What decides about the rows."""
        return {name: value for name, value in super().params().items() if name != "index_files"}

    def settings(self) -> dict[str, Any]:
        """How they are read."""
        return super().settings() | {"index": self.index_files or None}

    def spec(self, *inputs: Any) -> TensorSpec:
        """A line."""
        return TensorSpec((), BYTES)

    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """From an offset on."""
        return _Lines(self, path, at or 0, lease, setup)

    def counted(self) -> tuple[str, ...] | None:
        """With an index, which compressed files cannot have."""
        return None if self.compression is not None else () if self.index_files else ("with index=True",)

    def index(self, path: str) -> FileIndex | None:
        """If the user wants one."""
        return _IndexedLines(open_file(path)) if self.index_files else None


class _Lines(StreamedRows):
    def read(self, rows: int) -> Block | None:
        """As many whole lines as are at hand."""
        self.show(rows)
        starts, stops = np.empty(rows, np.int64), np.empty(rows, np.int64)
        while self.window.size:
            data = self.window.data
            count, consumed = scan_lines(data, self.last, starts, stops)
            if count:
                starts, stops = starts[:count], stops[:count]
                if 2 * consumed < len(data):
                    # Not worth keeping all of the window for.
                    block = lines_block(data, starts, stops)
                else:
                    block = Block(LEAF, [Spans(self.window.lend(), starts, stops)], count)
                self.used(count, consumed)
                return block
            self.show_more()
        return None

    def recover(self) -> bool:
        """Behind a line that was too long; not at all if the file's compressed data is damaged."""
        try:
            return self.next_line()
        except FileError:
            return False


class _IndexedLines(FileIndex):
    """Lines by number. The file is read once for where they begin."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        begins = [np.zeros(1, np.int64)]
        piece = np.empty(min(max(file.size, 1), max(file.piece, _INDEX_PIECE)), np.uint8)
        at = 0
        while at < file.size:
            got = file.read_at(at, piece)
            if not got:
                raise FileError(file.path, "has become shorter", at)
            if at == 0 and (what := mark_of(piece[:MARK].tobytes())) is not None:
                raise FileError(file.path, what)
            begins.append(np.flatnonzero(piece[:got] == ord("\n")) + (at + 1))
            at += got
        places = np.concatenate(begins)
        # The last of them is the end of the file, whether or not a line feed stands there.
        self._places = places if int(places[-1]) == file.size else np.append(places, file.size)
        self.length = len(self._places) - 1

    def origin(self, row: int) -> str:
        """Where it begins."""
        return place(self._file.path, int(self._places[row]), row + 1)

    def read(self, start: int, stop: int) -> Block:
        """In one piece."""
        return self._lines(self._places[start:stop], self._places[start + 1 : stop + 1])

    def gather(self, rows: Indices) -> Block:
        """One read for each line, without the interpreter's lock."""
        return self._lines(self._places[rows], self._places[rows + 1])

    def _lines(self, begins: Indices, ends: Indices) -> Block:
        data = np.empty(int((ends - begins).sum()), np.uint8)
        together = bool((begins[1:] == ends[:-1]).all())
        if together:
            self._file.read_ranges(begins[:1], ends[-1:], data)
        else:
            self._file.read_ranges(np.ascontiguousarray(begins), np.ascontiguousarray(ends), data)
        stops = np.cumsum(ends - begins)
        return lines_block(data, *_without_ends(data, stops - (ends - begins), stops))


def _without_ends(data: Bytes, starts: Indices, stops: Indices) -> tuple[Indices, Indices]:
    """The same ranges without a line feed at the end, and without a carriage return before that."""
    fed = (stops > starts) & (data[np.maximum(stops - 1, 0)] == ord("\n"))
    stops = stops - fed
    returned = fed & (stops > starts) & (data[np.maximum(stops - 1, 0)] == ord("\r"))
    stops = stops - returned
    return starts, stops


def lines_block(data: Bytes, starts: Indices, stops: Indices) -> Block:
    """A block of the bytes in these ranges."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    return Block(LEAF, [Strings(gather(data, starts, stops), offsets, (), False)], len(starts))
