"""Rows of 1 KiB in a file larger than memory is allowed to be: how they are made, read, checked and evicted."""

from __future__ import annotations

import mmap
import os
import resource
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bench.pipeline import WrongData

ROW = 1024
BATCH = 256
MIB = 1 << 20
STEP = MIB
"""Bytes of one read or write of a floor: more than that is no faster."""
_ROWS_AT_ONCE = 4096
_LEFT_FREE = 768 * MIB
# Of so many rows it is seen from one whether they stayed where they were.
_ONE_IN = 16
_ENDS = struct.Struct(f"<q{ROW - 16}xq")


def write(path: Path, rows: int, first: int = 0) -> None:
    """Random bytes, with the row's number at both ends of it; on the disk when this returns."""
    chunk = np.random.default_rng(1).integers(0, 256, (_ROWS_AT_ONCE, ROW), np.uint8)
    with path.open("wb") as out:
        for start in range(first, first + rows, _ROWS_AT_ONCE):
            some = chunk[: min(_ROWS_AT_ONCE, first + rows - start)]
            numbers = np.arange(start, start + len(some)).view(np.uint8).reshape(-1, 8)
            some[:, :8] = some[:, -8:] = numbers
            out.write(some)
        out.flush()
        os.fsync(out.fileno())


def mapped(path: Path, start: int = 0, rows: int | None = None) -> Any:
    """Rows of the file as an array."""
    count = path.stat().st_size // ROW - start if rows is None else rows
    return np.memmap(path, np.uint8, "r", offset=start * ROW, shape=(count, ROW))


def numbers(batch: Any) -> Any:
    """The rows' numbers. WrongData if a row's two ends do not belong together."""
    row = batch.view(np.int64)
    if not np.array_equal(row[:, 0], row[:, -1]):
        raise WrongData("a row is made of parts of others")
    return row[:, 0]


def ends(batch: Any) -> tuple[int, int]:
    """The numbers of the first and the last row, looked up for next to nothing: a floor does not look at all."""
    (first, first_end), (last, last_end) = _ENDS.unpack_from(batch), _ENDS.unpack_from(batch, batch.nbytes - ROW)
    if first != first_end or last != last_end:
        raise WrongData("a row is made of parts of others")
    return first, last


def consume_shuffled(batches: Iterable[Any], rows: int, out_of: int | None = None) -> float:
    """Seconds to go through all batches. WrongData unless every one of so many rows comes once, out of order.

    Looking at both ends of every row is part of the time, for all contenders alike, and a byte a row of their memory.
    """
    seen = np.full(out_of or rows, False)
    count = looked = stayed = 0
    began = time.perf_counter()
    for batch in batches:
        found = numbers(batch)
        seen[found] = True
        if looked * _ONE_IN <= count:
            looked += len(found)
            stayed += int((found == np.arange(count, count + len(found))).sum())
        count += len(found)
    seconds = time.perf_counter() - began
    if count != rows or int(seen.sum()) != rows:
        raise WrongData(f"{count:,} rows, {int(seen.sum()):,} different ones; expected {rows:,}")
    if stayed > 10 + looked // 100:
        raise WrongData("more than one row in a hundred stayed where it was")
    return seconds


def limit_data(nbytes: int) -> None:
    """Let the process have no more memory of its own than this (RLIMIT_DATA); files in the page cache do not count."""
    resource.setrlimit(resource.RLIMIT_DATA, (nbytes, nbytes))


def data_bytes() -> int:
    """What the process has of that now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("the kernel reports no VmData")


def evict(path: Path) -> None:
    """Have the file on the disk, and no longer in the page cache."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def warm(path: Path) -> None:
    """Have the file in the page cache, as far as there is room."""
    with path.open("rb", buffering=0) as file:
        sequential_read(file.fileno())


def empty_page_cache() -> None:
    """Have nothing in the page cache, if that is permitted.

    What others have left there would be thrown out while the next one is timed: a floor then takes half as long again,
    and whoever reads a file besides twice as long.
    """
    os.sync()
    with suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("1")


def claim_memory() -> None:
    """Have the memory that is free be there: whoever writes a large file next is not timed while it is got hold of.

    A virtual machine gives free memory back to its host after some seconds, and to get it again takes several times as
    long as to write to it. Whether that had happened decided what a floor measured, and by how much: 0.4 M to 3.5 M
    rows/s. To be called before the process is limited.
    """
    # Nor begins anybody with what others still have to write.
    os.sync()
    free = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemFree:"))
    nbytes = (int(free.split()[1]) << 10) - _LEFT_FREE
    if nbytes <= 0:
        return
    child = os.fork()
    if child == 0:
        memory = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
        np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE] = 1
        os._exit(0)
    os.waitpid(child, 0)


def sequential_write(file: int, nbytes: int) -> float:
    """Seconds to write so many bytes from the beginning of a file on, without a sync."""
    piece = _page_aligned()
    piece[:] = np.random.default_rng(2).bytes(STEP)
    began = time.perf_counter()
    for offset in range(0, nbytes, STEP):
        os.pwrite(file, piece[: min(STEP, nbytes - offset)], offset)
    return time.perf_counter() - began


def sequential_read(file: int) -> float:
    """Seconds to read all of a file, into the same memory again and again."""
    piece = _page_aligned()
    began = time.perf_counter()
    offset = 0
    while got := os.preadv(file, [piece], offset):
        offset += got
    return time.perf_counter() - began


def _page_aligned() -> memoryview:
    # A copy of pages to 16 bytes behind the start of a page, where bytearrays lie, can be five times slower.
    return memoryview(mmap.mmap(-1, STEP))


def anonymous(folder: Path) -> int:
    """A file that nobody else sees and that ends with the process, as Forebay's own ones."""
    return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
