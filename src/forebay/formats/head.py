"""The beginning of a file: what formats are recognised by."""

import zlib
from dataclasses import dataclass

import numpy as np

from forebay.lazy import cached_property
from forebay.storage.files import open_file

# So much of a file is read, and so much of what that unfolds to is looked at, however much it may be; the second if
# the first holds text that has not come to the end of its second line, as in a table of many columns.
_LOOKS = ((1 << 16, 1 << 18), (1 << 22, 1 << 22))
# What tells the format of text: a header, and a record.
_LINES = 2
_PRINTABLE = bytes([*range(32, 127), *b"\t\n\r\f\b\x1b", *range(128, 256)])
_LEGIBLE = 0.95


@dataclass(frozen=True)
class Head:
    """The first bytes of what is in a file, unfolded if they are compressed, and how many bytes the file has.

    `ratio` is how many bytes of contents came of one byte of the file; `ended` says that nothing else would come.
    """

    path: str
    size: int
    data: bytes
    compression: str | None = None
    ratio: float = 1.0
    ended: bool = False

    @property
    def whole(self) -> bool:
        """Whether all of the contents are in it."""
        return self.ended or (self.compression is None and len(self.data) == self.size)

    @property
    def name(self) -> str:
        """The path in lower case, without the ending of what it is compressed with."""
        return plain_name(self.path)

    @cached_property
    def text(self) -> str | None:
        """The same as text, up to the last character that is whole; None if it is no text."""
        data = self.data.removeprefix(b"\xef\xbb\xbf")
        if not data or b"\0" in data:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if error.start >= len(data) - 3:
                return data[: error.start].decode()
        legible = len(data) - len(data.translate(None, _PRINTABLE))
        return data.decode("latin-1") if len(data) - legible >= _LEGIBLE * len(data) else None

    @cached_property
    def lines(self) -> list[str]:
        """Its whole lines; if there is none, what there is of the first."""
        if self.text is None:
            return []
        lines = self.text.splitlines(keepends=True)
        ends = self._ends or len(lines) == 1
        return [line.rstrip("\r\n") for line in (lines if ends else lines[:-1])]

    @property
    def cut(self) -> bool:
        """Whether there is more of the first line than this."""
        return self.text is not None and not self._ends and len(self.text.splitlines()) == 1

    @property
    def _ends(self) -> bool:
        return self.whole or (self.text or "").endswith("\n")


def plain_name(path: str) -> str:
    """A path in lower case, without the ending of what it is compressed with."""
    name = path.lower()
    for ending in (".gz", ".gzip", ".zlib", ".z"):
        name = name.removesuffix(ending)
    return name


def read_head(path: str) -> Head:
    """The head of a file. FileError if it cannot be read."""
    file = open_file(path)
    try:
        for raw_bytes, content_bytes in _LOOKS:
            raw = np.empty(min(raw_bytes, file.size), np.uint8)
            head = _unfolded(path, file.size, raw[: file.read_at(0, raw)].tobytes(), content_bytes)
            if head.whole or head.text is None or (len(head.lines) >= _LINES and not head.cut):
                break
        return head
    finally:
        file.close()


def _unfolded(path: str, size: int, data: bytes, most: int) -> Head:
    for name, bits in (("GZIP", 31), ("ZLIB", 15)):
        if _begins(name, data):
            unfolder = zlib.decompressobj(bits)
            try:
                content = unfolder.decompress(data, most)
            except zlib.error:
                # Damaged within the first bytes, or something else after all.
                content = b""
            if content or (name == "GZIP" and not unfolder.eof):
                used = len(data) - len(unfolder.unconsumed_tail) - len(unfolder.unused_data)
                ended = unfolder.eof and used == size
                return Head(path, size, content, name, max(len(content), 1) / max(used, 1), ended)
            if unfolder.eof:
                return Head(path, size, b"", name)
    return Head(path, size, data)


def _begins(compression: str, data: bytes) -> bool:
    if compression == "GZIP":
        return data[:3] == b"\x1f\x8b\x08"
    # The method, a window that there is, and a check of both.
    return len(data) > 2 and data[0] & 0x8F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
