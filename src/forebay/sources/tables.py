"""Parquet files and Arrow IPC files: ``from_parquet`` and ``from_arrow``.

A place in a file is a group (row group, record batch), a row in it before filters, and how many of the rows from there
on that a filter let through have been given out. Groups are read in pieces, so one that is larger than the budget
needs no more memory than any other. Files without filters can be read by number: footers say how many rows a group has.
Rows in order are decoded as they come and not kept. Rows in another order need their whole group decoded; decoded
groups are kept, in memory within the budget and behind that in a file without a name (``DecodedGroups``).
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from forebay.block import Block, Indices, RowError, concat_blocks
from forebay.errors import FileError, PlanError
from forebay.forks import tell_children
from forebay.lazy import cached_property
from forebay.ledger import Lease, Ledger
from forebay.plan.check import flag
from forebay.plan.node import Holding, Sizes
from forebay.run import Setup
from forebay.run.spill_room import SpillStore
from forebay.run.spilled_rows import most_spilled
from forebay.sources.by_column import group_within
from forebay.sources.decoded import DECODED_SHARE, DecodedGroups
from forebay.sources.files import FileIndex, FileRows, FilesNode
from forebay.storage.fill_nulls import checked_fills, with_fills
from forebay.storage.table_files import TableFile, open_table, own_columns
from forebay.storage.table_filters import check_filter, filter_columns, filter_condition, filtered
from forebay.storage.tables import TableForm, table_form

# What is decoded at once.
_PIECE = 1 << 20
# Places that reading in order goes on from; each iteration has one in each file.
_STREAMS = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Tables(FilesNode):
    """The rows of files of one format, "parquet" or "arrow", as dicts of columns."""

    format: str
    columns: Sequence[str] | None = None
    filters: Any = None
    fill_nulls: Any = None
    by_number: bool = True

    kind = "from_parquet"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", f"from_{self.format}")
        super().__post_init__()
        flag(self.kind, "index", self.by_number)
        object.__setattr__(self, "columns", _names(self.kind, self.columns))
        object.__setattr__(self, "filters", filter_condition(self.kind, self.filters))
        object.__setattr__(self, "fill_nulls", checked_fills(self.kind, self.fill_nulls))

    def params(self) -> dict[str, Any]:
        """What decides about the rows."""
        given = {name: value for name, value in super().params().items() if name not in ("format", "by_number")}
        return given | {"filters": None if self.filters is None else str(self.filters)}

    def settings(self) -> dict[str, Any]:
        """How they are read."""
        return {"index": None if self.by_number else False}

    def spec(self, *inputs: Any) -> Any | None:
        """From the schema, where it is known that there are no nulls."""
        tables = [index for index in self.indexes or () if isinstance(index, TableIndex)]
        return tables[0].spec(tables) if tables else None

    @cached_property
    def _first(self) -> "list[tuple[str, TableForm]]":
        return []

    def form(self, file: TableFile) -> TableForm:
        """What elements of a file are like: FileError if not as those of files before."""
        try:
            columns = None if self.columns is None else tuple(self.columns)
            form = table_form(file.schema, columns, *own_columns(file.schema))
            form = with_fills(form, file.schema, self.fill_nulls)
        except ValueError as error:
            raise FileError(file.path, str(error)) from None
        if self.filters is not None:
            check_filter(file.path, file.schema, self.filters)
        if not self._first:
            self._first.append((file.path, form))
        path, other = self._first[0]
        if form.structure != other.structure or form.kinds != other.kinds:
            raise FileError(file.path, f"its columns are {_shown(form)}, those of {path} are {_shown(other)}")
        return form

    def holds(self, sizes: Sizes) -> Holding:
        """By number, whole groups."""
        if not sizes.scattered or sizes.rows is None:
            return super().holds(sizes)
        total = sizes.rows * sizes.element
        kept = min(total, sizes.setup.ledger.budget // DECODED_SHARE)
        row = sizes.look()
        if kept == total or row is None:
            return Holding(kept + 2 * sizes.block, "row groups are decoded once, and kept")
        why = "row groups are decoded once: up to a quarter of the budget in memory, the others on disk"
        # A group is kept as a whole, so that all of it may go there; and every row has its slot. While a group is
        # decoded column by column, its columns are there as well, with what Arrow puts around them.
        group = max((index.largest_group for index in self.indexes or () if isinstance(index, TableIndex)), default=0)
        columns = group * sizes.element * 5 // 4
        return Holding(kept + 2 * sizes.block, why, most_spilled(row, sizes.rows, sizes.rows) + columns)

    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """From a place on."""
        file = open_table(path, self.format, setup.ledger.budget)
        piece = min(setup.block_bytes, _PIECE)
        try:
            return TableRows(file, self.form(file), self.filters, at or [0, 0, 0], piece, lease, setup.spill)
        except FileError:
            file.close()
            raise

    def counted(self) -> tuple[str, ...] | None:
        """By footers, which not all Arrow files have."""
        if self.format != "parquet" or self.filters is not None or self.skips:
            return None
        return () if self.by_number else ("with index=True",)

    def index(self, path: str) -> FileIndex | None:
        """By the groups' numbers of rows, where no row is left out."""
        if not self.by_number or self.filters is not None or self.on_error == "skip":
            return None
        file = open_table(path, self.format)
        try:
            return None if file.group_rows is None else TableIndex(self, file)
        finally:
            file.close()


class TableRows(FileRows):
    """Rows in order."""

    def __init__(
        self,
        file: TableFile,
        form: TableForm,
        condition: Any,
        at: list[int],
        piece: int,
        lease: Lease | None,
        spill: SpillStore,
    ) -> None:
        self._file = file
        self._form = form
        self._condition = condition
        self._columns = form.names if condition is None else filter_columns(file.schema, condition, form)
        self._piece = piece
        self._lease = lease
        self._spill = spill
        self._group, self._row, self._skip = at
        self._batches: Iterator[Any] | None = None
        self._block: Block | None = None  # What is left of the rows that were decoded last,
        self._source = (0, 0)  # how many rows there were before the filter, and how many of these are gone.

    @property
    def at(self) -> list[int]:
        """The group, the row, and filtered rows from there on that are done with."""
        return [self._group, self._row, self._skip]

    def read(self, rows: int) -> Block | None:
        """Of what is at hand, or of the next piece of the group, or of the next group."""
        while self._block is None:
            if not self._decode():
                return None
        block = self._block
        taken = block.slice(0, min(rows, block.rows))
        if taken.rows < block.rows:
            self._block = block.slice(taken.rows, block.rows)
            if self._condition is None:
                self._row += taken.rows
                self._source = (self._source[0] - taken.rows, 0)
            else:
                self._skip += taken.rows
        else:
            self._pass()
        return taken

    def _pass(self) -> None:
        """All of the last piece has been given out."""
        self._block = None
        self._row += self._source[0]
        self._source = (0, 0)
        self._skip = 0

    def _decode(self) -> bool:
        """The next piece of rows; False at the end of the file."""
        if self._batches is None:
            while self._pruned():
                self._group += 1
            place = self._group, self._row, self._columns, self._piece
            self._batches = group_within(self._file, *place, self._lease, self._spill)
            if self._batches is None:
                return False
        batch = next(self._batches, None)
        if batch is None:
            self._batches = None
            self._group, self._row, self._skip = self._group + 1, 0, 0
            return True
        self._source = (batch.num_rows, 0)
        if self._condition is not None:
            batch = filtered(self._file.path, batch, self._condition, self._file.memory.threads)
        drop = min(self._skip, batch.num_rows)
        if drop < batch.num_rows:
            self._block = _block(self._file.path, self._form, batch).slice(drop, batch.num_rows)
        else:
            # None of it is wanted, and what was to be dropped may go on behind it.
            left = self._skip - drop
            self._pass()
            self._skip = left
        return True

    def _pruned(self) -> bool:
        rows = self._file.group_rows
        if self._condition is None or rows is None or self._row or self._skip or self._group >= len(rows):
            return False
        return not self._file.may_match(self._group, self._condition)

    def recover(self) -> bool:
        """With the next group: what is left of this one cannot be had."""
        self._batches = self._block = None
        self._group, self._row, self._skip = self._group + 1, 0, 0
        return self._file.group_rows is not None

    def close(self) -> None:
        """The file and what is left of it in memory."""
        self._batches = self._block = None
        self._file.close()
        if self._lease is not None:
            self._lease.release()


class TableIndex(FileIndex):
    """Rows by number. Reading in order goes on where the last read ended; other reads need whole groups."""

    def __init__(self, node: Tables, file: TableFile) -> None:
        assert file.group_rows is not None
        self._node = node
        self._path = file.path
        self._form = node.form(file)
        self._schema = file.schema
        self._nulls = file.nulls()
        self._starts = np.concatenate([[0], np.cumsum(file.group_rows)]).astype(np.int64)
        self.length = int(self._starts[-1])
        self._lock = Lock()
        self._streams: OrderedDict[int, TableRows] = OrderedDict()
        self._decoded = DecodedGroups(self._starts)
        # Those of whoever reads now.
        self._ledger: Ledger | None = None
        self._spill = SpillStore()
        self._piece = _PIECE
        tell_children(self)

    def in_child(self) -> None:
        """Called by itself in a forked child: streams are its parent's."""
        self._lock = Lock()
        self._streams = OrderedDict()

    def __reduce__(self) -> Any:
        return _index_again, (self._node, self._path)

    def spec(self, all_files: "list[TableIndex]") -> Any | None:
        """What elements are, unless a file says nothing of nulls."""
        merged: dict[str, bool] | None = None
        for index in all_files:
            if index._nulls is None:
                return self._form.specs(self._schema, None)
            if merged is None:
                merged = index._nulls
            else:
                merged = {path: merged[path] or here for path, here in index._nulls.items() if path in merged}
        return self._form.specs(self._schema, merged)

    @property
    def largest_group(self) -> int:
        """Rows that are decoded together at most."""
        return int(np.diff(self._starts).max(initial=0))

    def within(self, setup: Setup) -> list[Lease]:
        """What groups that are kept may take up."""
        self._ledger, self._spill, self._piece = setup.ledger, setup.spill, min(setup.block_bytes, _PIECE)
        return [self._decoded.within(setup)]

    def _opened(self) -> TableFile:
        return open_table(self._path, self._node.format, None if self._ledger is None else self._ledger.budget)

    def _lease(self) -> Lease | None:
        return None if self._ledger is None else self._ledger.lease(str(self._node.site))

    def read(self, start: int, stop: int) -> Block:
        """From where another read ended, if one did."""
        with self._lock:
            stream = self._streams.pop(start, None)
        if stream is None:
            stream = self._stream(start)
        blocks, done = [], start
        while done < stop:
            block = stream.read(stop - done)
            if block is None:
                raise FileError(self._path, f"ends after {done:,} rows, its footer says {self.length:,}")
            blocks.append(block)
            done += block.rows
        with self._lock:
            self._streams[stop] = stream
            while len(self._streams) > _STREAMS or (stop == self.length and stop in self._streams):
                self._streams.popitem(last=stop == self.length)[1].close()
        return concat_blocks(blocks)

    def _stream(self, start: int) -> TableRows:
        group = int(np.searchsorted(self._starts, start, "right")) - 1
        at = [group, start - int(self._starts[group]), 0]
        file, lease = self._opened(), self._lease()
        return TableRows(file, self._form, None, at, self._piece, lease, self._spill)

    def gather(self, rows: Indices) -> Block:
        """From decoded groups."""
        return self._decoded.gather(rows, self._pieces)

    def _pieces(self, group: int) -> Iterator[Block]:
        file, lease = self._opened(), self._lease()
        try:
            place = group, 0, self._form.names, self._piece
            for batch in group_within(file, *place, lease, self._spill) or ():
                yield _block(self._path, self._form, batch)
        finally:
            file.close()
            if lease is not None:
                lease.release()


def _index_again(node: Tables, path: str) -> FileIndex | None:
    return node.index(path)


def _block(path: str, form: TableForm, batch: Any) -> Block:
    try:
        return form.block(batch)
    except RowError as error:
        raise FileError(path, error.text) from None
    except Exception as error:
        # Values that have no place in a column, such as dates beyond all years.
        raise FileError(path, f"holds values that cannot be read: {' '.join(str(error).split())}") from error


def _names(call: str, columns: Any) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise PlanError(f"{call}(columns={columns!r}): columns must be a list of names")
    names = tuple(columns)
    if not names or len(set(names)) < len(names):
        raise PlanError(f"{call}(columns={columns!r}): name at least one column, and each once")
    return names


def _shown(form: TableForm) -> str:
    return "{" + ", ".join(f"{name}: {kind}" for name, kind in zip(form.names, form.kinds)) + "}"
