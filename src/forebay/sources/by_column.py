"""Groups of tables whose columns have no room side by side: decoded one column after another, by way of a file.

A Parquet decoder holds a page of every column, mostly of 1 MiB, and a dictionary, however few rows are read at a time:
tables of many columns, and many files that are read in turns, take more of that than of rows.
"""

import os
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np

from forebay.block.aligned import aligned_empty
from forebay.errors import FileError
from forebay.ledger import Lease
from forebay.run.spill import SpillFile
from forebay.run.spill_room import SpillStore
from forebay.storage.arrow import arrow
from forebay.storage.table_files import TableFile

# Arrow's allocator keeps more beside what a decoder has in use, on several threads twice as much: so many times that
# counts.
_KEPT = 3
# A whole group is decoded at once, and who has no room for that had better not do it on all threads.
_turns = [Lock()]
# A child that is forked while another thread has it would wait for ever.
os.register_at_fork(after_in_child=lambda: _turns.__setitem__(0, Lock()))
# Pieces of one column: in smaller ones, what describes them would take more room than they do.
_LEAST_PIECE = 1 << 12


def group_within(
    file: TableFile, group: int, row: int, columns: Sequence[str], piece: int, lease: Lease | None, spill: SpillStore
) -> Iterator[Any] | None:
    """As ``file.group``: columns side by side if the lease grants what is open then, and otherwise one by one."""
    if lease is not None:
        open_bytes = _KEPT * file.open_bytes(columns, piece)
        if not lease.ask(2 * piece + open_bytes):
            if len(columns) > 1 and file.group_rows is not None and group < len(file.group_rows):
                return _pieces(file, group, row, columns, piece, lease, spill)
            lease.note(2 * piece + open_bytes)
    return file.group(group, row, columns, piece)


def _pieces(
    file: TableFile, group: int, row: int, columns: Sequence[str], piece: int, lease: Lease, spill: SpillStore
) -> Iterator[Any]:
    stored = SpillFile(spill)
    try:
        shares = file.shares(group, columns)
        with _turns[0]:
            lease.note(2 * piece + _KEPT * file.open_bytes(columns, piece) // len(columns))
            decoded = [
                _Column(stored, file.group(group, row, [name], max(int(piece * share), _LEAST_PIECE)) or iter(()))
                for name, share in zip(columns, shares)
            ]
            # The next turn may be another thread's, which has a heap of its own.
            file.memory.give_back()
            lease.note(2 * piece)
        # Rows before a fault come out, as they do if columns are decoded side by side.
        first = min(decoded, key=lambda column: column.rows)
        done = 0
        while done < first.rows:
            rows = min(column.at_hand() for column in decoded)
            yield arrow().RecordBatch.from_arrays([column.take(rows) for column in decoded], names=list(columns))
            done += rows
        faults = [column.fault for column in decoded if column.fault is not None]
        if faults:
            raise first.fault or faults[0]
    finally:
        stored.close()


class _Column:
    """A column of a group in a file of ours, as the pieces that it was decoded in."""

    def __init__(self, stored: SpillFile, batches: Iterator[Any]) -> None:
        self._stored = stored
        self._places: list[tuple[int, int, int]] = []  # Where a piece is, its size and its checksum.
        self.rows = 0
        self.fault: FileError | None = None
        """What kept the rest of it from being decoded."""
        try:
            for batch in batches:
                data = _written(batch)
                offset, digest = stored.put([data])
                self._places.append((offset, len(data), digest))
                self.rows += batch.num_rows
        except FileError as error:
            self.fault = error
        self._next = 0
        self._at_hand: Any = None

    def at_hand(self) -> int:
        """How many rows can be taken now, unless all have been."""
        if self._at_hand is None or not len(self._at_hand):
            offset, size, digest = self._places[self._next]
            data = aligned_empty((size,), place=offset)
            self._stored.read_into(offset, data, digest)
            self._at_hand = arrow().ipc.open_stream(arrow().py_buffer(data)).read_next_batch().column(0)
            self._next += 1
        return len(self._at_hand)

    def take(self, rows: int) -> Any:
        """So many of those at hand."""
        taken, self._at_hand = self._at_hand.slice(0, rows), self._at_hand.slice(rows)
        return taken


def _written(batch: Any) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """With its schema, and dictionaries if it has any."""
    pa = arrow()
    out = pa.BufferOutputStream()
    plain = batch.replace_schema_metadata(None)
    with pa.ipc.new_stream(out, plain.schema) as writer:
        writer.write_batch(plain)
    return np.frombuffer(out.getvalue(), np.uint8)
