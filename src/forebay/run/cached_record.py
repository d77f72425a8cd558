"""A block as a record in a file: it says by itself which rows it holds, and whether it is whole.

A record is a header, a description in JSON, and the payload: the pickled structure of elements, and behind it the
columns as ``packed`` has them.
"""

import errno
import json
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import Block, Cursor, Structure
from forebay.block.aligned import ALIGN
from forebay.errors import DataError, PlanError
from forebay.run.files import OpenFile
from forebay.run.packed import Packing, pack, padded, unpack, whole
from forebay.run.stretches import Stretch, Stretches
from forebay.storage.checked import checksum

HEADER = struct.Struct("<8sQQQ")
"""Magic, checksum of the rest of the header and of the description, bytes of the description and of the payload."""
_MAGIC = b"FBCACHE3"
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
    structure: int
    packing: Packing
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

    def stretch(self, file: OpenFile) -> Stretch:
        """Where its payload is in that file."""
        return Stretch(file, file.number, self.end - self.payload, self.payload)

    def read(self, file: OpenFile, stretches: Stretches, then: Stretch | None) -> NDArray[Any] | None:
        """Its payload; None if that does not come back as it was written, or not at all."""
        try:
            payload, found = stretches.read(self.stretch(file), self.checksum, then)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return None
        return payload if found == self.checksum else None

    def to_json(self) -> list[Any]:
        """What ``from_json`` reads back."""
        return [
            self.row,
            self.rows,
            self.offset,
            self.nbytes,
            self.checksum,
            self.structure,
            [None if kind is None else [kind[0].str, list(kind[1])] for kind in self.packing.kinds],
            list(self.packing.sizes),
            self.payload,
            self.codec,
            self.cursor.to_json(),
            self.layout,
        ]

    @staticmethod
    def from_json(value: Any) -> "Record":
        """ValueError or TypeError if this is no record."""
        row, rows, offset, nbytes, checksum, structure, kinds, sizes, payload, codec, cursor, layout = value
        packing = _packing(tuple(None if kind is None else (kind[0], tuple(kind[1])) for kind in kinds), tuple(sizes))
        at = Cursor.from_json(cursor)
        return Record(row, rows, offset, nbytes, checksum, structure, packing, payload, codec, at, layout)


def encode(block: Block, row: int, layout: str, offset: int, codec: str | None) -> tuple[Record, list[Any]]:
    """The bytes of a record that will begin at `offset`; its payload is not copied unless it is compressed."""
    structure = _pickled(block.structure)
    packing, pieces = pack(block, _pickled, _is_told)
    payload = [*padded([structure]), *pieces]
    if codec is not None:
        payload = [_codec(codec)[0](b"".join(payload))]
    total = sum(map(len, payload))
    # Offset and size are known to whoever finds the record in its file.
    digest = checksum(*payload)
    record = Record(row, block.rows, 0, 0, digest, len(structure), packing, total, codec, block.cursor, layout)
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
    record = Record.from_json(json.loads(bytes(text)))
    return replace(record, offset=offset, nbytes=nbytes) if record.payload == total else None


class Decoder:
    """Makes blocks of records; any number of threads may use it."""

    def __init__(self) -> None:
        # Elements mostly have the structure of those before.
        self._last: tuple[bytes, Structure | None] = (b"", None)

    def block(self, record: Record, payload: Any) -> Block | None:
        """The block in that memory, or in one of its own; None if its classes are no longer there."""
        begin = whole(record.structure)
        if record.codec is not None:
            size = begin + record.packing.nbytes(record.rows)
            payload = np.frombuffer(bytearray(_codec(record.codec)[1](payload, size)), np.uint8)
        try:
            structure = self._structure(payload[: record.structure].tobytes())
            columns = unpack(record.packing, record.rows, payload, begin)
        except (pickle.UnpicklingError, AttributeError, ImportError, TypeError, ValueError):
            return None
        return Block(structure, columns, record.rows, record.cursor)

    def _structure(self, pickled: bytes) -> Structure:
        known, structure = self._last
        if structure is None or known != pickled:
            structure = pickle.loads(pickled)
            assert isinstance(structure, Structure)
            self._last = (pickled, structure)
        return structure


def _pickled(value: Any, buffers: list[Any] | None = None) -> bytes:
    try:
        return pickle.dumps(value, 5, buffer_callback=None if buffers is None else buffers.append)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise DataError(
            f"cache(filename): elements cannot be written to a file: {error}. Classes have to be defined at the top "
            "of a module; objects without a form on disk can be kept by cache() without a filename"
        ) from error


def _is_told(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype's name is all there is to it. Those of records have fields, and any may have notes."""
    return dtype.names is None and dtype.subdtype is None and dtype.metadata is None and np.dtype(dtype.str) == dtype


@lru_cache(16)
def _packing(kinds: tuple[tuple[str, tuple[int, ...]] | None, ...], sizes: tuple[int, ...]) -> Packing:
    """Records of one cache mostly share one."""
    return Packing(tuple(None if kind is None else (np.dtype(kind[0]), kind[1]) for kind in kinds), sizes)


def check_codec(name: Any) -> None:
    """PlanError if there is no such compression, or not here."""
    if name is None:
        return
    if not isinstance(name, str) or name not in CODECS:
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
