"""Where the members of a zip archive lie, to be read in place, or unfolded from there."""

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np

from forebay.errors import FileError
from forebay.storage.files import InputFile
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
