"""Records of one width in numbered slots on disk, each with a checksum that is right in its own slot only."""

import numpy as np
from numpy.typing import NDArray

from forebay._native import read_rows, write_rows
from forebay.block import Indices
from forebay.errors import DataError
from forebay.run.spill import SpillFile, unreadable
from forebay.run.spill_room import SpillStore

Bytes = NDArray[np.uint8]

_WORD = 8
# Records of up to this size are worth putting in order before they are read.
_NARROW = 256
# Odd, so that no difference in one word of a record can vanish in the sum.
_FACTORS = 0x9E3779B97F4A7C15


class SlotTable:
    """Slots that hold `width` bytes each, or nothing yet.

    A record's checksum lies behind it: in memory, those of narrow records would take up as much as the records do.
    """

    def __init__(self, store: SpillStore, width: int) -> None:
        self._words = record_bytes(width) // _WORD
        self._factors = (np.arange(1, self._words, dtype=np.uint64) * np.uint64(_FACTORS)) | np.uint64(1)
        self._file = SpillFile(store)
        self.filled = 0
        """One more than the highest slot that was ever put."""

    @property
    def nbytes(self) -> int:
        """What all slots take up on disk."""
        return len(self._file)

    @property
    def record_bytes(self) -> int:
        """What a slot takes up on disk."""
        return self._words * _WORD

    def blank(self, count: int) -> Bytes:
        """So many records to be filled in and put. Behind their `width` bytes is room for what is added."""
        return np.zeros((count, self._words * _WORD), np.uint8)

    def put(self, slots: Indices, records: Bytes) -> None:
        """Put records, made by ``blank``, into these slots: at least one, and none twice."""
        if (np.diff(slots) < 0).any():
            order = np.argsort(slots, kind="stable")
            slots, records = slots[order], records[order]
        words = records.view(np.uint64)
        words[:, -1] = self._sums(words, slots)
        filled, before = max(self.filled, int(slots[-1]) + 1), len(self._file)
        self._file.grow(filled * self.record_bytes)
        with self._file.writing(records.nbytes, before):
            write_rows(self._file.fileno, np.ascontiguousarray(slots), records.reshape(-1))
        self.filled = filled

    def take(self, slots: Indices) -> Bytes:
        """The records in these slots, at least one. DataError if one has changed, or was never put."""
        records, written = self.look(slots)
        if not written.all():
            raise changed()
        return records

    def look(self, slots: Indices) -> tuple[Bytes, NDArray[np.bool_]]:
        """The same for slots below ``filled`` that may hold nothing, and which of them hold something."""
        if self.record_bytes <= _NARROW and (np.diff(slots) < 0).any():
            # Those that lie near each other are read at once.
            order = np.argsort(slots)
            records = self.blank(len(slots))
            records[order] = self._read(slots[order])
        else:
            records = self._read(slots)
        words = records.view(np.uint64)
        written = words[:, -1] != 0
        if (written & (self._sums(words, slots) != words[:, -1])).any():
            raise changed()
        return records, written

    def close(self) -> None:
        """Free the disk space."""
        self._file.close()

    def _read(self, slots: Indices) -> Bytes:
        records = np.empty((len(slots), self.record_bytes), np.uint8)
        try:
            read_rows(self._file.fileno, 0, self.record_bytes, np.ascontiguousarray(slots), records.reshape(-1))
        except EOFError:
            raise changed() from None
        except OSError as error:
            raise unreadable(error) from error
        return records

    def _sums(self, words: "NDArray[np.uint64]", slots: Indices) -> "NDArray[np.uint64]":
        # None is 0, as what lies behind a record that was never written is.
        own = (slots.astype(np.uint64) + np.uint64(1)) * np.uint64(_FACTORS)
        sums: NDArray[np.uint64] = np.maximum(words[:, :-1] @ self._factors + own, np.uint64(1))
        return sums


def record_bytes(width: int) -> int:
    """What a slot of that width takes up on disk, with its checksum."""
    return (-(-width // _WORD) + 1) * _WORD


def changed() -> DataError:
    """What is raised if a record, or what it leads to, is not what was written."""
    return DataError("a row that was spilled to disk has come back changed: the disk or its memory is faulty")
