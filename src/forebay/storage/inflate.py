"""What unfolds gzip and zlib data: ISA-L where it is installed, which takes less than half the time of zlib."""

import importlib
from importlib.util import find_spec
from typing import Any

_codec: Any = importlib.import_module("isal.isal_zlib" if find_spec("isal") is not None else "zlib")

InflateError: type[Exception] = _codec.error
WBITS = {"GZIP": 31, "ZLIB": 15}


def inflater(bits: int) -> Any:
    """An object like ``zlib.decompressobj`` for one member of data in the format that these bits mean to zlib."""
    return _codec.decompressobj(bits)


def unfolded(data: bytes, compression: str, most: int) -> bytes | None:
    """The contents of all members of `data`; None if there is more than `most` bytes. InflateError, EOFError if cut."""
    parts: list[bytes] = []
    while data:
        member = inflater(WBITS[compression])
        parts.append(member.decompress(data, most + 1))
        most -= len(parts[-1])
        if most < 0:
            return None
        if not member.eof:
            raise EOFError
        data = member.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)
