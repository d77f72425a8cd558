"""TFRecord files: ``TFRecordDataset``.

A record's place in an uncompressed file is its offset, so resuming is a seek; a compressed file is unfolded again up
to there. Uncompressed files can be read by number with an index, which is kept beside the file.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from forebay._native import Errands, find_header, scan_records
from forebay.block import LEAF, Block, Indices, TensorSpec
from forebay.block.spans import Spans
from forebay.block.spec import BYTES
from forebay.block.strings import Strings
from forebay.errors import FileError, PlanError, RemoteError
from forebay.ledger import Lease, Ledger
from forebay.plan.check import flag, keep_whole
from forebay.run import Setup
from forebay.run.faults import Faults
from forebay.sources.files import FileIndex, FileRows, FilesNode
from forebay.sources.span_index import SpanIndex
from forebay.storage.files import Bytes, InputFile, open_file
from forebay.storage.marks import MARK, mark_of
from forebay.storage.row_index import RowIndex
from forebay.storage.streams import Window, compression_of, open_stream

CHECKED = "checksums"
"""What all records of an index have been found good by, if damaged ones are left out."""
HEADER, FRAMING = 12, 16
_ROWS, _MORE, _BAD_LENGTH, _BAD_DATA = range(4)
_WHY = {
    _BAD_LENGTH: "a record's length does not match its checksum: the file is damaged here, or is no TFRecord file "
    "(or is compressed: compression_type)",
    _BAD_DATA: "a record's bytes do not match their checksum",
}
# A part of the memory that framing may take.
_WASTE = 4
# Records of this size all come with the first block.
_FIRST = 128
# Files whose records are so large that a window holds fewer are not read ahead: each would take a buffer of its own.
_SEVERAL = 4
# A search for the next record need not look at more than this at once.
_SEARCH = 1 << 18


@dataclass(frozen=True, eq=False, kw_only=True)
class TFRecords(FilesNode):
    """The records of files, as bytes."""

    compression: str | None = None
    buffer_size: int | None = None
    index_files: bool = False

    kind = "TFRecordDataset"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "compression", compression_of(self.kind, self.compression))
        if self.buffer_size is not None:
            keep_whole(self, "buffer_size", 0)
        flag(self.kind, "index", self.index_files)
        if self.index_files and self.compression is not None:
            raise PlanError(
                f"TFRecordDataset(compression_type={self.compression!r}, index=True): compressed files can only be "
                "read from the start on; leave one of the two out"
            )

    def params(self) -> dict[str, Any]:
        """What decides about the rows."""
        return {name: value for name, value in super().params().items() if name not in ("buffer_size", "index_files")}

    def settings(self) -> dict[str, Any]:
        """How they are read."""
        return {"buffer_size": self.buffer_size, "index": self.index_files or None}

    def spec(self, *inputs: Any) -> TensorSpec:
        """A record."""
        return TensorSpec((), BYTES)

    def first(self, setup: Setup) -> int:
        """What is read at first is looked at as a whole, which takes a small part of the time that reading it takes."""
        return max(setup.first, setup.block_bytes // _FIRST)

    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """From an offset on."""
        piece = self.buffer_size or setup.block_bytes
        return _Records(open_file(path), self.compression, at or 0, lease, piece, setup.ledger.budget, setup.ahead)

    def counted(self) -> tuple[str, ...] | None:
        """With an index, which compressed files cannot have."""
        return None if self.compression is not None else () if self.index_files else ("with index=True",)

    def index(self, path: str) -> FileIndex | None:
        """If the user wants one."""
        return _Indexed(path, self) if self.index_files else None


class _Records(FileRows):
    """Records in order. What has been read waits in a window."""

    def __init__(
        self,
        file: InputFile,
        compression: str | None,
        at: int,
        lease: Lease,
        piece: int,
        budget: int,
        ahead: Errands | None = None,
    ) -> None:
        self._file = file
        self._ahead = ahead
        try:
            stream = open_stream(file, compression, lease, at)
        except FileError:
            file.close()
            raise
        if compression is None:
            # A small file needs no more than its size.
            piece = max(min(piece, file.size), 1)
        self._window = Window(stream, file.path, lease, piece, budget)
        self._row_bytes = 0.0  # Of the last block, framing included.
        self._fault: int | None = None
        self._length = 0  # Of the record that is at fault.
        self._starts = self._stops = np.empty(0, np.int64)

    @property
    def at(self) -> int:
        """The offset of the next record."""
        return self._window.position

    @property
    def offset(self) -> int:
        """The same."""
        return self.at

    def read(self, rows: int) -> Block | None:
        """A block of about as many records as are asked for, whatever their size was so far."""
        # A little more than they will take, so that blocks come out as large as they were asked for; but they may be
        # smaller than those before, so that this alone is never too much.
        try:
            self._window.fill(self._enough(rows))
        except FileError:
            # What is there already comes out first, however much was asked for.
            if not self._window.size:
                raise
        if not self._window.size:
            return None
        while True:
            found = self._came(rows) or self._scan(rows, verify=True)
            if found[0]:
                block = self._block(*found)
                if self._ahead is not None and _SEVERAL * self._row_bytes <= self._window.piece:
                    self._starts, self._stops = np.empty(rows, np.int64), np.empty(rows, np.int64)
                    self._window.read_ahead(self._ahead, self._enough(rows), self._starts, self._stops)
                return block
            self._need()

    def _enough(self, rows: int) -> int:
        """Bytes that so many records are likely to take."""
        return min(int(rows * self._row_bytes * 1.01) + HEADER, self._window.most)

    def _came(self, rows: int) -> tuple[int, int] | None:
        """What ``_scan`` would find, if that has been found out already."""
        count, consumed = self._window.found
        if not count:
            return None
        self._fault, self._length = None, 0
        return (count, consumed) if count <= rows else (rows, int(self._stops[rows - 1]) + FRAMING - HEADER)

    def spans(self, rows: int, verify: bool) -> "tuple[Indices, Indices] | None":
        """Where the next records begin and end, framing included, without reading more of large ones than need be."""
        if not self._window.fill(HEADER):
            return None
        while True:
            base = self._window.position
            count, consumed = self._scan(rows, verify)
            if count:
                self._window.move(consumed)
                return self._starts[:count] + (base - HEADER), self._stops[:count] + (base + FRAMING - HEADER)
            left = self._window.left
            if self._fault == _MORE and not verify and left is not None and 0 <= self._length <= left - FRAMING:
                self._window.move(FRAMING + self._length)
                return np.array([base]), np.array([base + FRAMING + self._length])
            self._need()

    def _scan(self, rows: int, verify: bool) -> tuple[int, int]:
        self._starts, self._stops = np.empty(rows, np.int64), np.empty(rows, np.int64)
        count, consumed, stop, length = scan_records(self._window.data, verify, self._starts, self._stops)
        self._fault, self._length = (stop, length) if not count else (None, 0)
        return count, consumed

    def _block(self, count: int, consumed: int) -> Block:
        self._row_bytes = consumed / count
        starts, stops = self._starts[:count], self._stops[:count]
        if 2 * count < len(self._starts):
            # Not to keep room for rows that were not there.
            starts, stops = starts.copy(), stops.copy()
        block = _block(self._window.lend(), starts, stops)
        self._window.move(consumed)
        return block

    def _need(self) -> None:
        """Have the whole of the next record at hand; FileError if that is not to be had."""
        if self._fault != _MORE:
            if not self.at and self._fault == _BAD_LENGTH and (what := mark_of(self._window.data[:MARK].tobytes())):
                raise FileError(self._file.path, what)
            raise FileError(self._file.path, _WHY[self._fault or _BAD_DATA], self.at)
        wanted = HEADER if self._length < 0 else FRAMING + self._length
        left = self._window.left
        if left is None or left >= wanted:
            if self._window.fill(wanted) >= wanted:
                return
            left = self._window.size
        says = "" if self._length < 0 else f" of {self._length:,} bytes"
        raise FileError(
            self._file.path, f"the file ends in the middle of a record{says}: {left:,} bytes are left", self.at
        )

    def recover(self) -> bool:
        """Behind a damaged record; at the next length that matches its checksum; or not at all."""
        try:
            return self._go_on()
        except FileError:
            # The compressed data itself is damaged, and nothing comes behind that.
            return False

    def _go_on(self) -> bool:
        left = self._window.left
        whole = FRAMING + self._length
        if self._fault == _BAD_DATA:
            self._window.move(whole)
            return True
        if self._fault == _MORE:
            # Either the file ends here, or the record is there and too large to be held.
            if self._length < 0 or (left is not None and left < whole) or whole > 1 << 62:
                return False
            self._window.move(whole)
            return self._window.fill() > 0
        return self._fault == _BAD_LENGTH and self._search()

    def _search(self) -> bool:
        """A length that matches its checksum is there by accident once in four billion places."""
        if self._window.fill(HEADER) < HEADER:
            return False
        # Perhaps only the checksum is damaged: then the next record is where this one says.
        length = int.from_bytes(self._window.data[:8].tobytes(), "little")
        ahead = FRAMING + length + HEADER
        if ahead <= min(_SEARCH, self._window.most) and self._window.fill(ahead) >= ahead:
            after = self._window.data[FRAMING + length :][:HEADER]
            if find_header(after, 0, 1 << 62) == 0:
                self._window.move(FRAMING + length)
                return True
        self._window.move(1)
        while self._window.fill(HEADER) >= HEADER:
            left = self._window.left
            data = self._window.data
            place = find_header(data, 0, (1 << 40) if left is None else left)
            self._window.move(place if place >= 0 else len(data) - HEADER + 1)
            if place >= 0:
                return True
        return False

    def close(self) -> None:
        """The file and the window."""
        self._window.close()
        self._file.close()


class _Indexed(SpanIndex):
    """Records by number."""

    def __init__(self, path: str, node: TFRecords) -> None:
        super().__init__(path, _checked(node), node.tolerance, partial(_build, node=node))

    def made(self, data: Bytes, starts: Indices, stops: Indices) -> Block:
        """With their checksums verified."""
        begins, ends = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
        count = scan_records(data, True, begins, ends)[0]
        if count < len(starts):
            raise self.fault(int(starts[count]))
        return _block(data, begins, ends)

    def rows_from(self, at: int) -> FileRows:
        """As they are read in order."""
        return _plain(open_file(self._path), at)


def _block(data: Bytes, starts: Indices, stops: Indices) -> Block:
    """Records where they are, unless what is between them would take much of the memory."""
    column: Strings = Spans(data, starts, stops)
    if FRAMING * len(starts) > len(data) // _WASTE:
        column = Strings(column.data, column.offsets, (), False)
    return Block(LEAF, [column], len(starts))


def _plain(file: InputFile, at: int = 0) -> _Records:
    ledger = Ledger(1 << 62)
    return _Records(file, None, at, ledger.lease("index"), 1 << 20, ledger.budget)


def _checked(node: TFRecords) -> str | None:
    return CHECKED if node.skips else None


def _build(file: InputFile, node: TFRecords) -> RowIndex:
    """Read the file once: only the lengths, or everything if damaged records are to be left out."""
    rows, skip = _plain(file), node.skips
    starts, stops = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    faults = Faults(node.tolerance)
    while True:
        try:
            found = rows.spans(1 << 16, verify=skip)
        except RemoteError:
            rows.close()
            raise
        except FileError as error:
            if not skip:
                # The place of the error is a row of its own, so that those before it come out first.
                starts.append(np.array([rows.at]))
                stops.append(np.array([rows.at]))
                break
            if faults.full:
                raise faults.refused(error) from error
            faults.add(error)
            if not rows.recover():
                break
            continue
        if found is None:
            break
        starts.append(found[0])
        stops.append(found[1])
    rows.close()
    return RowIndex(np.concatenate(starts), np.concatenate(stops), _checked(node), faults.count)
