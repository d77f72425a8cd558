"""Blocks on disk: what does not fit into the budget, in files that nobody has to clean up.

The files have no name. The system frees them with the process, however that ends, so there is nothing to sweep after
a crash and nothing that two runs could confuse.
"""

import errno
import os
import pickle
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from forebay.block import Block, Column, Cursor, Structure
from forebay.block.aligned import ALIGN, aligned_empty
from forebay.block.dense import Dense
from forebay.errors import DataError, SpillError
from forebay.storage.checked import checksum, read_checked

_SHORTER = "a file of what was spilled to disk has become shorter"
_IOV_MAX = 512


Rows = tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block lies in a file, and how to tell that it has come back whole.

    All that is known of it stays in memory with the file, which nobody else can read. In the file are the arrays' own
    bytes, one behind another; `dense` has the dtype of each and the shape of its rows. Columns of other kinds are
    pickled, and `parts` are the sizes of the pickle and of the arrays behind it.
    """

    offset: int
    nbytes: int
    rows: int
    checksum: int
    parts: tuple[int, ...]
    dense: "Rows | None"


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
        self._dense: Rows | None = None
        self._close = weakref.finalize(self, _close, store, file, self._size)

    def __len__(self) -> int:
        return self._size[0]

    def append(self, block: Block) -> tuple[Place, int]:
        """Write a block behind the others; where it is, and the number that its structure goes by."""
        structure = self._number_of(block.structure)
        dense = _dense(block)
        parts: list[Any] = []
        if dense is not None:
            parts += [_raw(column) for column in block.columns]
        else:
            buffers: list[Any] = []
            parts += [_dumps(block.columns, buffers), *(buffer.raw() for buffer in buffers)]
        pieces = [piece for part in parts for piece in (part, bytes(-len(part) % ALIGN))]
        # Blocks are mostly like the one before, and share what tells of it.
        if dense == self._dense:
            dense = self._dense
        self._dense = dense
        sizes = () if dense is not None else tuple(map(len, parts))
        place = Place(len(self), sum(map(len, pieces)), block.rows, checksum(*pieces), sizes, dense)
        self.write(place.offset, pieces)
        return place, structure

    def read(self, place: Place, structure: int, cursor: Cursor) -> Block:
        """The block at that place, in memory of its own."""
        data = aligned_empty((place.nbytes,)).data
        self.read_into(place.offset, data, place.checksum)
        parts, begin = [], 0
        columns: list[Column] = []
        if place.dense is not None:
            for dtype, shape in place.dense:
                columns.append(Dense(np.ndarray((place.rows, *shape), dtype, data, begin)))
                begin += columns[-1].nbytes + -columns[-1].nbytes % ALIGN
        else:
            for size in place.parts:
                parts.append(data[begin : begin + size])
                begin += size + -size % ALIGN
            columns = pickle.loads(parts[0], buffers=parts[1:])
        return Block(self._structures[structure], columns, place.rows, cursor)

    def read_into(self, offset: int, out: Any, expected: int) -> None:
        """Fill `out` from a place. DataError if these bytes do not have the checksum that they had."""
        found = read_checked(self.fileno, offset, out)
        if found is None:
            raise DataError(_SHORTER)
        if found != expected:
            raise DataError("what was spilled to disk has come back changed: the disk or its memory is faulty")

    def will_need(self, offset: int, size: int) -> None:
        """Have the system read these bytes from the disk, if they are not in memory, while other work is done."""
        os.posix_fadvise(self.fileno, offset, size, os.POSIX_FADV_WILLNEED)

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
                raise DataError(_SHORTER)
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


def _dense(block: Block) -> "Rows | None":
    """Dtypes and shapes of rows whose memory says all there is; None if there are others."""
    columns = [column for column in block.columns if isinstance(column, Dense)]
    if len(columns) < len(block.columns) or any(column.values.dtype.hasobject for column in columns):
        return None
    return tuple((column.values.dtype, column.values.shape[1:]) for column in columns)


def _raw(column: Column) -> Any:
    assert isinstance(column, Dense)
    return np.ascontiguousarray(column.values).reshape(-1).view(np.uint8).data


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
