"""``SqlDataset``: rows of a query."""

import os
import sqlite3
from pathlib import Path

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


def test_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = str(tmp_path / "a.db")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i, CAST(range / 4 AS DECIMAL(5, 2)) AS d FROM range(6)")
    dataset = fb.SqlDataset("duckdb", path, "SELECT i, d FROM t ORDER BY i", (np.int64, np.float32))
    assert_same(list(dataset), [(np.int64(i), np.float32(i / 4)) for i in range(6)])
