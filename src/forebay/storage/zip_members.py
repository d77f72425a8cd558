"""Where the members of a zip archive lie, so that those that are not compressed can be read in place."""

import io
import struct
import zipfile

import numpy as np

from forebay.errors import FileError
from forebay.storage.files import InputFile

Members = dict[str, tuple[int, int, int]]
"""By name: where a member's bytes begin and end, and how they are compressed (0: not at all)."""

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
        members[info.filename] = (begin, end, info.compress_type)
    return members


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
