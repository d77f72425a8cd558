"""Where the members of a zip archive lie, to be read in place, or unfolded from there."""

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np

from forebay.errors import FileError
from forebay.storage.files import Bytes, InputFile
from forebay.storage.streams import Inflated

STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED


@dataclass(frozen=True, slots=True)
class Member:
    """Where a member's bytes begin and end, how they are compressed, and what they should unfold to."""

    begin: int
    end: int
    method: int
    size: int
    crc: int


Members = dict[str, Member]

# Of members that are compared as a whole before rows here and there are read from them.
_MOST_COMPARED = 64 << 20
_PIECE = 1 << 20
# Iterators that go through a member at a time, each with a checksum of what it has seen.
_MOST_FOLLOWED = 16


class Checksum:
    """Whether a member that is stored as it is has the checksum that the archive tells: found out by whoever reads it
    from `first`, where its rows begin, to `last`; or by reading all of it, unless it is large. Once that is known,
    nothing is read for it any more; whoever reads from a member that is damaged is told so."""

    def __init__(self, name: str, member: Member, first: int, last: int) -> None:
        self._name = name
        self._member = member
        self._first = first
        self._last = last
        self._so_far: dict[int, int] = {}  # Of all that comes before a place in the file.
        self._right: bool | None = None

    def read(self, file: InputFile, at: int, data: Bytes) -> None:
        """Hears of bytes that were read. FileError if they are the last ones, and the checksum is wrong."""
        if self._right is not None:
            self._tell(file)
            return
        if at == self._first:
            crc: int | None = self._through(file, self._member.begin, at, 0)
        else:
            crc = self._so_far.get(at)
        if crc is None:
            self.compare(file)
            return
        crc, end = zlib.crc32(data.data, crc), at + len(data)
        if end == self._last:
            self._judge(file, self._through(file, end, self._member.end, crc))
            return
        for old in (at, *list(self._so_far)[: 1 - _MOST_FOLLOWED]):
            self._so_far.pop(old, None)
        self._so_far[end] = crc

    def compare(self, file: InputFile) -> None:
        """Read all of it, unless that has been done or is too much."""
        begin, end = self._member.begin, self._member.end
        if self._right is not None:
            self._tell(file)
        elif end - begin <= _MOST_COMPARED:
            self._judge(file, self._through(file, begin, end, 0))

    def _judge(self, file: InputFile, crc: int) -> None:
        self._right = crc == self._member.crc
        self._so_far.clear()
        self._tell(file)

    def _tell(self, file: InputFile) -> None:
        if not self._right:
            raise FileError(
                file.path, f"its member {self._name!r} is damaged: its checksum is wrong", self._member.begin
            )

    def _through(self, file: InputFile, begin: int, end: int, crc: int) -> int:
        piece = np.empty(min(_PIECE, end - begin), np.uint8)
        while begin < end:
            got = file.read_at(begin, piece[: end - begin])
            if not got:
                raise FileError(file.path, "has become shorter", begin)
            crc = zlib.crc32(piece[:got].data, crc)
            begin += got
        return crc


_LOCAL_HEADER = 30


def stored_members(file: InputFile) -> Members:
    """All members. FileError if the archive is damaged, or its members lie where the file has no bytes."""
    try:
        with zipfile.ZipFile(io.BufferedReader(_Reader(file))) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, struct.error, NotImplementedError) as error:
        raise FileError(file.path, f"is not a zip archive that can be read: {error}") from error
    members = {}
    for info in infos:
        head = np.empty(_LOCAL_HEADER, np.uint8)
        got = file.read_at(info.header_offset, head)
        if got < _LOCAL_HEADER or head[:4].tobytes() != b"PK\x03\x04":
            raise FileError(file.path, f"its member {info.filename!r} is not where it should be", info.header_offset)
        name, extra = struct.unpack_from("<HH", head.tobytes(), 26)
        begin = info.header_offset + _LOCAL_HEADER + name + extra
        end = begin + info.compress_size
        if end > file.size:
            raise FileError(file.path, f"its member {info.filename!r} goes beyond the end of the file", begin)
        members[info.filename] = Member(begin, end, info.compress_type, info.file_size, info.CRC)
    return members


class MemberStream(Inflated):
    """The contents of a member that is compressed, unfolded as they are asked for, and compared with its checksum at
    the end: FileError may come as late as that."""

    def __init__(self, file: InputFile, member: Member, position: int = 0) -> None:
        self._wanted = member
        self._crc = 0
        self._given = 0
        super().__init__(file, -zlib.MAX_WBITS, position, member.begin, member.end)

    def unfolded(self, data: bytes) -> None:
        """Count it in."""
        self._crc = zlib.crc32(data, self._crc)
        self._given += len(data)
        if self._given > self._wanted.size:
            raise FileError(
                self.path, f"unfolds to more than the {self._wanted.size:,} bytes it should", self._wanted.begin
            )

    def ended(self) -> None:
        """Compare."""
        if (self._given, self._crc) != (self._wanted.size, self._wanted.crc):
            raise FileError(
                self.path, "its compressed data is damaged: its size or checksum is wrong", self._wanted.begin
            )


class _Reader(io.RawIOBase):
    """The file as ``zipfile`` reads it."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Anywhere."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        if base + offset < 0:
            raise OSError("before the start of the file")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        """Where it is."""
        return self._at

    def readinto(self, buffer: object) -> int:
        """The next bytes."""
        into = np.frombuffer(buffer, np.uint8)  # type: ignore[call-overload]
        got = self._file.read_at(self._at, into)
        self._at += got
        return int(got)
