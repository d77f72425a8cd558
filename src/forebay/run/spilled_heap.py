"""Rows of any size on disk, one behind another, for whoever remembers where each of them lies."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forebay._native import read_ranges
from forebay.run.slot_table import changed
from forebay.run.spill import SpillFile, unreadable
from forebay.run.spill_room import SpillStore

Places = NDArray[np.int64]
"""Offset, size and checksum of each row."""

# Bytes of rows that have been replaced may grow to this and to as much as the rows that are left.
_WASTE = 1 << 20
# Rows from this size on, on average, cost less to be written one by one than to be joined.
_LARGE = 1 << 16


class SpilledHeap:
    """Rows are only ever added; once too much of it is of no use, those that are left have to be put into another."""

    def __init__(self, store: SpillStore) -> None:
        self._file = SpillFile(store)
        self._rows = 0

    @property
    def nbytes(self) -> int:
        """What it takes up on disk."""
        return len(self._file)

    @property
    def row_bytes(self) -> int:
        """Of an average row."""
        return len(self._file) // max(self._rows, 1)

    def wasteful(self, used: int) -> bool:
        """Whether most of it is waste if so many rows are in use.

        They are taken for average ones: those that were replaced would have to be looked up to know their sizes.
        """
        return len(self._file) > _most_kept(used, self.row_bytes)

    def append(self, rows: Sequence[bytes | memoryview]) -> Places:
        """Add rows; where they lie."""
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        ends = len(self._file) + np.cumsum(sizes)
        # Large ones are not to be there once more.
        parts = rows if _LARGE * len(rows) < int(sizes.sum()) else [b"".join(rows)]
        self._file.write(len(self._file), list(parts))
        self._rows += len(rows)
        return np.stack([ends - sizes, sizes, np.fromiter(map(zlib.crc32, rows), np.int64, len(rows))], axis=1)

    def read(self, places: Places) -> list[memoryview]:
        """Rows that were added. DataError if one has changed."""
        starts, sizes, sums = (np.ascontiguousarray(field) for field in places.T)
        data = np.empty(int(sizes.sum()), np.uint8)
        try:
            read_ranges(self._file.fileno, starts, starts + sizes, data)
        except EOFError:
            raise changed() from None
        except OSError as error:
            raise unreadable(error) from error
        whole, ends = data.data, np.cumsum(sizes).tolist()
        rows = [whole[begin:end] for begin, end in zip([0, *ends], ends)]
        if list(map(zlib.crc32, rows)) != sums.tolist():
            raise changed()
        return rows

    def close(self) -> None:
        """Free the disk space."""
        self._file.close()


def most_heap_bytes(used: int, rows: int | None, row_bytes: int, at_once: int) -> int:
    """What heaps take up at most through which so many rows go, `used` of them at a time; None for no end of them.

    Rows that are left are put into another heap while the old one is still there.
    """
    limit = _most_kept(used, row_bytes)
    if rows is not None and rows * row_bytes <= limit:
        return rows * row_bytes
    return limit + max(at_once, row_bytes) + used * row_bytes


def _most_kept(used: int, row_bytes: int) -> int:
    return 2 * used * row_bytes + _WASTE
