"""Blocks on disk: what does not fit into the budget, in files that nobody has to clean up.

The files have no name. The system frees them with the process, however that ends, so there is nothing to sweep after
a crash and nothing that two runs could confuse.
"""

import errno
import os
import pickle
import struct
import threading
import warnings
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.block import Block, Cursor, Structure
from forebay.errors import DataError, SpillError

_HEADER = struct.Struct("<IIQ")
"""Checksum of all that follows it, number of parts, and bytes of all parts."""
_CHECKED = 4
_SIZE = struct.Struct("<Q")
_IOV_MAX = 512


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block lies in a file."""

    offset: int
    nbytes: int
    rows: int


class SpillStore:
    """The files of one pipeline: where they are, and how much they may take up together.

    Args:
        folder: None for the system's temporary folder, or ``/var/tmp`` if that one is only memory.
        limit: the most bytes of all files together; None for as many as the disk has.
    """

    def __init__(self, folder: "str | os.PathLike[str] | None" = None, limit: int | None = None) -> None:
        self._given = folder
        self.limit = limit
        self._lock = threading.Lock()
        self._used = 0

    @property
    def used(self) -> int:
        """Bytes on disk at the moment."""
        return self._used

    def create(self) -> "SpillFile":
        """A new, empty file."""
        return SpillFile(self, _anonymous(self._folder()))

    def _folder(self) -> Path:
        if self._given is not None:
            folder = Path(self._given)
            if not folder.is_dir():
                raise SpillError(f"Options.spill_dir={str(folder)!r} is not a folder")
            return folder
        import tempfile

        folder = Path(tempfile.gettempdir())
        if not _in_memory(folder):
            return folder
        if Path("/var/tmp").is_dir() and not _in_memory(Path("/var/tmp")):
            return Path("/var/tmp")
        warnings.warn(
            f"{folder} is a file system in memory, so what is spilled to it still takes up memory; "
            "set Options.spill_dir to a folder on a disk",
            stacklevel=2,
        )
        return folder

    def reserve(self, nbytes: int) -> None:
        """Count bytes that are about to be written. SpillError if there may not be so many."""
        with self._lock:
            if self.limit is not None and self._used + nbytes > self.limit:
                raise SpillError(
                    f"Options.spill_limit is {self.limit:,} bytes; {self._used:,} are in use and {nbytes:,} more are "
                    "needed: raise it, or give the pipeline more memory"
                )
            self._used += nbytes

    def give_back(self, nbytes: int) -> None:
        """Bytes that are no longer on disk."""
        with self._lock:
            self._used -= nbytes


class SpillFile:
    """A file of blocks, and of bytes at any place. Written by one thread; read by any."""

    def __init__(self, store: SpillStore, file: int) -> None:
        self._store = store
        self.fileno = file
        self._size = [0]
        self._structures: list[Structure] = []
        self._close = weakref.finalize(self, _close, store, file, self._size)

    def __len__(self) -> int:
        return self._size[0]

    def append(self, block: Block) -> tuple[Place, int]:
        """Write a block behind the others; where it is, and the number that its structure goes by."""
        structure = self._number_of(block.structure)
        parts: list[Any] = []
        columns = _dumps(block.columns, parts)
        buffers: list[memoryview] = [part.raw() for part in parts]
        sizes = b"".join(_SIZE.pack(size) for size in (len(columns), *map(len, buffers)))
        total = len(sizes) + len(columns) + sum(map(len, buffers))
        header = _HEADER.pack(0, 1 + len(buffers), total)
        checksum = zlib.crc32(columns, zlib.crc32(sizes, zlib.crc32(header[_CHECKED:])))
        for buffer in buffers:
            checksum = zlib.crc32(buffer, checksum)
        header = _HEADER.pack(checksum, 1 + len(buffers), total)
        place = Place(len(self), _HEADER.size + total, block.rows)
        self.write(place.offset, [header, sizes, columns, *buffers])
        return place, structure

    def read(self, place: Place, structure: int, cursor: Cursor) -> Block:
        """The block at that place, in memory of its own."""
        data = memoryview(bytearray(place.nbytes))
        self._read_into(place.offset, data)
        checksum, count, total = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        if total != len(body) or zlib.crc32(data[_CHECKED:]) != checksum:
            raise DataError("a block that was spilled to disk has come back changed: the disk or its memory is faulty")
        ends = _HEADER.size + _SIZE.size * count
        parts = []
        for i in range(count):
            (size,) = _SIZE.unpack_from(body, i * _SIZE.size)
            parts.append(data[ends : ends + size])
            ends += size
        columns = pickle.loads(parts[0], buffers=parts[1:])
        return Block(self._structures[structure], columns, place.rows, cursor)

    def write(self, offset: int, parts: list[Any]) -> None:
        """Bytes at a place, which may be the end."""
        total = sum(len(part) for part in parts)
        before = len(self)
        self.grow(offset + total)
        try:
            with self.writing(total):
                self._write(offset, parts)
        except SpillError:
            self.shrink(before)
            raise

    def grow(self, size: int) -> None:
        """Count the file as at least that large, before it is written to."""
        more = max(0, size - len(self))
        self._store.reserve(more)
        self._size[0] += more

    def shrink(self, size: int) -> None:
        """Go back to that size, after what was to come behind it could not be written."""
        os.ftruncate(self.fileno, size)
        self._store.give_back(len(self) - size)
        self._size[0] = size

    @contextmanager
    def writing(self, nbytes: int) -> Iterator[None]:
        """SpillError, with what is to be known, if the system refuses to write."""
        try:
            yield
        except OSError as error:
            reason = "the disk is full" if error.errno == errno.ENOSPC else str(error)
            raise SpillError(
                f"{nbytes:,} bytes could not be spilled to disk: {reason}; {self._store.used:,} bytes are in use. "
                "Set Options.spill_dir to a larger disk, or give the pipeline more memory"
            ) from error

    def bytes_at(self, offset: int, size: int) -> bytes:
        """Bytes from a place."""
        data = memoryview(bytearray(size))
        self._read_into(offset, data)
        return bytes(data)

    def _write(self, offset: int, parts: list[Any]) -> None:
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        while views:
            done = os.pwritev(self.fileno, views[:_IOV_MAX], offset)
            offset += done
            while views and done >= len(views[0]):
                done -= len(views.pop(0))
            if done:
                views[0] = views[0][done:]

    def _read_into(self, offset: int, data: memoryview) -> None:
        done = 0
        while done < len(data):
            got = os.preadv(self.fileno, [data[done:]], offset + done)
            if got == 0:
                raise DataError("a file of spilled blocks has become shorter")
            done += got

    def _number_of(self, structure: Structure) -> int:
        for number, known in enumerate(self._structures):
            if known == structure:
                return number
        self._structures.append(structure)
        return len(self._structures) - 1

    def close(self) -> None:
        """Free the disk space."""
        self._close()


def _dumps(columns: Any, parts: list[Any]) -> bytes:
    try:
        return pickle.dumps(columns, 5, buffer_callback=parts.append)
    except (pickle.PicklingError, AttributeError, TypeError):
        parts.clear()
    # Rarely needed, and slow to load.
    import cloudpickle  # type: ignore[import-untyped]

    try:
        return cloudpickle.dumps(columns, 5, buffer_callback=parts.append)  # type: ignore[no-any-return]
    except Exception as error:
        raise SpillError(f"elements do not fit into memory and cannot be written to disk: {error}") from error


def _anonymous(folder: Path) -> int:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            raise SpillError(f"no file can be made in {folder}: {error}; set Options.spill_dir") from error
    # File systems without files that never had a name: it has one for an instant.
    import tempfile

    file, name = tempfile.mkstemp(prefix=".forebay-", dir=folder)
    os.unlink(name)
    return file


def _in_memory(folder: Path) -> bool:
    """Whether the folder is on a file system that keeps its files in memory."""
    best, kind = -1, ""
    try:
        target = str(folder.resolve())
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, mount, name, *_ = line.split()
            inside = target == mount or target.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= best:
                best, kind = len(mount), name
    except OSError:
        return False
    return kind in ("tmpfs", "ramfs")


def _close(store: SpillStore, file: int, size: list[int]) -> None:
    os.close(file)
    store.give_back(size[0])
