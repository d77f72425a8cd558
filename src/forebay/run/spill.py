"""Blocks on disk: what does not fit into the budget, in files that nobody has to clean up.

The files have no name. The system frees them with the process, however that ends, so there is nothing to sweep after
a crash and nothing that two runs could confuse.
"""

import errno
import json
import mmap
import os
import pickle
import struct
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import Errands, allocate_ahead, free_range
from forebay.block import Block, Cursor, Indices, Structure
from forebay.block.aligned import ALIGN, aligned_empty
from forebay.errors import DataError, SpillError
from forebay.forks import tell_children
from forebay.full_disk import refusal, room
from forebay.run import spill_use
from forebay.run.packed import Packing, pack, unpack
from forebay.run.places import Place
from forebay.run.spill_room import SpillStore, check_folder
from forebay.run.stretches import Stretch, Stretches
from forebay.storage.checked import checksum, read_checked
from forebay.system import read_text

_SHORTER = "a file of what was spilled to disk has become shorter"
_CHANGED = "what was spilled to disk has come back changed: the disk or its memory is faulty"
_IOV_MAX = 512
_NO_WAIT = getattr(os, "RWF_NOWAIT", 0)
_DIRECT = getattr(os, "O_DIRECT", 0)
# The disk sets as much aside as there is already, within these bounds: files may stay small, and there may be many.
# Each time it may have to look up what is free, for which all who write to the file wait: 0.8 s in 8 GiB if it is asked
# for 64 MiB at a time, 0.4 s for 512 MiB, 0.2 s for these.
_AHEAD = 1 << 20
_MOST_AHEAD = 1 << 31
# And no more than such a part of what is free, or files that stay small would find nothing.
_FREE_PART = 4


# To free a large file takes a second for some GiB, which nobody has to wait for at the end of an epoch; only whoever is
# about to use the disk again.
_FREED_LATER = 1 << 26
_freeing = Errands()

# The size of what tells of a block's rows, behind that.
_LENGTH = struct.Struct("<I")
Bytes = NDArray[np.uint8]
# Dtypes in tuples of their own: NumPy takes None for one.
_BlockKind = tuple[Structure, tuple["tuple[np.dtype[Any]] | None", ...]]


class SpillFile:
    """A file of blocks, and of bytes at any place: new and empty. Written by one thread; read by any.

    Forked children have it only if it is `inherited`.
    """

    def __init__(self, store: SpillStore, inherited: bool = False) -> None:
        _freeing.settle()
        self._folder = _folder(store.folder)
        file = _anonymous(self._folder)
        spill_use.opened(file, store.owner)
        self.store = store
        self.fileno = file
        # The size, and how much of it has been given back to the disk.
        self._size = [0, 0]
        # Up to where the disk has set room aside; None if it does not. Under a limit it may not: what several files
        # have set aside would count too.
        self._ahead: int | None = 0 if store.limit is None else None
        # Not in the file, since classes of the user's cannot always be pickled. Few, whatever the shapes of rows.
        self._kinds: list[_BlockKind] = []
        self._far_file: list[int] = []
        self.far = sys.maxsize
        """From here on, a multiple of the page, pieces are read and written past the page cache, where only what there
        is room for does not pass through in vain."""
        self._close = weakref.finalize(self, _close, store, file, self._size, self._far_file)
        # At the interpreter's end others may still read in it, who are closed after it, and the system frees it.
        self._close.atexit = False
        if not inherited:
            tell_children(self)

    def in_child(self) -> None:
        """Called by itself in a forked child: its disk space is not to stay for as long as the child does."""
        # Whoever still has the numbers must not get at other files by them. If that fails, the space stays.
        with suppress(OSError):
            nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            for file in (self.fileno, *self._far_file) if self._close.alive else ():
                os.dup2(nothing, file, inheritable=False)
            os.close(nothing)

    def __len__(self) -> int:
        return self._size[0]

    def append(self, block: Block) -> Place:
        """Write a block behind the others. What differs from one to the next is in the file, and places stay small."""
        packing, pieces = pack(block, _dumps)
        shapes = [kind and kind[1] for kind in packing.kinds]
        about = json.dumps([shapes, packing.sizes, block.cursor.to_json()], separators=(",", ":")).encode()
        pieces += [about, _LENGTH.pack(len(about))]
        offset, digest = self.put(pieces)
        kind = self._number_of((block.structure, tuple(kind and kind[:1] for kind in packing.kinds)))
        return Place(offset, sum(map(len, pieces)), block.rows, digest, kind)

    def read(self, place: Place) -> Block:
        """The block at that place with its cursor, in memory of its own."""
        data = aligned_empty((place.nbytes,), place=place.offset)
        self.read_into(place.offset, data, place.checksum)
        return self._unpacked(place, data)

    def read_next(self, place: Place, stretches: Stretches, then: Stretch | None) -> Block:
        """The same for those who read one after another, `then` that one."""
        with self.reading():
            data, found = stretches.read(self.stretch(place), place.checksum, then)
        self._compare(found, place.checksum)
        return self._unpacked(place, data)

    def stretch(self, place: Place) -> Stretch:
        """Where the block at that place is."""
        return Stretch(self, self.fileno, place.offset, place.nbytes)

    def _unpacked(self, place: Place, data: Any) -> Block:
        end = place.nbytes - _LENGTH.size
        shapes, sizes, cursor = json.loads(data[end - _LENGTH.unpack_from(data, end)[0] : end].tobytes())
        structure, dtypes = self._kinds[place.kind]
        kinds = tuple(dtype and (*dtype, tuple(shape)) for dtype, shape in zip(dtypes, shapes))
        columns = unpack(Packing(kinds, tuple(sizes)), place.rows, data)
        return Block(structure, columns, place.rows, Cursor.from_json(cursor))

    def put(self, parts: list[Any]) -> tuple[int, int]:
        """Write bytes behind all others, where they can be read from at full speed; the offset and the checksum."""
        digest, offset = checksum(*parts), self._end()
        self.write(offset, parts)
        return offset, digest

    def reserve(self, nbytes: int) -> int:
        """Count so many bytes behind all others as there, for whoever is about to write them; where they begin."""
        offset = self._end()
        self.grow(offset + nbytes)
        return offset

    def read_into(self, offset: int, out: Any, expected: int) -> None:
        """Fill `out` from a place. DataError if these bytes do not have the checksum that they had."""
        with self.reading():
            found = read_checked(self.fileno, offset, out)
        self._compare(found, expected)

    def _compare(self, found: int | None, expected: int) -> None:
        if found is None:
            raise DataError(_SHORTER)
        if found != expected:
            raise DataError(_CHANGED)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """DataError if the file ends before what is read in it, or the disk cannot read that."""
        try:
            yield
        except EOFError:
            raise DataError(_SHORTER) from None
        except OSError as error:
            raise unreadable(error) from error

    @staticmethod
    def compare(found: Indices, expected: Indices) -> None:
        """DataError if checksums are not those that were written."""
        if np.any(found != expected):
            raise DataError(_CHANGED)

    def will_need(self, offset: int, size: int) -> None:
        """Have the system read these bytes from the disk, if they are not in memory, while other work is done."""
        os.posix_fadvise(self.fileno, offset, size, os.POSIX_FADV_WILLNEED)

    def open_far(self) -> int:
        """The descriptor for what is far, which is opened when it is first needed; -1 if there can be none."""
        if not self._far_file:
            try:
                self._far_file.append(os.open(f"/proc/self/fd/{self.fileno}", os.O_RDWR | os.O_CLOEXEC | _DIRECT))
            except OSError:  # A file system that knows of no such thing.
                self.far = sys.maxsize
        return self.direct

    @property
    def direct(self) -> int:
        """The same if it has been opened."""
        return self._far_file[0] if self._far_file else -1

    def is_near(self, offset: int) -> bool:
        """Whether the system has that byte in memory, as far as it tells."""
        try:
            return os.preadv(self.fileno, [bytearray(1)], offset, _NO_WAIT) == 1
        except OSError:  # Nothing is there without waiting, or the file system cannot tell.
            return False

    def write(self, offset: int, parts: list[Any]) -> None:
        """Bytes at a place, which may be the end."""
        total = sum(len(part) for part in parts)
        before = len(self)
        self.grow(offset + total)
        with self.writing(total, before):
            self._write(offset, parts)

    def _end(self) -> int:
        return -(-len(self) // ALIGN) * ALIGN

    def grow(self, size: int) -> None:
        """Count the file as at least that large, before it is written to."""
        more = max(0, size - len(self))
        self.store.reserve(more)
        self._size[0] += more
        if self._ahead is not None and len(self) > self._ahead:
            self._set_aside()

    def _set_aside(self) -> None:
        """Room for what is coming and some more, if there may be so much. Without it, writing only takes longer."""
        assert self._ahead is not None
        disk = os.fstatvfs(self.fileno)
        free = disk.f_bavail * disk.f_frsize // _FREE_PART
        wanted = len(self) + min(max(len(self), _AHEAD), _MOST_AHEAD, free)
        # A hole that is larger would take all there is from others, until it is found that this is too little.
        done = len(self) - self._ahead <= free and allocate_ahead(self.fileno, self._ahead, wanted - self._ahead)
        self._ahead = wanted if done else None
        if done and len(self) > self.far:
            # Several may write to a file at once past the page cache, unless it has to grow.
            with suppress(OSError):  # Larger than files may be; what is too much of that will be told when it comes.
                os.ftruncate(self.fileno, wanted)

    def shrink(self, size: int) -> None:
        """Go back to that size, after what was to come behind it could not be written."""
        os.ftruncate(self.fileno, size)
        self._ahead = None
        self.store.give_back(len(self) - size)
        self._size[0] = size

    def settle(self, size: int) -> None:
        """Count the file as that large at most, after room was taken for as much as might have come."""
        size = min(size, os.fstat(self.fileno).st_size)
        self.store.give_back(len(self) - size)
        self._size[0] = size

    def trim(self) -> None:
        """Let go of what the disk has set aside, and have it set nothing aside any more: little is still to come."""
        if self._ahead is not None:
            os.ftruncate(self.fileno, len(self))
            self._ahead = None

    def free(self, place: Place) -> None:
        """Give what lies at a place back to the disk, as far as it has pages of its own; nobody reads it any more."""
        start = -(-place.offset // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (place.offset + place.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - start
        if size > 0 and free_range(self.fileno, start, size):
            self.store.give_back(size)
            self._size[1] += size

    @contextmanager
    def writing(self, nbytes: int, before: int) -> Iterator[None]:
        """SpillError, with what is to be known, if the system refuses to write; the file has its size `before` then."""
        try:
            yield
        except OSError as error:
            # What nobody will read is not to be told of as in use.
            self.shrink(before)
            _freeing.settle()
            mine, others = spill_use.in_use(self.store.owner, os.fstat(self.fileno).st_dev)
            raise SpillError(
                f"{nbytes:,} bytes could not be spilled to disk: {refusal(error)}; of it, without these, this dataset "
                f"has {mine:,} bytes in use, other datasets of this process have {others:,}, and {room(self._folder)}. "
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

    def _number_of(self, kind: _BlockKind) -> int:
        for number, known in enumerate(self._kinds):
            if known == kind:
                return number
        self._kinds.append(kind)
        return len(self._kinds) - 1

    def close(self) -> None:
        """Free the disk space."""
        self._close()


def unreadable(error: OSError) -> DataError:
    """What to say of a file that the disk cannot read."""
    return DataError(f"what was spilled to disk cannot be read back: {refusal(error)}")


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


def disk_left(folder: "str | os.PathLike[str] | None") -> int:
    """Bytes that may still be spilled to a folder, or to where things are spilled if none is named."""
    found = os.statvfs(_folder(folder))
    return found.f_bavail * found.f_frsize


def _folder(wanted: "str | os.PathLike[str] | None") -> str:
    if wanted is not None:
        check_folder(wanted)
        return os.fspath(wanted)
    import tempfile

    folder = tempfile.gettempdir()
    if not _in_memory(folder):
        return folder
    if os.path.isdir("/var/tmp") and not _in_memory("/var/tmp"):
        return "/var/tmp"
    warnings.warn(
        f"{folder} is a file system in memory, so what is spilled to it still takes up memory; "
        "set Options.spill_dir to a folder on a disk",
        stacklevel=2,
    )
    return folder


def _anonymous(folder: str) -> int:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            raise SpillError(f"no file can be made in {folder}: {error}; set Options.spill_dir") from error
    # File systems without files that never had a name: it has one for an instant.
    import tempfile

    try:
        file, name = tempfile.mkstemp(prefix=".forebay-", dir=folder)
    except OSError as error:
        raise SpillError(f"no file can be made in {folder}: {error}; set Options.spill_dir") from error
    os.unlink(name)
    return file


def _in_memory(folder: str) -> bool:
    """Whether the folder is on a file system that keeps its files in memory."""
    best, kind = -1, ""
    try:
        target = os.path.realpath(folder)
        for line in read_text("/proc/self/mounts").splitlines():
            _, mount, name, *_ = line.split()
            inside = target == mount or target.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= best:
                best, kind = len(mount), name
    except OSError:
        return False
    return kind in ("tmpfs", "ramfs")


def _close(store: SpillStore, file: int, size: list[int], far: list[int]) -> None:
    written, freed = size
    spill_use.closing(file)
    for each in far:
        os.close(each)
    if written < _FREED_LATER:
        os.close(file)
    else:
        _freeing.close(file)
    store.give_back(written - freed)
