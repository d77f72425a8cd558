"""Records of one length: ``FixedLengthRecordDataset``.

A record's place is its number. Records of uncompressed files are read by number, so that ``skip``, ``shard``,
``shuffle()`` and resuming cost nothing; compressed files are unfolded from the start up to the place.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import LEAF, Block, Indices, TensorSpec
from forebay.block.spec import BYTES
from forebay.block.strings import Strings
from forebay.errors import FileError, PlanError
from forebay.ledger import Lease
from forebay.plan.check import keep_whole
from forebay.run import Setup
from forebay.run.faults import Faults
from forebay.sources.files import FileIndex, FileRows
from forebay.sources.streamed import StreamedFiles, StreamedRows
from forebay.storage.files import Bytes, InputFile, open_file


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedLengthRecords(StreamedFiles):
    """The records of files, as bytes: what is between header and footer, cut into equal parts."""

    record_bytes: int
    header_bytes: int = 0
    footer_bytes: int = 0

    kind = "FixedLengthRecordDataset"

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_whole(self, "record_bytes", 1)
        for name in ("header_bytes", "footer_bytes"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, 0)
            keep_whole(self, name, 0)
        if self.record_bytes > 1 << 62:
            raise PlanError(f"{self.kind}(record_bytes={self.record_bytes}): records are not as long as that")

    def spec(self, *inputs: Any) -> TensorSpec:
        """A record."""
        return TensorSpec((), BYTES)

    def element_bytes(self, *inputs: int) -> int:
        """A record and its offset."""
        return self.record_bytes + 8

    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """From a record's number on."""
        return _Records(self, path, self.header_bytes + (at or 0) * self.record_bytes, lease, setup)

    def counted(self) -> tuple[str, ...] | None:
        """By their length, unless they are compressed."""
        return None if self.compression is not None else ()

    def index(self, path: str) -> FileIndex | None:
        """Of uncompressed files."""
        if self.compression is not None:
            return None
        try:
            file = open_file(path)
        except FileError as error:
            self._pass_over(error)
            return _Numbered(None, self, 0)
        body = file.size - self.header_bytes - self.footer_bytes
        if body < 0 or body % self.record_bytes:
            self._pass_over(self.misfit(path, file.size))
        return _Numbered(file, self, max(body, 0) // self.record_bytes)

    def misfit(self, path: str, size: int) -> FileError:
        """The error for a file of a size that cannot be."""
        ends = [
            f"a {name} of {length:,}"
            for name, length in (("header", self.header_bytes), ("footer", self.footer_bytes))
            if length
        ]
        without = f" without {' and '.join(ends)}" if ends else ""
        body = size - self.header_bytes - self.footer_bytes
        if body < 0:
            return FileError(path, f"it has {size:,} bytes, too few for {' and '.join(ends)}", size)
        return FileError(
            path,
            f"{body:,} bytes{without} are not a whole number of records of {self.record_bytes:,} bytes",
            size - self.footer_bytes - body % self.record_bytes,
        )

    def _pass_over(self, error: FileError) -> None:
        faults = Faults(self.tolerance)
        if not faults.passes(error):
            raise error
        faults.add(error.read_by(str(self.site)))


class _Numbered(FileIndex):
    """Records by number: the place is a product."""

    def __init__(self, file: InputFile | None, node: FixedLengthRecords, length: int) -> None:
        self._file = file
        self._size = node.record_bytes
        self._header = node.header_bytes
        self.length = length

    def read(self, start: int, stop: int) -> Block:
        """In one piece."""
        assert self._file is not None
        begin, end = (self._header + row * self._size for row in (start, stop))
        data = np.empty(end - begin, np.uint8)
        self._file.read_ranges(np.array([begin]), np.array([end]), data)
        return _block(data, self._size)

    def gather(self, rows: Indices) -> Block:
        """One read for each."""
        assert self._file is not None
        starts = rows * self._size + self._header
        data = np.empty(len(rows) * self._size, np.uint8)
        self._file.read_ranges(starts, starts + self._size, data)
        return _block(data, self._size)


class _Records(StreamedRows):
    """Records of a compressed file, whose end only reading tells: a footer's worth of bytes is never a record."""

    text = False

    def __init__(self, node: FixedLengthRecords, path: str, at: int, lease: Lease, setup: Setup) -> None:
        try:
            super().__init__(node, path, at, lease, setup)
        except FileError as error:
            if at != node.header_bytes or error.offset != at:
                raise
            raise FileError(path, f"it has fewer bytes than its header of {node.header_bytes:,}", 0) from error
        self._node = node

    @property
    def at(self) -> int:
        """The number of the next record."""
        return (self.window.position - self._node.header_bytes) // self._node.record_bytes

    def read(self, rows: int) -> Block | None:
        """As many whole records as are at hand, at least one."""
        size, footer = self._node.record_bytes, self._node.footer_bytes
        self.show(rows)
        if self.window.fill(size + footer) < size + footer:
            if self.window.size == footer:
                return None
            raise self._node.misfit(self.path, self.window.position + self.window.size)
        count = min(rows, (self.window.size - footer) // size)
        block = _block(self.window.data[: count * size].copy(), size)
        self.used(count, count * size)
        return block

    def recover(self) -> bool:
        """What is left is less than a record, or cannot be read."""
        return False


def _block(data: Bytes, size: int) -> Block:
    rows = len(data) // size
    return Block(LEAF, [Strings(data, np.arange(0, len(data) + 1, size, dtype=np.int64), (), False)], rows)
