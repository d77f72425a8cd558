"""What unfolds gzip and zlib data: ISA-L where it is installed, which takes less than half the time of zlib."""

import importlib
from importlib.util import find_spec
from typing import Any

from forebay.storage.marks import mark_of

_codec: Any = importlib.import_module("isal.isal_zlib" if find_spec("isal") is not None else "zlib")

InflateError: type[Exception] = _codec.error
WBITS = {"GZIP": 31, "ZLIB": 15}


# How gzip data begins, and zlib data of the usual window: what zlib checks of it.
_NAMES = {31: "gzip", 15: "zlib"}
_ZLIB_HEADS = (b"\x78\x01", b"\x78\x9c", b"\x78\xda")


def mistaken(path: str, head: bytes, bits: int) -> str | None:
    """What is wrong with taking a file that begins with these bytes for compressed; None if it may well be."""
    name = _NAMES.get(bits)
    if name is None or _begins(head, bits):
        return None
    if head.startswith(_ZLIB_HEADS):
        return "is compressed with zlib: read it with compression_type='ZLIB'"
    # Some readers go by the name.
    named = ", and the ending out of its name" if path.endswith((".gz", ".tgz")) else ""
    plain = f"is not compressed with {name} (it does not begin as such): leave compression_type out{named}"
    return mark_of(head) or plain


def _begins(head: bytes, bits: int) -> bool:
    if bits == WBITS["GZIP"]:
        return head[:2] == b"\x1f\x8b"[: len(head)]
    return len(head) < 2 or (head[0] & 15 == 8 and int.from_bytes(head[:2], "big") % 31 == 0)


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
