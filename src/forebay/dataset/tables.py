"""Datasets of tables: Parquet and Arrow."""

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from forebay.dataset.stored import StoredDataset
from forebay.errors import PlanError
from forebay.plan import INFINITE, caller
from forebay.plan.check import step_name
from forebay.remote_run import in_force

if TYPE_CHECKING:
    from forebay.dataset import Dataset

T_co = TypeVar("T_co", covariant=True)


class TableDataset(StoredDataset[T_co]):
    """A dataset that can be made of tables, and written to them."""

    @staticmethod
    def from_parquet(
        filenames: Any,
        columns: list[str] | None = None,
        filters: Any = None,
        *,
        fill_nulls: Any = None,
        num_parallel_reads: int | None = None,
        on_error: str = "raise",
        max_errors: int | None = 100,
        index: bool = True,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """The rows of Parquet files, as dicts of columns.

        Structs are dicts, lists are arrays, null is None; text is str, timestamps are datetime64 (in UTC), and
        dictionaries are decoded. A file that ``to_parquet`` wrote gives back the elements that were written, if all
        columns are read.

        Row groups are decoded in pieces, so that none has to fit into the budget. Without filters, rows are read by
        number: ``len`` is known, ``skip`` and resuming decode no more than one row group, and ``shuffle()`` needs no
        buffer of rows. It does need every row group decoded, whose rows are then kept for the iterations to come: in
        memory up to a quarter of the budget, the rest decoded in a file without a name. For data much larger than
        memory, ``save`` it once and ``load`` that, or shuffle the names of files and then ``shuffle(buffer_size)``.

        Args:
            filenames: a path, a pattern (``"part-*.parquet"``), a list of them, or a dataset of paths. Paths may be
                URLs that fsspec knows.
            columns: names of the columns to read; all by default.
            filters: rows to keep: ``[("x", ">", 3), ("y", "in", ["a", "b"])]``, a list of such lists for alternatives,
                or an expression as ``pyarrow.compute.field("x") > 3``. Row groups that cannot hold such rows, by
                their statistics, are not read. Which rows there are is then not known before they have been read.
            fill_nulls: what stands for nulls, by the columns' names, as in ``{"age": 0, "name": ""}``; or one value for
                all columns. Dtypes stay as they are, and such columns form batches whatever is missing in them. For
                columns of plain values; filters are applied before. By default, null is None.
            num_parallel_reads: read so many files at once, and take one row from each in turn.
            on_error: ``"skip"`` passes over row groups that cannot be read and logs them (logger "forebay"); rows are
                then read in order. ``"raise"`` raises FileError.
            max_errors: so many faults of one file are passed over; the next one is raised. None for any number.
            index: False reads files only in order, without looking at all of them first.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/a.parquet"
        >>> Dataset.range(4).map(lambda x: {"x": x, "name": f"row {x}"}).to_parquet(path)
        >>> next(iter(Dataset.from_parquet(path)))
        {'x': np.int64(0), 'name': 'row 0'}
        >>> list(Dataset.from_parquet(path, columns=["x"], filters=[("x", ">", 2)]))
        [{'x': np.int64(3)}]
        """
        from forebay.dataset import Dataset
        from forebay.dataset.files import files_plan
        from forebay.sources.tables import Tables

        step_name("from_parquet", name)
        read = partial(
            Tables,
            format="parquet",
            columns=columns,
            filters=filters,
            fill_nulls=fill_nulls,
            on_error=on_error,
            max_errors=max_errors,
            by_number=index,
        )
        return Dataset(files_plan("from_parquet", filenames, num_parallel_reads, name, read, patterns=True))

    @staticmethod
    def from_arrow(
        source: Any,
        columns: list[str] | None = None,
        *,
        fill_nulls: Any = None,
        num_parallel_reads: int | None = None,
        on_error: str = "raise",
        max_errors: int | None = 100,
        index: bool = True,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """The rows of Arrow data, as dicts of columns: files, a table in memory, or a reader of record batches.

        Elements are as those of ``from_parquet``. Files may be of the file format (also called Feather), whose rows
        are read by number, or of the streaming format, which is read in order. A record batch is decoded as a whole.

        Args:
            source: a path, a pattern, a list of them or a dataset of paths; a ``pyarrow.Table`` or ``RecordBatch``,
                whose memory is used as it is; a function that returns a ``RecordBatchReader``, called anew for every
                iteration; or such a reader itself, which can be read only once.
            columns: names of the columns to read; all by default.
            fill_nulls: what stands for nulls, see ``from_parquet``.
            num_parallel_reads: read so many files at once, and take one row from each in turn.
            on_error: ``"skip"`` passes over record batches of files that cannot be read, see ``from_parquet``.
            max_errors: so many faults of one file are passed over; the next one is raised. None for any number.
            index: False reads files only in order, without looking at all of them first.
            name: what to call this step in errors and plans.

        >>> import pyarrow as pa
        >>> table = pa.table({"x": [1, 2, 3], "words": [["a"], [], ["b", "c"]]})
        >>> list(Dataset.from_arrow(table))[2]
        {'x': np.int64(3), 'words': array(['b', 'c'], dtype=object)}
        >>> list(Dataset.from_arrow(pa.table({"age": [31, None]}), fill_nulls={"age": -1}).batch(2))
        [{'age': array([31, -1])}]
        """
        from forebay.dataset import Dataset
        from forebay.dataset.files import files_plan
        from forebay.sources.arrow_memory import arrow_source, is_arrow
        from forebay.sources.tables import Tables

        step_name("from_arrow", name)
        if is_arrow(source):
            return Dataset(arrow_source("from_arrow", source, columns, fill_nulls, name, caller()))
        read = partial(
            Tables,
            format="arrow",
            columns=columns,
            fill_nulls=fill_nulls,
            on_error=on_error,
            max_errors=max_errors,
            by_number=index,
        )
        return Dataset(files_plan("from_arrow", source, num_parallel_reads, name, read, patterns=True))

    def to_parquet(
        self,
        path: Any,
        *,
        shards: int | None = None,
        rows_per_file: int | None = None,
        compression: str | None = "zstd",
        row_group_bytes: int | str = "16MiB",
        progress: bool | None = None,
    ) -> None:
        """Write all elements to Parquet files, which appear under their names when all of them are complete.

        There is a column for each leaf, as in ``save``: ``image``, ``0``, ``a.b``, or ``value`` for a lone one.
        ``from_parquet`` gives back the same elements (named tuples and other classes as dicts).

        Args:
            path: the file, or for several a pattern with a place for the number: ``"part-{shard:05d}.parquet"``.
            shards: so many files with about as many rows in each. The number of elements has to be known.
            rows_per_file: begin a new file after so many rows.
            compression: ``"zstd"``, ``"snappy"``, ``"gzip"``, ``"brotli"``, ``"lz4"`` or None.
            row_group_bytes: about how large a row group is before compression; it is in memory while it is written.
            progress: show a progress bar; by default on a terminal only.

        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> Dataset.range(10).to_parquet(folder + "/part-{shard}.parquet", shards=2)
        >>> sorted(os.listdir(folder))
        ['part-0.parquet', 'part-1.parquet']
        """
        self._to_tables("to_parquet", "parquet", path, shards, rows_per_file, compression, row_group_bytes, progress)

    def to_arrow(
        self,
        path: Any,
        *,
        shards: int | None = None,
        rows_per_file: int | None = None,
        compression: str | None = None,
        batch_bytes: int | str = "1MiB",
        progress: bool | None = None,
    ) -> None:
        """Write all elements to Arrow IPC files, as ``to_parquet`` does to Parquet files.

        ``save`` writes the same kind of files with checksums and a manifest, and is the better choice for what only
        Forebay will read.

        Args:
            path: the file, or for several a pattern with a place for the number: ``"part-{shard:05d}.arrow"``.
            shards: so many files with about as many rows in each. The number of elements has to be known.
            rows_per_file: begin a new file after so many rows.
            compression: None, ``"zstd"`` or ``"lz4"``.
            batch_bytes: about how large a record batch is.
            progress: show a progress bar; by default on a terminal only.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/a.arrow"
        >>> Dataset.range(3).to_arrow(path)
        >>> list(Dataset.from_arrow(path))
        [np.int64(0), np.int64(1), np.int64(2)]
        """
        self._to_tables("to_arrow", "arrow", path, shards, rows_per_file, compression, batch_bytes, progress)

    def _to_tables(
        self,
        call: str,
        kind: str,
        path: Any,
        shards: int | None,
        rows_per_file: int | None,
        compression: str | None,
        group_bytes: int | str,
        progress: bool | None,
    ) -> None:
        from forebay.sinks.files import file_names
        from forebay.sinks.save import write_blocks
        from forebay.sinks.tables import TableWriter, codec_of
        from forebay.sizes import memory_left, parse_size

        total = self._count(call)
        pattern, rows = file_names(call, path, shards, rows_per_file, total)
        setup = self._setup()
        # A group is there as rows, as Arrow's arrays and as pages at once.
        size = min(parse_size(call, group_bytes, memory_left), max(setup.ledger.budget // 8, 1 << 12))
        codec = codec_of(call, kind, compression)
        writer = TableWriter(call, kind, pattern, rows, codec, size, lambda: self.element_spec)
        with in_force(setup.remote):
            write_blocks(self._blocks(setup), writer, total if total >= 0 else None, progress)

    def _count(self, call: str) -> int:
        total = self.cardinality()
        if total == INFINITE:
            raise PlanError(f"{call}(): the dataset is infinite; take() a part of it")
        return total
