"""A block as a record in a file: it says by itself which rows it holds, and whether it is whole.

A record is a header, a description in JSON, and the payload: the pickled columns and behind them the arrays' own bytes.
"""

import json
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from forebay.block import Block, Cursor
from forebay.block.aligned import ALIGN, aligned_empty
from forebay.errors import DataError, PlanError
from forebay.run.files import OpenFile
from forebay.storage.checked import checksum, read_checked

HEADER = struct.Struct("<8sQQQ")
"""Magic, checksum of the rest of the header and of the description, bytes of the description and of the payload."""
_MAGIC = b"FBCACHE2"
_TAIL = struct.Struct("<QQ")

CODECS: dict[str, tuple[str, str]] = {"zstd": ("zstandard", "zstandard"), "lz4": ("lz4.frame", "lz4")}
"""By name: the module that does it, and the package that has it."""


@dataclass(frozen=True, slots=True)
class Record:
    """Where in a file rows are, and how to read them."""

    row: int
    rows: int
    offset: int
    nbytes: int
    checksum: int
    parts: tuple[int, ...]
    payload: int
    codec: str | None
    cursor: Cursor
    layout: str

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.offset + self.nbytes

    @property
    def stop(self) -> int:
        """The row after the last."""
        return self.row + self.rows

    def to_json(self) -> list[Any]:
        """What ``from_json`` reads back."""
        return [
            self.row,
            self.rows,
            self.offset,
            self.nbytes,
            self.checksum,
            list(self.parts),
            self.payload,
            self.codec,
            self.cursor.to_json(),
            self.layout,
        ]

    @staticmethod
    def from_json(value: Any) -> "Record":
        """ValueError or TypeError if this is no record."""
        row, rows, offset, nbytes, checksum, parts, payload, codec, cursor, layout = value
        at = Cursor.from_json(cursor)
        return Record(row, rows, offset, nbytes, checksum, tuple(parts), payload, codec, at, layout)


def encode(block: Block, row: int, layout: str, offset: int, codec: str | None) -> tuple[Record, list[Any]]:
    """The bytes of a record that will begin at `offset`; its payload is not copied unless it is compressed."""
    buffers: list[Any] = []
    try:
        first = pickle.dumps((block.structure, block.columns), 5, buffer_callback=buffers.append)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise DataError(
            f"cache(filename): elements cannot be written to a file: {error}. Classes have to be defined at the top "
            "of a module; objects without a form on disk can be kept by cache() without a filename"
        ) from error
    parts = [first, *(buffer.raw() for buffer in buffers)]
    sizes = tuple(map(len, parts))
    payload = [piece for part in parts for piece in (part, bytes(-len(part) % ALIGN))]
    if codec is not None:
        payload = [_codec(codec)[0](b"".join(payload))]
    total = sum(map(len, payload))
    # Offset and size are known to whoever finds the record in its file.
    record = Record(row, block.rows, 0, 0, checksum(*payload), sizes, total, codec, block.cursor, layout)
    text = json.dumps(record.to_json()).encode()
    text += b" " * (-(offset + HEADER.size + len(text)) % ALIGN)
    tail = _TAIL.pack(len(text), total)
    header = _MAGIC + struct.pack("<Q", checksum(tail, text)) + tail
    return replace(record, offset=offset, nbytes=len(header) + len(text) + total), [header, text, *payload]


def describe(file: OpenFile, offset: int, size: int) -> Record | None:
    """The record that begins at `offset` in a file of that size; None if none does, or not all of it is there."""
    header = file.read(offset, HEADER.size) if offset + HEADER.size <= size else None
    if header is None:
        return None
    magic, expected, length, total = HEADER.unpack(header)
    nbytes = HEADER.size + length + total
    if magic != _MAGIC or offset + nbytes > size:
        return None
    text = file.read(offset + HEADER.size, length)
    if text is None or checksum(header[-_TAIL.size :], text) != expected:
        return None
    return replace(Record.from_json(json.loads(bytes(text))), offset=offset, nbytes=nbytes)


def decode(file: OpenFile, record: Record) -> Block | None:
    """The block in memory of its own; None if it is not what was written, or its classes are no longer there."""
    payload = aligned_empty((record.payload,)).data
    if read_checked(file.number, record.end - record.payload, payload) != record.checksum:
        return None
    if record.codec is not None:
        size = sum(size + -size % ALIGN for size in record.parts)
        payload = memoryview(bytearray(_codec(record.codec)[1](payload, size)))
    parts, begin = [], 0
    for size in record.parts:
        parts.append(payload[begin : begin + size])
        begin += size + -size % ALIGN
    try:
        structure, columns = pickle.loads(parts[0], buffers=parts[1:])
    except (pickle.UnpicklingError, AttributeError, ImportError, TypeError):
        return None
    return Block(structure, columns, record.rows, record.cursor)


def check_codec(name: Any) -> None:
    """PlanError if there is no such compression, or not here."""
    if name is None:
        return
    if name not in CODECS:
        raise PlanError(f'cache(compression={name!r}): compression must be "zstd", "lz4" or None')
    _codec(name)


def _codec(name: str) -> "tuple[Callable[[bytes], bytes], Callable[[Any, int], bytes]]":
    module, package = CODECS[name]
    try:
        if name == "zstd":
            import zstandard

            return zstandard.ZstdCompressor(level=1).compress, _unpack_zstd
        import lz4.frame

        return lz4.frame.compress, _unpack_lz4
    except ModuleNotFoundError as error:
        raise PlanError(
            f'cache(compression="{name}") needs {module}: pip install {package}, or pip install forebay[compression]'
        ) from error


def _unpack_zstd(data: Any, size: int) -> bytes:
    import zstandard

    out: bytes = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    return out


def _unpack_lz4(data: Any, size: int) -> bytes:
    import lz4.frame

    out: bytes = lz4.frame.decompress(data)
    return out
