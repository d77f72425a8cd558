"""Tar archives as WebDataset uses them: members in order, each a field of a sample."""

import re
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from forebay.storage.files import Bytes

BLOCK = 512
KEY = "__key__"
"""What samples have their key under, beside their fields."""
_FILES = b"\x0007"  # The first is how old archives write it.
_SPARSE = b"S"
# Links, devices and folders have no contents, whatever size they tell; everything else has, known or not.
_EMPTY = b"123456"
# Where a sparse header, and each block that goes on with it, says that there is another one.
_MORE, _MORE_STILL = 482, 504
_NAME = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$", re.DOTALL)
_META = re.compile(r"__[^/]*__($|/)")
# Names and attributes that take a block of their own; longer ones are not believed.
_LONGEST = 1 << 20
_ADLER = 65521


class TarFault(Exception):
    """What is wrong with an archive."""


class Member(NamedTuple):
    """A file of an archive. Places are those of its headers, its contents, and what comes behind it.

    `key` and `field` are None for what belongs to no sample: folders, links, names without a dot. `refused` says why
    the contents of one that does belong to a sample cannot be had.
    """

    begin: int
    start: int
    stop: int
    end: int
    key: str | None
    field: str | None
    refused: str | None = None


Have = Callable[[int], Bytes]
"""At least so many bytes of what is at hand, or all that there are."""


def read_member(have: Have, begin: int, left: int | None) -> Member | None:
    """The member whose headers begin there; None at the end of the archive. TarFault if that is none.

    `left` is how many bytes there are in all, if that is known. Contents are not read.
    """
    at = begin
    name: bytes | None = None
    size: int | None = None
    sparse = False
    while True:
        data = have(at + BLOCK)
        if len(data) == at and at == begin:
            # Some writers leave out the blocks of zeros at the end.
            return None
        if len(data) < at + BLOCK:
            raise TarFault("the archive ends in the middle of a header")
        header = data[at : at + BLOCK].tobytes()
        if not header[0] and not header.strip(b"\0"):
            if at != begin:
                raise TarFault("a long name is followed by the end of the archive")
            return None
        kind, own_size = _checked(header)
        start = at + BLOCK
        if kind not in b"LxgK":
            break
        if own_size > _LONGEST:
            raise TarFault(f"a name of {own_size:,} bytes")
        data = have(start + own_size)
        if len(data) < start + own_size:
            raise TarFault("the archive ends in the middle of a name")
        extra = data[start : start + own_size].tobytes()
        if kind == b"L":
            name = extra.rstrip(b"\0")
        elif kind == b"x":
            said = _attributes(extra)
            sparse = any(each.startswith(b"GNU.sparse.") for each in said)
            name = said.get(b"GNU.sparse.name", said.get(b"path", name))
            if b"size" in said:
                size = _number(said[b"size"])
        at = start + _padded(own_size)
    size = 0 if kind in _EMPTY else own_size if size is None else size
    if kind == _SPARSE:
        sparse = True
        more = header[_MORE]
        while more:
            data = have(start + BLOCK)
            if len(data) < start + BLOCK:
                raise TarFault("the archive ends in the middle of a header")
            more, start = data[start + _MORE_STILL], start + BLOCK
    stop = start + size
    if left is not None and stop > left:
        raise TarFault(f"a member of {size:,} bytes, and {max(left - start, 0):,} are left of the archive")
    if name is None:
        name = header[:100].split(b"\0", 1)[0]
        if header[257:263] == b"ustar\0" and header[345]:
            name = header[345:500].split(b"\0", 1)[0] + b"/" + name
    key, field = split_name(name) if kind in _FILES or sparse else (None, None)
    refused = None
    if sparse and key is not None:
        refused = "is stored as a sparse file, without its zeros; pack it without tar's --sparse"
    elif field == KEY:
        refused = f"would take the place of the sample's key; call it other than {KEY}"
    return Member(begin, start, stop, start + _padded(size), key, field, refused)


def _checked(header: bytes) -> tuple[bytes, int]:
    """Type and size of a header whose checksum is right."""
    try:
        wanted = int(header[148:156].strip(b"\0 "), 8)
    except ValueError:
        raise TarFault("this is no header of a tar archive") from None
    # The bytes' sum, with the checksum taken for blanks. Adler-32 holds it too, plus 1, and is done in a tenth of the
    # time; that it is told modulo a prime, half the largest sum there can be, only matters to headers that are no text.
    if zlib.adler32(header) & 0xFFFF != (1 + wanted - 8 * 32 + sum(header[148:156])) % _ADLER:
        raise TarFault("a header does not match its checksum")
    if header[124] & 0x80:
        # Sizes that octal digits have no room for.
        return header[156:157], int.from_bytes(header[125:136], "big")
    return header[156:157], _number(header[124:136].strip(b"\0 ") or b"0", 8)


def _number(text: bytes, base: int = 10) -> int:
    try:
        number = int(text, base)
    except ValueError:
        number = -1
    if number < 0:
        raise TarFault(f"a size of {text!r}")
    return number


def _attributes(data: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    while data.strip(b"\0"):
        length, space, _ = data.partition(b" ")
        size = _number(length) if space else 0
        if not len(length) + 1 < size <= len(data):
            raise TarFault("attributes that are none")
        name, equals, value = data[len(length) + 1 : size - 1].partition(b"=")
        if equals:
            found[name] = value
        data = data[size:]
    return found


def split_name(name: bytes) -> tuple[str | None, str | None]:
    """The key and the field of a member of that name; None for both if it belongs to no sample."""
    text = name.decode("utf-8", "surrogateescape")
    found = _NAME.match(text)
    if found is None or _META.match(text):
        return None, None
    return found[1], found[2].lower()


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def find_member(data: Bytes) -> int:
    """The first block that is a header; -1 if none is."""
    for at in range(0, len(data) - BLOCK + 1, BLOCK):
        header = data[at : at + BLOCK].tobytes()
        try:
            if header.strip(b"\0"):
                _checked(header)
                return at
        except TarFault:
            continue
    return -1


def member_bytes(name: str, size: int) -> bytes:
    """The headers of a member; its contents and zeros up to a whole block follow."""
    import tarfile

    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def padding(size: int) -> bytes:
    """Zeros up to a whole block."""
    return bytes(_padded(size) - size)


END = bytes(2 * BLOCK)
"""What an archive ends with."""


def ranges(spans: list[tuple[int, int]]) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    """Places as an array of two columns."""
    return np.array(spans, np.int64).reshape(-1, 2)
