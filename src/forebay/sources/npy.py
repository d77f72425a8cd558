"""Arrays in ``.npy`` files and ``.npz`` archives: ``Dataset.from_npy``.

Rows are read by number, with one read for each run of them; nothing else of the file is ever loaded. A row's place
follows from its number. In archives that are compressed it does not: if there is one, all files are read in order, and
compressed ones from their start on to wherever the rows are that are wanted. A place is a row's number in any case.

Checksums of arrays in archives are compared along the way (``storage.zip_members``).
"""

import ast
import struct
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from forebay.block import LEAF, Block, Indices, TensorSpec
from forebay.errors import FileError
from forebay.lazy import cached_property
from forebay.ledger import Lease
from forebay.plan.node import UNKNOWN
from forebay.run import Setup
from forebay.sources.files import FileIndex, FileRows, FilesNode
from forebay.sources.mapped import column_of_file
from forebay.storage.files import Bytes, InputFile, open_file
from forebay.storage.streams import Stream, open_stream
from forebay.storage.zip_members import DEFLATED, STORED, Checksum, Member, MemberStream, stored_members

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 16
# Rows without bytes cost a file nothing to claim, and whoever reads them a lot.
_MOST_EMPTY = 1 << 24


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an array lies in a file, or in what a compressed member of it unfolds to."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    member: Member | None = None
    checksum: Checksum | None = None

    @property
    def row_bytes(self) -> int:
        """Of a row."""
        return self.dtype.itemsize * prod(self.shape[1:])


@dataclass(frozen=True, eq=False, kw_only=True)
class NpyRows(FilesNode):
    """The rows of arrays, one file after another. `member` is the name of one in ``.npz`` archives."""

    member: str | None = None

    kind = "from_npy"

    @cached_property
    def layouts(self) -> tuple[tuple[InputFile, Layout], ...]:
        """Of all files, which must agree on what a row is."""
        found: list[tuple[InputFile, Layout]] = []
        for path in self.files:
            file = open_file(path)
            layout = array_layout(file, self.member)
            if found and (layout.dtype, layout.shape[1:]) != (found[0][1].dtype, found[0][1].shape[1:]):
                first = found[0][1]
                raise FileError(
                    path,
                    f"rows are {layout.dtype.name}{list(layout.shape[1:])}, and those of the first file "
                    f"{first.dtype.name}{list(first.shape[1:])}",
                    0,
                )
            found.append((file, layout))
        return tuple(found)

    def spec(self, *inputs: Any) -> TensorSpec:
        """A row."""
        layout = self.layouts[0][1]
        return TensorSpec(layout.shape[1:], layout.dtype)

    def cardinality(self) -> int:
        """What the headers say."""
        return UNKNOWN if self.skips else sum(layout.shape[0] for _, layout in self.layouts)

    def open(self, path: str, at: int | None, lease: Lease, setup: Setup) -> FileRows:
        """From a row's number on."""
        file, layout = self.layouts[self.files.index(path)]
        if layout.row_bytes > setup.ledger.budget:
            raise FileError(
                path,
                f"a row has {layout.row_bytes:,} bytes, and the budget is {setup.ledger.budget:,} (Options.memory)",
            )
        most = max(1, setup.block_bytes // max(layout.row_bytes, 1))
        return _RowsInOrder(file, layout, at or 0, lease, most)

    def index(self, path: str) -> FileIndex | None:
        """Of what is not compressed."""
        file, layout = self.layouts[self.files.index(path)]
        return _Rows(file, layout) if layout.member is None else None


class _Rows(FileIndex):
    def __init__(self, file: InputFile, layout: Layout) -> None:
        self._file = file
        self._layout = layout
        self.length = layout.shape[0]

    def read(self, start: int, stop: int) -> Block:
        """In one piece."""
        size = self._layout.row_bytes
        begin = self._layout.offset + start * size
        data = self._bytes(np.array([begin]), np.array([begin + (stop - start) * size]), stop - start)
        if self._layout.checksum is not None:
            self._layout.checksum.read(self._file, begin, data)
        return _block(self._file.path, self._layout, data, stop - start)

    def gather(self, rows: Indices) -> Block:
        """One read for each row."""
        if self._layout.checksum is not None:
            self._layout.checksum.compare(self._file)
        starts = rows * self._layout.row_bytes + self._layout.offset
        data = self._bytes(starts, starts + self._layout.row_bytes, len(rows))
        return _block(self._file.path, self._layout, data, len(rows))

    def _bytes(self, starts: Indices, stops: Indices, rows: int) -> Bytes:
        data = np.empty(rows * self._layout.row_bytes, np.uint8)
        if len(data):
            self._file.read_ranges(starts, stops, data)
        return data


class _RowsInOrder(FileRows):
    """The rows of one array, one after another."""

    def __init__(self, file: InputFile, layout: Layout, at: int, lease: Lease, most: int) -> None:
        self.at = at
        self._layout = layout
        self._lease = lease
        self._most = most
        self._path = file.path
        self._torn = False  # Whether the next row could not be read as a whole.
        start = layout.offset + at * layout.row_bytes
        self._file, self._ahead = file, file.in_order(lease)
        self._stream: Stream = (
            open_stream(self._ahead, None, lease, start)
            if layout.member is None
            else MemberStream(self._ahead, layout.member, start)
        )

    def read(self, rows: int) -> Block | None:
        """As many as make a block."""
        rows = min(rows, self._most, self._layout.shape[0] - self.at)
        if not rows or self._torn:
            # Only here does a compressed member tell what is wrong with it.
            self._stream.read(np.empty(int(self._layout.member is not None), np.uint8))
        if not rows:
            return None
        data = np.empty(rows * self._layout.row_bytes, np.uint8)
        self._lease.note(len(data))
        got = 0 if self._torn else self._stream.read(data)
        if got < len(data):
            self._torn = True
            rows = got // self._layout.row_bytes
            if not rows:
                raise FileError(self._path, f"ends before row {self.at:,} of {self._layout.shape[0]:,}")
        elif self._layout.checksum is not None:
            self._layout.checksum.read(self._file, self._layout.offset + self.at * self._layout.row_bytes, data)
        self.at += rows
        return _block(self._path, self._layout, data[: rows * self._layout.row_bytes], rows)

    def recover(self) -> bool:
        """Nothing behind a fault can be trusted."""
        return False

    def close(self) -> None:
        """The file stays open for others."""
        if self._ahead is not self._file:
            self._ahead.close()
        self._lease.release()


def _block(path: str, layout: Layout, data: Bytes, rows: int) -> Block:
    values = data.view(layout.dtype) if layout.dtype.itemsize else np.zeros(0, layout.dtype)
    values = values.reshape(rows, *layout.shape[1:])
    return Block(LEAF, [column_of_file(values, path)], rows)


def array_members(path: str) -> list[str]:
    """The names of the arrays in an ``.npz`` archive."""
    file = open_file(path)
    try:
        return [name.removesuffix(".npy") for name in stored_members(file) if name.endswith(".npy")]
    finally:
        file.close()


def array_layout(file: InputFile, member: str | None) -> Layout:
    """Where the array lies, after every check that can be made without reading it."""
    begin, size = 0, file.size
    packed: Member | None = None
    stored: Member | None = None
    if member is not None:
        members = stored_members(file)
        if f"{member}.npy" not in members:
            raise FileError(file.path, f"holds no array {member!r}, only {[n.removesuffix('.npy') for n in members]}")
        packed = members[f"{member}.npy"]
        begin, size = packed.begin, packed.size
        if packed.method not in (STORED, DEFLATED):
            how = f"its array {member!r} is compressed by method {packed.method} of zip, which NumPy does not write"
            raise FileError(file.path, how, begin)
        if packed.method == STORED:
            size = packed.end - packed.begin
            stored, packed = packed, None
    head = _start(file, begin, size, packed)
    if head[:6] != _MAGIC or len(head) < 10:
        raise FileError(file.path, "is not a .npy file: it does not begin as one", begin)
    short = head[6] == 1
    if head[6] not in (1, 2, 3) or (not short and len(head) < 12):
        raise FileError(file.path, f"has version {head[6]}.{head[7]} of the .npy format, which is not known", begin)
    (length,) = struct.unpack_from("<H" if short else "<I", head, 8)
    start = 10 if short else 12
    if length > min(_LONGEST_HEADER, len(head) - start):
        raise FileError(file.path, f"its header says that it is {length:,} bytes long, which it is not", begin)
    dtype, fortran, shape = _header(file.path, head[start : start + length], begin)
    if dtype.hasobject:
        raise FileError(file.path, "holds pickled objects, which could run any code and are refused", begin)
    if dtype.names is not None:
        raise FileError(file.path, "holds records with named fields; save each field as an array of its own", begin)
    if not dtype.itemsize:
        raise FileError(file.path, f"holds values of no bytes ({dtype.str})", begin)
    if not shape:
        raise FileError(file.path, "holds a single value, which has no rows", begin)
    if fortran and sum(size > 1 for size in shape) > 1:
        raise FileError(
            file.path,
            "is stored column by column; save it with numpy.save(path, numpy.ascontiguousarray(array))",
            begin,
        )
    offset = start + length
    layout = Layout(dtype, shape, offset if packed is not None else begin + offset, packed)
    if not layout.row_bytes and shape[0] > _MOST_EMPTY:
        raise FileError(
            file.path, f"claims {shape[0]:,} rows of no bytes, which nothing can tell from a mistake", begin
        )
    wanted, there = layout.row_bytes * shape[0], size - offset
    if wanted > there:
        raise FileError(
            file.path, f"an array of {wanted:,} bytes is cut short: {max(there, 0):,} bytes are left", layout.offset
        )
    if stored is None:
        return layout
    checksum = Checksum(f"{member}.npy", stored, layout.offset, layout.offset + wanted)
    if not wanted:
        # Nothing will be read that could show it to be wrong about that.
        checksum.compare(file)
    return replace(layout, checksum=checksum)


def _start(file: InputFile, begin: int, size: int, packed: Member | None) -> bytes:
    """As many bytes as the header may have."""
    data = np.empty(min(12 + _LONGEST_HEADER, max(size, 0)), np.uint8)
    got = file.read_at(begin, data) if packed is None else MemberStream(file, packed).read(data)
    return data[:got].tobytes()


def _header(path: str, text: bytes, at: int) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    try:
        found = ast.literal_eval(text.decode("latin1").strip())
        descr, fortran, shape = found["descr"], found["fortran_order"], found["shape"]
        dtype = np.lib.format.descr_to_dtype(descr)
        sizes = tuple(shape)
        if not isinstance(fortran, bool) or any(type(size) is not int or size < 0 for size in sizes):
            raise ValueError(f"{found!r}")
        if dtype.subdtype is not None:
            raise ValueError(f"its values are arrays themselves, of {dtype}")
        # NumPy has the last word on what can be the shape of a row; this takes no memory.
        np.broadcast_to(np.zeros((), dtype), (1, *sizes[1:]))
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError) as error:
        raise FileError(path, f"its header cannot be read: {error}", at) from error
    return dtype, fortran, sizes
