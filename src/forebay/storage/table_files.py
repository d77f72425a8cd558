"""Files of tables, Parquet and Arrow IPC: their groups of rows, read in pieces.

A group is a row group of Parquet, or a record batch of Arrow. Everything that a library raises comes out as FileError.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from forebay.block import Structure
from forebay.errors import FileError, ForebayError, RemoteError
from forebay.storage.arrow import arrow
from forebay.storage.arrow_pool import ArrowMemory
from forebay.storage.arrow_source import arrow_source
from forebay.storage.files import InputFile, open_file
from forebay.storage.leaf import Leaf
from forebay.storage.marks import MARK, mark_of
from forebay.storage.parquet_footer import read_footer
from forebay.storage.structures import structure_from_json
from forebay.storage.table_checks import check_batch
from forebay.storage.table_cuts import cut

OWN = b"forebay"
"""The key of a schema's metadata that says what Forebay's columns hold."""

# What columns are read with while a group is decoded in pieces, in all, for each byte of a piece and at most, and for
# each column at the least and at the most.
_READ_TIMES, _READ_BYTES, _LEAST_READ, _MOST_READ = 8, 4 << 20, 1 << 14, 1 << 20
# Of a column, as all writers make them unless they are told otherwise. A page is unfolded as a whole.
_PAGE = 1 << 20
_MAX_ROWS = 1 << 16
_STREAM = b"\xff\xff\xff\xff"
_PROBE = 64


class TableFile(ABC):
    """An open file. `group_rows` is None where only reading all of it would tell."""

    path: str
    schema: Any
    group_rows: list[int] | None
    memory: ArrowMemory

    @abstractmethod
    def group(self, group: int, row: int, columns: Sequence[str], piece: int) -> Iterator[Any] | None:
        """Record batches of a group from a row on, of about `piece` bytes each; None if there is no such group.

        Their values have been checked: views of them may be used as any other memory.
        """

    def open_bytes(self, columns: Sequence[str], piece: int) -> int:
        """About how much it takes to read groups in such pieces, besides these."""
        return 0

    def shares(self, group: int, columns: Sequence[str]) -> list[float]:
        """Which part of the bytes of a group each of these columns has, about."""
        return [1 / len(columns)] * len(columns)

    def nulls(self) -> "dict[str, bool] | None":
        """Whether there are nulls in columns, by their paths, as far as that is known; None if nothing is."""
        return None

    def details(self) -> dict[str, str]:
        """What else the file tells about itself, for people to read."""
        return {}

    def may_match(self, group: int, condition: Any) -> bool:
        """Whether a group can hold rows that meet a condition, by what is known without reading it."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""


def open_table(path: str, kind: str, budget: int | None = None) -> TableFile:
    """A file of tables, of the kind "parquet" or "arrow", to be read within a budget if there is one."""
    memory = ArrowMemory(budget)
    if kind == "parquet":
        return _Parquet(path, memory)
    file = open_file(path)
    head = _head(file)
    if head.startswith(b"ARROW1"):
        return _Arrow(file, memory)
    # Streams of old began with the length of their first message.
    length = int.from_bytes(head[:4], "little", signed=True)
    what = mark_of(head, inflates=False)
    if head.startswith(_STREAM) or (what is None and 0 < length <= file.size - 4):
        return _ArrowStream(file, memory)
    file.close()
    empty = "it is empty" if not file.size else "it does not begin as Arrow's files and streams do"
    raise FileError(path, what or f"is no Arrow file: {empty}")


def _head(file: InputFile) -> bytes:
    head = np.zeros(MARK, np.uint8)
    return head[: file.read_at(0, head)].tobytes()


def own_columns(schema: Any) -> tuple[dict[str, Leaf], Structure | None]:
    """What Forebay wrote into a schema about its columns and the elements they came from, if it was Forebay."""
    text = (schema.metadata or {}).get(OWN)
    if text is None:
        return {}, None
    try:
        said = json.loads(text)
        leaves = [Leaf.from_json(leaf) for leaf in said["leaves"]]
        structure = structure_from_json(said["structure"]) if _plain(said["structure"]) else None
        for leaf in leaves:
            leaf.field()
    except (ForebayError, ValueError, TypeError, KeyError, NotImplementedError):
        # Whoever wrote it, the columns themselves say enough.
        return {}, None
    return {leaf.name: leaf for leaf in leaves}, structure


def _plain(structure: Any) -> bool:
    """Whether it takes no class of anybody's: a file should not make a program import something."""
    return structure is None or (structure["kind"] in ("dict", "tuple") and all(map(_plain, structure["children"])))


@contextmanager
def _reading(path: str, what: str) -> Iterator[None]:
    try:
        yield
    except ForebayError:
        raise
    except Exception as error:
        # Arrow raises many kinds, down to MemoryError for a length that cannot be.
        text = " ".join(str(error).split()) or type(error).__name__
        raise FileError(path, f"{what}: {text}") from error


class _Parquet(TableFile):
    """Arrow is given footers that have been looked at: of others it may end the process. See ``parquet_footer``."""

    def __init__(self, path: str, memory: ArrowMemory) -> None:
        self._opened = open_file(path)
        self.memory = memory
        self.path = path
        import pyarrow.parquet as parquet

        try:
            with _reading(path, "is no Parquet file that can be read"):
                self._parquet = parquet
                self._meta = parquet.read_metadata(arrow().BufferReader(read_footer(self._opened)))
                self.schema = self._meta.schema.to_arrow_schema()
                groups = [self._meta.row_group(i) for i in range(self._meta.num_row_groups)]
                self.group_rows = [group.num_rows for group in groups]
                self._bytes = [group.total_byte_size for group in groups]
                if min(self.group_rows, default=0) < 0:
                    raise ValueError("a row group has a negative number of rows")
        except RemoteError:
            self._opened.close()
            raise
        except ForebayError as error:
            what = mark_of(_head(self._opened), inflates=False)
            self._opened.close()
            if what is not None and "Parquet" not in what:
                raise FileError(path, what) from error
            raise
        self._file: Any = None
        self._columns = -1
        self._row_bytes: dict[tuple[str, ...], float] = {}
        self._fragment: Any = None
        self._pruned: tuple[Any, set[int]] | None = None

    def group(self, group: int, row: int, columns: Sequence[str], piece: int) -> Iterator[Any] | None:
        """Columns side by side, a piece at a time: no more of a group is in memory than that."""
        assert self.group_rows is not None
        return self._pieces(group, row, list(columns), piece) if group < len(self.group_rows) else None

    def _pieces(self, group: int, row: int, columns: list[str], piece: int) -> Iterator[Any]:
        assert self.group_rows is not None
        left = self.group_rows[group]
        with _reading(self.path, f"row group {group} cannot be read"):
            file = self._for(len(columns), piece)
            row_bytes = self._row_bytes.get(tuple(columns), 0.0)
            if not row_bytes:
                # Encoded sizes say little about decoded ones: a few rows tell.
                first = next(self._batches(file, min(_PROBE, max(left, 1)), group, columns), None)
                row_bytes = 1.0 if first is None else max(first.nbytes / max(first.num_rows, 1), 1.0)
                del first
            rows = int(min(max(piece / row_bytes, 1), _MAX_ROWS))
            for batch in self._batches(file, rows, group, columns):
                check_batch(batch)
                left -= batch.num_rows
                skipped = min(row, batch.num_rows)
                row -= skipped
                size = batch.nbytes
                if batch.num_rows > skipped:
                    row_bytes = self._row_bytes[tuple(columns)] = max(row_bytes, size / batch.num_rows)
                    # They are not decoded yet where a dictionary holds their values.
                    yield from cut(batch, skipped, 2 * piece)
                self.memory.count(size)
            if left:
                raise ValueError(f"its footer says {self.group_rows[group]:,} rows, {left:,} of them are missing")

    def _batches(self, file: Any, rows: int, group: int, columns: list[str]) -> Iterator[Any]:
        found: Iterator[Any] = file.iter_batches(
            rows, row_groups=[group], columns=columns, use_threads=self.memory.threads
        )
        return found

    def _for(self, columns: int, piece: int) -> Any:
        if self._file is None or self._columns != columns:
            source, size = arrow_source(self._opened), _read_bytes(columns, piece)
            self._file = self._parquet.ParquetFile(source, metadata=self._meta, buffer_size=size, pre_buffer=False)
            self._columns = columns
        return self._file

    def open_bytes(self, columns: Sequence[str], piece: int) -> int:
        """What is read from the file at once, and of every column the page that it is at and its dictionary."""
        pages = sum([min(2 * _PAGE, size) for _, size in self._encoded(0, columns)])
        return len(columns) * _read_bytes(len(columns), piece) + pages

    def shares(self, group: int, columns: Sequence[str]) -> list[float]:
        """By the encoded sizes."""
        found: dict[str, int] = dict.fromkeys(columns, 1)
        for name, size in self._encoded(group, columns):
            found[name] += size
        whole = sum(found.values())
        return [found[name] / whole for name in columns]

    def _encoded(self, group: int, columns: Sequence[str]) -> list[tuple[str, int]]:
        """The columns, as often as they have parts in the file, with the size of each part before compression."""
        wanted, found = set(columns), []
        with _reading(self.path, "its footer cannot be read"):
            if group < self._meta.num_row_groups:
                about = self._meta.row_group(group)
                for part in map(about.column, range(about.num_columns)):
                    name = part.path_in_schema.partition(".")[0]
                    if name in wanted:
                        found.append((name, max(part.total_uncompressed_size, 0)))
        return found

    def nulls(self) -> "dict[str, bool] | None":
        """By the statistics of all row groups."""
        counts: dict[str, int] = {}
        unknown: set[str] = set()
        with _reading(self.path, "its statistics cannot be read"):
            for i in range(self._meta.num_row_groups):
                group = self._meta.row_group(i)
                for j in range(group.num_columns):
                    column = group.column(j)
                    stats = column.statistics
                    if stats is None or not stats.has_null_count:
                        unknown.add(column.path_in_schema)
                    else:
                        counts[column.path_in_schema] = counts.get(column.path_in_schema, 0) + stats.null_count
        return {path: count > 0 for path, count in counts.items() if path not in unknown}

    def details(self) -> dict[str, str]:
        """Who wrote it, and how its columns are compressed."""
        said = {}
        with _reading(self.path, "its footer cannot be read"):
            if self._meta.created_by:
                said["written by"] = str(self._meta.created_by)
            # The descriptions of columns are checked where rows are read; without that, a wrong one ends the process.
            if next(self.group(0, 0, self.schema.names, 1) or iter(()), None) is not None:
                group = self._meta.row_group(0)
                codecs = {str(group.column(i).compression).lower() for i in range(group.num_columns)}
                said["columns compressed with"] = ", ".join(sorted(codecs)).replace("uncompressed", "nothing")
        return said

    def may_match(self, group: int, condition: Any) -> bool:
        """By minimum and maximum of its columns."""
        with _reading(self.path, "its statistics cannot be read"):
            if self._fragment is None:
                import pyarrow.dataset

                form = pyarrow.dataset.ParquetFileFormat()
                self._fragment = form.make_fragment(arrow_source(self._opened))
            if self._pruned is None or self._pruned[0] is not condition:
                kept = self._fragment.subset(condition, schema=self.schema)
                self._pruned = condition, {each.id for each in kept.row_groups}
            return group in self._pruned[1]

    def close(self) -> None:
        """The file, and what Arrow keeps of it."""
        self._file = self._fragment = None
        self._opened.close()
        self.memory.give_back()


class _Arrow(TableFile):
    """The file format: record batches can be read in any order."""

    def __init__(self, file: InputFile, memory: ArrowMemory) -> None:
        self._opened = file
        self.memory = memory
        self.path = file.path
        pa = arrow()
        try:
            with _reading(self.path, "is no Arrow file that can be read"):
                self._reader = pa.ipc.open_file(arrow_source(file))
                self.schema = self._reader.schema
                # One column is enough to count rows by: the others need not be decompressed. An empty list is all.
                options = pa.ipc.IpcReadOptions(included_fields=_smallest(self.schema))
                counting = pa.ipc.open_file(arrow_source(file), options=options)
                self.group_rows = [counting.get_batch(i).num_rows for i in range(counting.num_record_batches)]
        except ForebayError:
            file.close()
            raise
        self._chosen: tuple[Any, Any] | None = None

    def group(self, group: int, row: int, columns: Sequence[str], piece: int) -> Iterator[Any] | None:
        """A record batch is decoded as a whole, and handed out in pieces."""
        assert self.group_rows is not None
        return self._pieces(group, row, tuple(columns), piece) if group < len(self.group_rows) else None

    def _pieces(self, group: int, row: int, columns: tuple[str, ...], piece: int) -> Iterator[Any]:
        pa = arrow()
        with _reading(self.path, f"record batch {group} cannot be read"):
            if self._chosen is None or self._chosen[0] != columns:
                options = pa.ipc.IpcReadOptions(included_fields=[self.schema.get_field_index(name) for name in columns])
                self._chosen = columns, pa.ipc.open_file(arrow_source(self._opened), options=options)
            batch = self._chosen[1].get_batch(group)
            check_batch(batch)
        yield from cut(batch, row, piece)
        self.memory.count(batch.nbytes)

    def close(self) -> None:
        """The file, and what Arrow keeps of it."""
        self._chosen = self._reader = None
        self._opened.close()
        self.memory.give_back()


class _ArrowStream(TableFile):
    """The streaming format: record batches one after another, from the first on."""

    group_rows = None

    def __init__(self, file: InputFile, memory: ArrowMemory) -> None:
        self._opened = file
        self.memory = memory
        self.path = file.path
        try:
            self._reader: Any = self._start()
            self.schema = self._reader.schema
        except ForebayError:
            file.close()
            raise

    def _start(self) -> Any:
        self._next = 0
        with _reading(self.path, "is no Arrow file or stream that can be read"):
            return arrow().ipc.open_stream(arrow_source(self._opened))

    def group(self, group: int, row: int, columns: Sequence[str], piece: int) -> Iterator[Any] | None:
        """Those before it are read too."""
        if group < self._next:
            self._reader = self._start()
        with _reading(self.path, f"record batch {group} cannot be read"):
            while self._next <= group:
                try:
                    batch = self._reader.read_next_batch()
                except StopIteration:
                    return None
                self._next += 1
            batch = batch.select(list(columns))
            check_batch(batch)
            self.memory.count(batch.nbytes)
            return cut(batch, row, piece)

    def close(self) -> None:
        """The file, and what Arrow keeps of it."""
        self._reader = None
        self._opened.close()
        self.memory.give_back()


def _read_bytes(columns: int, piece: int) -> int:
    """For each column."""
    return min(max(min(_READ_TIMES * piece, _READ_BYTES) // max(columns, 1), _LEAST_READ), _MOST_READ)


def _smallest(schema: Any) -> list[int]:
    widths = []
    for field in schema:
        try:
            widths.append(field.type.bit_width)
        except ValueError:
            widths.append(1 << 20)
    return [int(np.argmin(widths))] if widths else []
