"""Arrays in ``.npy`` files, and in ``.npz`` archives that are not compressed: ``Dataset.from_npy``.

Rows are read by number, with one read for each run of them; nothing else of the file is ever loaded. A row's place
follows from its number.
"""

import ast
import struct
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from forebay.block import LEAF, Block, Indices, TensorSpec, column_from_array
from forebay.errors import FileError
from forebay.ledger import Lease
from forebay.run import Setup
from forebay.sources.files import FileIndex, FileRows, FilesNode
from forebay.storage.files import InputFile, open_file
from forebay.storage.zip_members import stored_members

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 16


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an array lies in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

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

    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """Never: all files have an index."""
        raise NotImplementedError

    def index(self, path: str) -> FileIndex:
        """Always."""
        return _Rows(*self.layouts[self.files.index(path)])


class _Rows(FileIndex):
    def __init__(self, file: InputFile, layout: Layout) -> None:
        self._file = file
        self._layout = layout
        self.length = layout.shape[0]

    def read(self, start: int, stop: int) -> Block:
        """In one piece."""
        size = self._layout.row_bytes
        begin = np.array([self._layout.offset + start * size])
        return self._block(begin, begin + (stop - start) * size, stop - start)

    def gather(self, rows: Indices) -> Block:
        """One read for each row."""
        starts = rows * self._layout.row_bytes + self._layout.offset
        return self._block(starts, starts + self._layout.row_bytes, len(rows))

    def _block(self, starts: Indices, stops: Indices, rows: int) -> Block:
        layout = self._layout
        data = np.empty(rows * layout.row_bytes, np.uint8)
        if len(data):
            self._file.read_ranges(starts, stops, data)
        values = data.view(layout.dtype) if layout.dtype.itemsize else np.zeros(0, layout.dtype)
        values = values.reshape(rows, *layout.shape[1:])
        return Block(LEAF, [column_from_array(values, owned=True)], rows)


def array_members(path: str) -> list[str]:
    """The names of the arrays in an ``.npz`` archive."""
    file = open_file(path)
    try:
        return [name.removesuffix(".npy") for name in stored_members(file) if name.endswith(".npy")]
    finally:
        file.close()


def array_layout(file: InputFile, member: str | None) -> Layout:
    """Where the array lies, after every check that can be made without reading it."""
    begin, end = 0, file.size
    if member is not None:
        members = stored_members(file)
        if f"{member}.npy" not in members:
            raise FileError(file.path, f"holds no array {member!r}, only {[n.removesuffix('.npy') for n in members]}")
        begin, end, method = members[f"{member}.npy"]
        if method:
            raise FileError(
                file.path,
                f"its array {member!r} is compressed, so that rows cannot be read from it one by one: write it with "
                "numpy.savez, or give np.load(...)[name] to from_tensor_slices if it fits into memory",
                begin,
            )
    head = _bytes(file, begin, min(12, end - begin))
    if head[:6] != _MAGIC or len(head) < 10:
        raise FileError(file.path, "is not a .npy file: it does not begin as one", begin)
    short = head[6] == 1
    if head[6] not in (1, 2, 3) or (not short and len(head) < 12):
        raise FileError(file.path, f"has version {head[6]}.{head[7]} of the .npy format, which is not known", begin)
    (length,) = struct.unpack_from("<H" if short else "<I", head, 8)
    start = begin + (10 if short else 12)
    if length > min(_LONGEST_HEADER, end - start):
        raise FileError(file.path, f"its header says that it is {length:,} bytes long, which it is not", begin)
    dtype, fortran, shape = _header(file.path, _bytes(file, start, length), begin)
    if dtype.hasobject:
        raise FileError(file.path, "holds pickled objects, which could run any code and are refused", begin)
    if dtype.names is not None:
        raise FileError(file.path, "holds records with named fields; save each field as an array of its own", begin)
    if not shape:
        raise FileError(file.path, "holds a single value, which has no rows", begin)
    if fortran and sum(size > 1 for size in shape) > 1:
        raise FileError(
            file.path,
            "is stored column by column; save it with numpy.save(path, numpy.ascontiguousarray(array))",
            begin,
        )
    layout = Layout(dtype, shape, start + length)
    wanted, there = layout.row_bytes * shape[0], end - layout.offset
    if wanted > there:
        raise FileError(
            file.path, f"an array of {wanted:,} bytes is cut short: {max(there, 0):,} bytes are left", layout.offset
        )
    return layout


def _bytes(file: InputFile, start: int, length: int) -> bytes:
    data = np.empty(max(length, 0), np.uint8)
    got = file.read_at(start, data)
    return data[:got].tobytes()


def _header(path: str, text: bytes, at: int) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    try:
        found = ast.literal_eval(text.decode("latin1").strip())
        descr, fortran, shape = found["descr"], found["fortran_order"], found["shape"]
        dtype = np.lib.format.descr_to_dtype(descr)
        sizes = tuple(shape)
        if not isinstance(fortran, bool) or any(type(size) is not int or size < 0 for size in sizes):
            raise ValueError(f"{found!r}")
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError) as error:
        raise FileError(path, f"its header cannot be read: {error}", at) from error
    return dtype, fortran, sizes
