"""``SqlDataset``: rows of a query."""

import os
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from unit.support import assert_same, outcome, until_error


def test_queries(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (i INTEGER, s TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (None, "b"), (300, None), (4, "d")])
    connection.close()
    query = "SELECT i, s FROM t ORDER BY rowid"
    found, error = until_error(fb.SqlDataset("sqlite", path, query, (np.int64, str)))
    assert found == [(1, "a")]
    assert "row 1 of the query: column 0 is NULL" in str(error)
    assert list(fb.SqlDataset("sqlite", path, query, (np.uint8, str), on_error="skip")) == [(1, "a"), (4, "d")]
    for build, reason in (
        (lambda: fb.SqlDataset("sqlite", path, "SELECT i FROM t", (np.int64, str)), "1 columns, and there are 2"),
        (lambda: fb.SqlDataset("sqlite", path, "SELECT x FROM t", np.int64), "the query failed"),
        (lambda: fb.SqlDataset("sqlite", path, "DROP TABLE t", np.int64), "the query failed"),
        (lambda: fb.SqlDataset("sqlite", path + "x", query, (np.int64, str)), "there is no such file"),
        (lambda: fb.SqlDataset("sqlite", path, "SELECT s FROM t", np.int64), "CAST it in the query"),
    ):
        found, error = outcome(build)
        assert found == []
        assert isinstance(error, fb.FileError)
        assert reason in str(error)
    assert not os.path.exists(path + "x")


def test_text_of_a_query_that_is_none(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    texts = [b"a", "é".encode(), b"\xff\x41", b"b\0c", b"\xed\xa0\x80", b"d"]
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (s TEXT)")
        connection.executemany("INSERT INTO t VALUES (CAST(? AS TEXT))", [(text,) for text in texts])
    connection.close()
    # The bytes are what tf.data gives, too.
    assert list(fb.SqlDataset("sqlite", path, "SELECT s FROM t ORDER BY rowid", bytes)) == [(text,) for text in texts]
    dataset = fb.SqlDataset("sqlite", path, "SELECT s FROM t ORDER BY rowid", str)
    found, error = until_error(dataset)
    assert found == [("a",), ("é",)]
    assert "row 2 of the query: column 0 is text that is not UTF-8" in str(error)
    skipping = fb.SqlDataset("sqlite", path, "SELECT s FROM t ORDER BY rowid", str, on_error="skip")
    assert list(skipping) == [("a",), ("é",), ("b\0c",), ("d",)]


def test_rows_before_a_failure_come_wherever_reading_began(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(-(2**63) if i == 36 else i,) for i in range(100)])
        query = "SELECT abs(a) FROM t ORDER BY rowid"
        expected = as_far_as_it_goes(connection, query)
    connection.close()
    assert len(expected) in (35, 36)
    dataset = fb.SqlDataset("sqlite", path, query, np.int64, on_error="skip")
    check_resumed(dataset, expected, (0, 1, 5, 12, 20, 34))
    found, error = until_error(fb.SqlDataset("sqlite", path, query, np.int64))
    assert found == expected
    assert "the query failed: integer overflow" in str(error)


def test_a_damaged_database(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (s TEXT)")
        connection.executemany("INSERT INTO t VALUES (?)", [(f"{i:04d}" * 100,) for i in range(1000)])
    connection.close()
    data = bytearray(Path(path).read_bytes())
    data[60 * 4096 : 61 * 4096] = b"\xff" * 4096
    Path(path).write_bytes(data)
    query = "SELECT s FROM t ORDER BY rowid"
    connection = sqlite3.connect(path)
    expected = as_far_as_it_goes(connection, query)
    connection.close()
    assert 100 < len(expected) < 900
    check_resumed(fb.SqlDataset("sqlite", path, query, str, on_error="skip"), expected, (0, 7, 100, len(expected) - 1))


def as_far_as_it_goes(connection: sqlite3.Connection, query: str) -> list[Any]:
    rows: list[Any] = []
    with pytest.raises(sqlite3.Error):
        # What came before the error stays in the list.
        rows.extend(connection.execute(query))
    return rows


def check_resumed(dataset: "fb.Dataset[Any]", expected: list[Any], places: tuple[int, ...]) -> None:
    assert list(dataset) == expected
    for place in places:
        with iter(dataset) as first:
            found = [next(first) for _ in range(place)]
            state = first.state_dict()
        with iter(dataset) as second:
            second.load_state_dict(state)
            assert found + list(second) == expected, place


@pytest.mark.parametrize(("value", "dtype"), [("1e300", np.float32), ("70000", np.float16), ("300", np.uint8)])
def test_numbers_that_do_not_fit(value: str, dtype: type[np.generic]) -> None:
    query = f"SELECT 1 UNION ALL SELECT {value} UNION ALL SELECT 9e999"
    found, error = until_error(fb.SqlDataset("sqlite", ":memory:", query, dtype))
    assert found == [(1,)]
    assert f"which does not fit into {np.dtype(dtype).name}" in str(error)
    if dtype != np.uint8:
        skipping = fb.SqlDataset("sqlite", ":memory:", query, dtype, on_error="skip")
        assert list(skipping) == [(1,), (np.inf,)]


def test_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = str(tmp_path / "a.db")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i, CAST(range / 4 AS DECIMAL(5, 2)) AS d FROM range(6)")
    dataset = fb.SqlDataset("duckdb", path, "SELECT i, d FROM t ORDER BY i", (np.int64, np.float32))
    assert_same(list(dataset), [(np.int64(i), np.float32(i / 4)) for i in range(6)])
