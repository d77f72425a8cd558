"""Rows of a database query: ``SqlDataset``.

A row's place is its number: to resume, the query is run again and rows are passed over. That gives the same rows only
if the query has an order (``ORDER BY``) and the data has not changed.

Rows are fetched one by one: drivers drop what they already have of a ``fetchmany`` that fails, so that how many rows
came before a fault would depend on where blocks end. What a driver itself works ahead is lost, the same rows each time:
one of SQLite, up to 2,048 of DuckDB.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import Block, Column, RowError, TensorSpec, column_from_rows, flatten
from forebay.block.build import dtype_name
from forebay.block.dense import Dense
from forebay.block.spec import BYTES, TEXT
from forebay.block.strings import Strings
from forebay.errors import FileError, PlanError
from forebay.ledger import Lease
from forebay.plan.text import brief
from forebay.run import Setup
from forebay.sources.files import FileRows, FilesNode

_FETCHED = 4096
# What bytes that are no text become.
_SURROGATES = re.compile("[\udc80-\udcff]")
_NUMBERS: dict[str, set[type[Any]]] = {"b": {int, bool}, "i": {int}, "u": {int}, "f": {int, float}}


def _sqlite(path: str) -> Any:
    import os
    import sqlite3
    from urllib.parse import quote

    if path != ":memory:" and not path.startswith("file:"):
        if not os.path.exists(path):
            # Otherwise it would be made.
            raise FileNotFoundError("there is no such file")
        path = f"file:{quote(os.path.abspath(path))}?mode=ro"
    connection = sqlite3.connect(path, uri=True, check_same_thread=False)
    # Text that is none is a fault of its row; by default it fails the query, and all rows of a fetch with it.
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    return connection


def _duckdb(path: str) -> Any:
    import duckdb

    return duckdb.connect(path, read_only=path != ":memory:")


DRIVERS: dict[str, Callable[[str], Any]] = {"sqlite": _sqlite, "duckdb": _duckdb}


@dataclass(frozen=True, eq=False, kw_only=True)
class SqlRows(FilesNode):
    """The rows of one query, as tuples."""

    driver: str
    query: str
    output_types: tuple[np.dtype[Any], ...]

    kind = "SqlDataset"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.driver not in DRIVERS:
            raise PlanError(f"SqlDataset(driver_name={self.driver!r}): the drivers are {', '.join(DRIVERS)}")
        if not isinstance(self.query, str):
            raise PlanError(f"SqlDataset(query={self.query!r}): a query is a str")
        for dtype in self.output_types:
            if dtype not in (BYTES, TEXT) and dtype.kind not in "biuf":
                raise PlanError(f"SqlDataset(output_types=...): there is no column of {dtype.name}")

    def spec(self, *inputs: Any) -> Any:
        """As declared."""
        return tuple(TensorSpec((), dtype) for dtype in self.output_types)

    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """Run the query."""
        return _Rows(self, path, at or 0)


class _Rows(FileRows):
    def __init__(self, node: SqlRows, path: str, at: int) -> None:
        self._node = node
        self._path = path
        self._structure = flatten(node.output_types, (np.dtype,))[1]
        self._waiting: list[Any] = []
        self._failed: Exception | None = None
        self.at = 0
        try:
            self._connection = DRIVERS[node.driver](path)
        except Exception as error:
            # Each driver has errors of its own.
            raise FileError(path, f"cannot be opened with {node.driver}: {error}") from error
        try:
            self._cursor = self._connection.cursor()
            try:
                self._cursor.execute(node.query)
            except Exception as error:
                raise self._error(error) from error
            found = len(self._cursor.description or ())
            if found != len(node.output_types):
                raise FileError(
                    path, f"the query gives {found} columns, and there are {len(node.output_types)} output_types"
                )
            while self.at < at:
                passed = len(self._fetch(min(at - self.at, _FETCHED)))
                if not passed:
                    raise FileError(path, f"the query gives {self.at:,} rows, fewer than when the state was saved")
                self.at += passed
        except FileError:
            self.close()
            raise

    def read(self, rows: int) -> Block | None:
        """As many as are asked for, or those before one that does not fit."""
        if not self._waiting:
            self._waiting = self._fetch(rows)
        found = self._waiting[:rows]
        if not found:
            return None
        try:
            columns = self._columns(found)
        except RowError as error:
            if not error.row:
                raise FileError(self._path, f"row {self.at:,} of the query: {error.text}") from None
            found = found[: error.row]
            columns = self._columns(found)
        self._waiting = self._waiting[len(found) :]
        self.at += len(found)
        return Block(self._structure, columns, len(found))

    def _fetch(self, rows: int) -> list[Any]:
        """So many, fewer at the end or before a fault, which is raised by the next call."""
        found: list[Any] = []
        if self._failed is None:
            try:
                for row in islice(iter(self._cursor.fetchone, None), rows):
                    found.append(row)  # noqa: PERF402 - what came before an error counts
            except Exception as error:
                self._failed = error
        if self._failed is not None and not found:
            raise self._error(self._failed) from self._failed
        return found

    def _error(self, error: Exception) -> FileError:
        return FileError(self._path, f"the query failed: {error}")

    def _columns(self, rows: list[Any]) -> list[Column]:
        return [
            _column(f"column {i}", dtype, values)
            for i, (dtype, values) in enumerate(zip(self._node.output_types, zip(*rows)))
        ]

    def recover(self) -> bool:
        """Behind a row that does not fit; a query that failed cannot go on."""
        if not self._waiting:
            return False
        self._waiting = self._waiting[1:]
        self.at += 1
        return True

    def close(self) -> None:
        """The connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _column(name: str, dtype: np.dtype[Any], values: tuple[Any, ...]) -> Column:
    """A column of one dtype. RowError names the first value that is not of it."""
    kinds = set(map(type, values))
    numbers = _NUMBERS.get(dtype.kind, set())
    if kinds <= numbers:
        try:
            return Dense(_array(values, dtype))
        except (OverflowError, FloatingPointError):
            # Some value does not fit, and is found below.
            pass
    if dtype == TEXT and kinds == {str} and not any(map(_SURROGATES.search, values)):
        return Strings.of(values, (), True)
    made = [_value(name, dtype, numbers, row, value) for row, value in enumerate(values)]
    return column_from_rows(made, dtype)


def _array(values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers too large for a float are refused as those too large for an int are; by default they become infinite."""
    with np.errstate(over="raise"):
        return np.array(values, dtype)


def _value(name: str, dtype: np.dtype[Any], numbers: set[type[Any]], row: int, value: Any) -> Any:
    if value is None:
        raise RowError(row, f"{name} is NULL; say in the query what stands for it, as COALESCE(x, 0) does")
    if dtype in (BYTES, TEXT):
        if isinstance(value, (bytes, bytearray, memoryview)) and dtype == BYTES:
            return bytes(value)
        if isinstance(value, (str, int, float)):
            # As SQL casts it.
            text = str(value)
            return text.encode("utf-8", "surrogateescape") if dtype == BYTES else _utf8(name, row, text)
    elif type(value) in numbers or (dtype.kind == "f" and hasattr(value, "__float__") and not isinstance(value, str)):
        try:
            return _array(value, dtype)[()]
        except (OverflowError, FloatingPointError):
            raise RowError(row, f"{name} is {value}, which does not fit into {dtype.name}") from None
    raise RowError(
        row, f"{name} is {brief(repr(value))}, not {dtype_name(dtype)}; CAST it in the query if it should be"
    )


def _utf8(name: str, row: int, text: str) -> str:
    if _SURROGATES.search(text):
        raw = text.encode("utf-8", "surrogateescape")
        raise RowError(
            row, f"{name} is text that is not UTF-8, {brief(repr(raw))}; bytes in output_types take it as it is"
        )
    return text
