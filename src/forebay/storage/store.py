"""All rows of a saved dataset by number."""

import os
import threading
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np

from forebay.block import Block, Column, Indices
from forebay.block.build import concat_columns
from forebay.block.strings import Strings
from forebay.errors import DataError
from forebay.forks import is_torn, tell_children
from forebay.ledger import Lease, Ledger
from forebay.storage.arrow_pool import UNBOUNDED, ArrowMemory
from forebay.storage.columns import decode
from forebay.storage.file_reader import BatchInMemory, Source, StoredFile
from forebay.storage.file_writer import schema_of
from forebay.storage.leaf import Leaf
from forebay.storage.manifest import Manifest
from forebay.storage.rows import DirectColumn, direct_column

_OPEN_FILES = 64
# Of batches that were decoded, those that were used last are kept. Who reads in order comes back to few of them ...
_DECODED_BYTES = 16 << 20
# ... but who reads by number to any: what has gone of them is decoded once more for every block of rows.
_KEPT_PART = 4
# This part of the budget is left to what decodes them, which has heaps of its own, unless it has threads at will.
_DECODING_PART = 4


class Store:
    """Rows over files and record batches. Several threads may read at once.

    A batch is checked against its checksum when the first of its rows is read, and never again. Columns of
    uncompressed files are then read from the file, row by row; others through the last few batches that were decoded.
    Whoever reads in order gets the rows of a batch that is being checked from the memory it was read into, so that
    the first time takes no more reading than later ones.
    """

    def __init__(self, path: str, manifest: Manifest) -> None:
        self._path = path
        self._manifest = manifest
        self._first, self._file_of, self._number = manifest.batches()
        plain = manifest.compression is None
        self._direct: list[DirectColumn | None] = [direct_column(leaf) if plain else None for leaf in manifest.leaves]
        self._at: Any = np.full((len(self._file_of), len(manifest.leaves), 2), -1, np.int64)
        self._checked = np.zeros(len(self._file_of), np.bool_)
        self._schema = schema_of(manifest.leaves)
        self._lock = threading.Lock()
        self._files: OrderedDict[int, StoredFile] = OrderedDict()
        self._opened: dict[int, tuple[int, ...]] = {}
        self._decoded: OrderedDict[int, _Decoded] = OrderedDict()
        self._decoded_bytes = 0
        self._by_number = False
        self._latest: tuple[int, BatchInMemory] | None = None
        self._memory = UNBOUNDED
        self._leases: weakref.WeakKeyDictionary[Ledger, weakref.ref[Lease]] = weakref.WeakKeyDictionary()
        tell_children(self)

    def in_child(self) -> None:
        """Called by itself in a forked child."""
        if is_torn(self._lock):
            self._lock = threading.Lock()
            self._files, self._decoded, self._decoded_bytes = OrderedDict(), OrderedDict(), 0

    def __reduce__(self) -> Any:
        return Store, (self._path, self._manifest)

    def enter(self, ledger: Ledger) -> Lease | None:
        """What decoded batches count as there, for as long as somebody refers to it; None if none ever are."""
        if None not in self._direct:
            return None
        with self._lock:
            known = self._leases.get(ledger)
            lease = known() if known is not None else None
            if lease is None:
                lease = ledger.lease(f"load({self._path!r})")
                lease.note(self._decoded_bytes)
                self._leases[ledger] = weakref.ref(lease)
                if self._manifest.compression is not None:
                    self._memory = ArrowMemory(min(ledger.budget for ledger in self._leases))
            return lease

    def gather(self, numbers: Indices) -> Block:
        """The rows with these numbers, in this order."""
        self._by_number = True
        batches = np.searchsorted(self._first, numbers, side="right") - 1
        rows = numbers - self._first[batches]
        for batch in np.unique(batches[~self._checked[batches]]).tolist():
            self._check(batch)
        columns: list[Column] = []
        for leaf, direct in enumerate(self._direct):
            if direct is None:
                columns.append(self._by_batch(leaf, batches, rows))
            else:
                columns.append(self._by_file(leaf, direct, batches, rows))
        return Block(self._manifest.elements, columns, len(numbers))

    def read(self, start: int, stop: int) -> Block:
        """Rows start to stop."""
        begin = int(np.searchsorted(self._first, start, side="right")) - 1
        end = int(np.searchsorted(self._first, stop, side="left"))
        spans = []
        sources: dict[int, Source] = {}
        latest = self._latest
        for batch in range(begin, end):
            if not self._checked[batch]:
                latest = (batch, self._check(batch))
            sources[batch] = latest[1] if latest is not None and latest[0] == batch else self._file(batch)
            first = int(self._first[batch])
            spans.append((batch, max(start - first, 0), min(stop, int(self._first[batch + 1])) - first))
        # The rest of the last batch is likely to be asked for next; beyond its end it would only take up memory.
        more = stop < self._first[end] and latest is not None and latest[0] == end - 1
        self._latest = latest if more else None
        columns = []
        for leaf, direct in enumerate(self._direct):
            if direct is None:
                parts = [self._batch(batch).column(leaf).slice(low, high) for batch, low, high in spans]
                columns.append(concat_columns(parts))
            else:
                columns.append(direct.read([(sources[b], self._at[b, leaf], low, high) for b, low, high in spans]))
        return Block(self._manifest.elements, columns, stop - start)

    def _by_file(self, leaf: int, direct: DirectColumn, batches: Indices, rows: Indices) -> Column:
        owners = self._file_of[batches]

        def read(mine: Any) -> Column:
            at = self._at[batches[mine], leaf]
            return direct.gather(self._file(int(batches[mine][0])), at, rows[mine])

        return _in_order(owners, read)

    def _by_batch(self, leaf: int, batches: Indices, rows: Indices) -> Column:
        return _in_order(batches, lambda mine: self._batch(int(batches[mine][0])).column(leaf).take(rows[mine]))

    def _file(self, batch: int) -> StoredFile:
        """The file of a batch, kept open for a while. One that is closed meanwhile stays open while it is used."""
        number = int(self._file_of[batch])
        with self._lock:
            file = self._files.get(number)
            if file is not None:
                self._files.move_to_end(number)
                return file
        info = self._manifest.files[number]
        file = StoredFile(os.path.join(self._path, info.name), info)
        if file.schema != self._schema:
            raise DataError(f"{file.path} does not have the columns that its manifest says")
        with self._lock:
            if self._opened.setdefault(number, file.identity) != file.identity:
                # Its batches were checked in the file that was there before, and would not be again.
                raise DataError(f"{file.path} was replaced since it was first read: load the dataset again")
            self._files[number] = file
            while len(self._files) > _OPEN_FILES:
                self._files.popitem(last=False)
        return file

    def _check(self, batch: int) -> BatchInMemory:
        """Read a batch for the first time: see that it is what was saved, and where its columns lie."""
        file, number = self._file(batch), int(self._number[batch])
        data = file.batch_bytes(number)
        record = file.parse(data, self._memory)
        rows = int(self._first[batch + 1] - self._first[batch])
        if record.num_rows != rows or record.num_columns != len(self._direct):
            raise DataError(f"{file.path} does not hold what its manifest says in record batch {number}")
        start, _ = file.info.span(number)
        for leaf, direct in enumerate(self._direct):
            if direct is not None:
                places = direct.places(record.column(leaf), data.ctypes.data, start)
                self._at[batch, leaf, : len(places)] = places
        if None in self._direct:
            decoded = self._decode(record)
            del record
            self._keep(batch, decoded)
        self._checked[batch] = True
        return BatchInMemory(data, start)

    def _batch(self, batch: int) -> "_Decoded":
        with self._lock:
            found = self._decoded.get(batch)
            if found is not None:
                self._decoded.move_to_end(batch)
                return found
        file, number = self._file(batch), int(self._number[batch])
        return self._keep(batch, self._decode(file.record_batch(number, self._memory)))

    def _decode(self, record: Any) -> "_Decoded":
        leaves = {i: leaf for i, leaf in enumerate(self._manifest.leaves) if self._direct[i] is None}
        return _Decoded(record, leaves, own=not self._memory.threads)

    def _keep(self, batch: int, decoded: "_Decoded") -> "_Decoded":
        with self._lock:
            before = self._decoded.pop(batch, None)
            self._decoded_bytes += decoded.nbytes - (before.nbytes if before is not None else 0)
            self._decoded[batch] = decoded
            while len(self._decoded) > 1 and self._too_many():
                _, gone = self._decoded.popitem(last=False)
                self._decoded_bytes -= gone.nbytes
            for lease in self._held_leases():
                lease.note(self._decoded_bytes)
        # With those that have just been let go of.
        self._memory.count(decoded.nbytes)
        return decoded

    def _too_many(self) -> bool:
        leases = self._held_leases()
        budget = min([lease.budget for lease in leases], default=0)
        if self._decoded_bytes > max(_DECODED_BYTES, budget // _KEPT_PART if self._by_number else 0):
            return True
        part = 0 if self._memory.threads else 1 / _DECODING_PART
        return not all(lease.ask(self._decoded_bytes + int(part * lease.budget)) for lease in leases)

    def _held_leases(self) -> list[Lease]:
        return [lease for ref in self._leases.values() if (lease := ref()) is not None]


class _Decoded:
    """Columns of a batch. Where memory is short, in memory of their own.

    Arrow's allocator has a heap for every thread, which keeps what is freed in it: what stays for a while is not to lie
    between that.
    """

    def __init__(self, record: Any, leaves: dict[int, Leaf], own: bool) -> None:
        columns = {i: decode(leaf, record.column(i)) for i, leaf in leaves.items()}
        self._columns = {i: (_copied(column) if own else column).shared() for i, column in columns.items()}
        size = sum([column.nbytes for column in self._columns.values()])
        self.nbytes = size if own else max(size, record.nbytes)

    def column(self, leaf: int) -> Column:
        """Rows of one leaf, not owned."""
        return self._columns[leaf]


def _copied(column: Column) -> Column:
    return column.take(np.arange(len(column))) if isinstance(column, Strings) else column.private()


def _in_order(groups: Indices, read: Any) -> Column:
    """Columns read group by group, put back into the order in which rows were asked for."""
    if (groups == groups[0]).all():
        column: Column = read(slice(None))
        return column
    order = np.argsort(groups, kind="stable")
    cuts = np.flatnonzero(np.diff(groups[order])) + 1
    joined = concat_columns([read(mine) for mine in np.split(order, cuts)])
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return joined.take(back)
