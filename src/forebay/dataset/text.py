"""Datasets of text, tables and fixed-length records: the classes that tf.data has for them."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from forebay.block import flatten
from forebay.block.spec import BYTES, plain_dtype
from forebay.dataset.face import presented_class
from forebay.dataset.files import FileDataset, IndexableFiles, Paths, files_plan
from forebay.errors import PlanError
from forebay.plan import caller
from forebay.plan.check import step_name
from forebay.run.faults import MAX_ERRORS
from forebay.sources.csv import CsvRecords
from forebay.sources.csv_schema import record_fields, selected
from forebay.sources.fixed import FixedLengthRecords
from forebay.sources.lines import TextLines
from forebay.sources.sql import SqlRows


@presented_class
class TextLineDataset(IndexableFiles):
    r"""The lines of text files, as bytes, without the ``\n`` or ``\r\n`` that ends them.

    In uncompressed files a position is an offset: resuming takes no longer at the end than at the start. Other
    carriage returns than those before a line feed are part of the line; tf.data removes them all.

    Args:
        filenames: a path, a list of paths, or a dataset of paths. Paths may be URLs that fsspec knows.
        compression_type: ``"GZIP"``, ``"ZLIB"``, or None or ``""`` for none.
        buffer_size: bytes to read at once, about 1 MiB by default.
        num_parallel_reads: read so many files at once, and take one line from each in turn. With AUTOTUNE, files
            take turns as in ``interleave``. Without it, files are read one after another.
        name: what to call this step in errors and plans.
        on_error: ``"skip"`` passes over what cannot be read (a file that is missing, a line longer than the memory
            budget, the rest of a file whose compressed data is damaged) and logs it (logger "forebay").
            ``"raise"`` raises FileError.
        max_errors: so many faults of one file are passed over; the next one is raised. None for any number.
        index: read lines by number, so that ``shuffle()`` needs no buffer, and ``skip``, ``shard`` and ``len`` cost
            nothing. The files are read once to find the lines, and 8 bytes are kept for each. Not for compressed
            files; files that take turns (`num_parallel_reads`), or that a dataset names, are neither counted nor read
            by number.

    >>> import tempfile
    >>> import forebay as fb
    >>> path = tempfile.mkdtemp() + "/a.txt"
    >>> with open(path, "w") as file:
    ...     _ = file.write("one\ntwo\r\n\nfour")
    >>> list(fb.TextLineDataset(path))
    [b'one', b'two', b'', b'four']
    >>> len(fb.TextLineDataset(path, index=True))
    4
    """

    _reads = TextLines


@presented_class
class FixedLengthRecordDataset(FileDataset[bytes]):
    """The records of files whose records all have one length, as bytes.

    Uncompressed files are read by number: ``len``, ``skip``, ``shard`` and resuming cost nothing, and ``shuffle()``
    needs no buffer.

    Args:
        filenames: a path, a list of paths, or a dataset of paths. Paths may be URLs that fsspec knows.
        record_bytes: the length of a record.
        header_bytes: so many bytes at the start of each file are passed over.
        footer_bytes: and so many at its end.
        buffer_size: bytes to read at once of a compressed file, about 1 MiB by default.
        compression_type: ``"GZIP"``, ``"ZLIB"``, or None or ``""`` for none.
        num_parallel_reads: read so many files at once, and take one record from each in turn. With AUTOTUNE, files
            take turns as in ``interleave``. Without it, files are read one after another.
        name: what to call this step in errors and plans.
        on_error: ``"skip"`` passes over files that cannot be read and the rest of those that end in the middle of a
            record, and logs them (logger "forebay"). ``"raise"`` raises FileError.
        max_errors: so many faults of one file are passed over; the next one is raised. None for any number.

    >>> import tempfile
    >>> import forebay as fb
    >>> path = tempfile.mkdtemp() + "/a.bin"
    >>> with open(path, "wb") as file:
    ...     _ = file.write(b"header" + b"aaa" + b"bbb" + b"ccc")
    >>> records = fb.FixedLengthRecordDataset(path, 3, header_bytes=6)
    >>> len(records), list(records.skip(1))
    (3, [b'bbb', b'ccc'])
    """

    def __init__(
        self,
        filenames: Paths,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
    ) -> None:
        read = partial(
            FixedLengthRecords,
            record_bytes=record_bytes,
            header_bytes=header_bytes or 0,
            footer_bytes=footer_bytes or 0,
            compression=compression_type,
            buffer_size=buffer_size,
            on_error=on_error,
            max_errors=max_errors,
        )
        super().__init__(files_plan("FixedLengthRecordDataset", filenames, num_parallel_reads, name, read))


@presented_class
class CsvDataset(FileDataset[tuple[Any, ...]]):
    r"""The records of CSV files, as tuples of numbers and bytes.

    Records end with ``\n``, ``\r\n`` or ``\r``; quoted fields may hold delimiters and line ends, and quotes that are
    doubled; an empty line is a record of one empty field. These are tf.data's rules. ``Dataset.from_csv`` gives dicts
    and finds out names and types by itself.

    Args:
        filenames: a path, a list of paths, or a dataset of paths. Paths may be URLs that fsspec knows.
        record_defaults: for each column, a dtype (int32, int64, float32, float64 or bytes), which makes it required,
            or a default that stands for empty fields. A plain int is an int32, a float a float32, as in tf.data;
            other dtypes by ``np.int64(0)`` or ``np.float64(0)``.
        compression_type: ``"GZIP"``, ``"ZLIB"``, or None or ``""`` for none.
        buffer_size: bytes to read at once, about 1 MiB by default.
        header: pass over the first record of each file.
        field_delim: what separates fields.
        use_quote_delim: whether quotes mean anything.
        na_value: a field that equals this counts as empty.
        select_cols: the numbers of the columns that are wanted, which rise; `record_defaults` are for these.
        exclude_cols: those that are not wanted.
        name: what to call this step in errors and plans.
        num_parallel_reads: read so many files at once, and take one record from each in turn.
        on_error: ``"skip"`` passes over records that cannot be read and logs them (logger "forebay"): a number that is
            none, too few or too many fields, quotes that are wrong. Behind a quote that is never closed, and a record
            too large for the memory budget, the next line is taken for the next record. ``"raise"`` raises FileError,
            which names file, offset and field.
        max_errors: so many faults of one file are passed over; the next one is raised. None for any number.

    >>> import tempfile
    >>> import forebay as fb
    >>> path = tempfile.mkdtemp() + "/a.csv"
    >>> with open(path, "w") as file:
    ...     _ = file.write('id,name,size\n1,"a, b",0.5\n2,,1.5\n')
    >>> for record in fb.CsvDataset(path, [np.int64, "nobody", np.float32], header=True):
    ...     print(record)
    (np.int64(1), b'a, b', np.float32(0.5))
    (np.int64(2), b'nobody', np.float32(1.5))
    """

    def __init__(
        self,
        filenames: Paths,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
        name: str | None = None,
        *,
        num_parallel_reads: int | None = None,
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
    ) -> None:
        columns = record_fields("CsvDataset", record_defaults)
        read = partial(
            CsvRecords,
            columns=columns,
            structure=flatten((0,) * len(columns))[1],
            order=tuple(range(len(columns))),
            compression=compression_type,
            buffer_size=buffer_size,
            header=header,
            field_delim=field_delim,
            use_quote_delim=use_quote_delim,
            na_value=os.fsencode(na_value),
            select_cols=selected("CsvDataset", len(columns), select_cols, exclude_cols),
            on_error=on_error,
            max_errors=max_errors,
        )
        super().__init__(files_plan("CsvDataset", filenames, num_parallel_reads, name, read))


@presented_class
class SqlDataset(FileDataset[tuple[Any, ...]]):
    """The rows of a database query, as tuples.

    Rows are fetched in blocks as they are needed. To resume, the query is run again and the rows before the position
    are passed over: give the query an ``ORDER BY`` if rows are to come in the same order, and do not change the data
    in between. NULL is refused (tf.data makes a 0 of it): ``COALESCE(x, 0)`` says what stands for it.

    Args:
        driver_name: ``"sqlite"``, or ``"duckdb"`` where that is installed.
        data_source_name: the path of the database.
        query: what to ask it.
        output_types: the dtypes of the columns. Numbers that are wanted as bytes are written out.
        name: what to call this step in errors and plans.
        on_error: ``"skip"`` passes over rows that do not fit their types and logs them (logger "forebay").
        max_errors: so many of them are passed over; the next one is raised. None for any number.

    >>> import sqlite3, tempfile
    >>> import forebay as fb
    >>> path = tempfile.mkdtemp() + "/a.db"
    >>> with sqlite3.connect(path) as connection:
    ...     _ = connection.execute("CREATE TABLE people (id INTEGER, name TEXT)")
    ...     _ = connection.execute("INSERT INTO people VALUES (1, 'Ann'), (2, 'Bob')")
    >>> connection.close()
    >>> list(fb.SqlDataset("sqlite", path, "SELECT id, name FROM people ORDER BY id", (np.int64, bytes)))
    [(np.int64(1), b'Ann'), (np.int64(2), b'Bob')]
    """

    def __init__(
        self,
        driver_name: str,
        data_source_name: str | os.PathLike[str],
        query: str,
        output_types: Any,
        name: str | None = None,
        *,
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
    ) -> None:
        step_name("SqlDataset", name)
        if not isinstance(data_source_name, (str, os.PathLike)):
            raise PlanError(f"SqlDataset(data_source_name={data_source_name!r}): give the path of the database")
        given = output_types if isinstance(output_types, (tuple, list)) else (output_types,)
        super().__init__(
            SqlRows(
                files=(os.fspath(data_source_name),),
                driver=driver_name,
                query=query,
                output_types=tuple(_dtype(each) for each in given),
                on_error=on_error,
                max_errors=max_errors,
                label=name,
                where=caller(),
            )
        )


def _dtype(value: Any) -> np.dtype[Any]:
    try:
        dtype = np.dtype(getattr(value, "as_numpy_dtype", value))
    except TypeError:
        raise PlanError(f"SqlDataset(output_types=...): {value!r} is not a dtype") from None
    return BYTES if dtype.kind == "O" else plain_dtype(dtype)
