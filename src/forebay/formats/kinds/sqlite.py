"""SQLite databases, through ``SqlDataset``."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

import numpy as np

import forebay as fb
from forebay.errors import FileError
from forebay.formats.format import Facts, Files, Format, Reading
from forebay.formats.head import Head

# Counting rows reads the whole table.
_COUNTED = 64 << 20


@contextmanager
def _reading(path: str) -> "Iterator[sqlite3.Connection]":
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
            yield connection
    except (sqlite3.Error, ValueError, OverflowError) as error:
        # Names that are no text come as the latter two.
        raise FileError(path, f"is no SQLite database that can be read: {error}") from error


def _tables(connection: sqlite3.Connection) -> dict[str, list[tuple[str, str]]]:
    """Names and declared types of the columns of each table."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        name: [(row[1], row[2]) for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")]
        for name in names
        if not name.startswith("sqlite_")
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _dtype(declared: str) -> Any:
    """What SQLite's rules of affinity make of a declared type."""
    upper = declared.upper()
    if "INT" in upper:
        return np.int64
    if any(part in upper for part in ("CHAR", "CLOB", "TEXT")):
        return str
    return np.float64 if any(part in upper for part in ("REAL", "FLOA", "DOUB")) else bytes


def _query(files: Files) -> tuple[str, list[tuple[str, str]]]:
    """All rows of the only table, or of the first."""
    with _reading(files.paths[0]) as connection:
        tables = _tables(connection)
    if not tables:
        raise FileError(files.paths[0], "the database has no tables")
    name, columns = next(iter(tables.items()))
    return f"SELECT {', '.join(_quoted(column) for column, _ in columns)} FROM {_quoted(name)}", columns


def _open(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    query, columns = _query(files)
    types = tuple(_dtype(declared) for _, declared in columns)
    return fb.SqlDataset("sqlite", files.paths[0], query, types, **reading.faults)


def _convert(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    """With the names of the columns."""
    names = [name for name, _ in _query(files)[1]]
    return _open(files, reading).map(lambda *row: dict(zip(names, row, strict=True)))


def _code(files: Files) -> str:
    query, columns = _query(files)
    names = {np.int64: "np.int64", np.float64: "np.float64", str: "str", bytes: "bytes"}
    types = ", ".join(names[_dtype(declared)] for _, declared in columns)
    return f"fb.SqlDataset('sqlite', {files.paths[0]!r}, {query!r}, ({types},))"


def _facts(files: Files) -> Facts:
    said = {}
    rows = None
    with _reading(files.paths[0]) as connection:
        for name, columns in _tables(connection).items():
            text = ", ".join(f"{column} {declared}".strip() for column, declared in columns)
            if files.bytes <= _COUNTED:
                count = connection.execute(f"SELECT COUNT(*) FROM {_quoted(name)}").fetchone()[0]
                rows = count if rows is None else rows
                text += f"; {count:,} rows"
            said[f"table {name}"] = text
    return Facts(rows, said)


def _begins(head: Head) -> bool:
    return head.compression is None and head.data[:16] == b"SQLite format 3\0"


FORMAT = Format(
    name="sqlite",
    title="SQLite database",
    endings=(".db", ".sqlite", ".sqlite3"),
    begins=_begins,
    open=_open,
    code=_code,
    by_number=lambda files: "no, a query is run from the start on",
    facts=_facts,
    convert=_convert,
)
