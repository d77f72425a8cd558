"""Lines, records, CSV, JSON, arrays and queries: what is broken, too large or not there, and what is refused."""

import gzip
import io
import json
import logging
import os
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay as fb
from forebay._native import CsvParser, csv_fields, scan_lines
from forebay.sources import json_lines
from unit.support import assert_same, few, until_error

READERS: dict[str, Callable[..., fb.Dataset[Any]]] = {
    "text": lambda path, **how: fb.TextLineDataset(path, **how),
    "fixed": lambda path, **how: fb.FixedLengthRecordDataset(path, 4, **how),
    "csv": lambda path, **how: fb.CsvDataset(path, [np.int32, "x"], **how),
    "json": lambda path, **how: fb.Dataset.from_json(path, {"x": np.int64}, **how),
}
GOOD = {"text": b"a\nb\n", "fixed": b"aaaabbbb", "csv": b"1,a\n2,b\n", "json": b'{"x": 1}\n{"x": 2}\n'}


def written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def outcome(build: Callable[[], Any]) -> tuple[list[Any], BaseException | None]:
    """Elements before the first error, wherever that is raised."""
    try:
        return until_error(build())
    except fb.ForebayError as error:
        return [], error


@pytest.mark.parametrize("kind", ["text", "fixed", "csv"])
def test_files_that_cannot_be_opened(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = written(tmp_path / "good", GOOD[kind])
    missing, folder, locked = str(tmp_path / "missing"), str(tmp_path), written(tmp_path / "locked", GOOD[kind])
    os.chmod(locked, 0)
    reasons = {missing: "there is no such file", folder: "is a folder"}
    if os.geteuid():
        reasons[locked] = "permission denied"
    for path, reason in reasons.items():
        found, error = outcome(lambda path=path: READERS[kind](path))
        assert found == []
        assert isinstance(error, fb.FileError)
        assert (error.path, error.reason) == (path, reason)
        with caplog.at_level(logging.WARNING, "forebay"):
            caplog.clear()
            assert len(list(READERS[kind]([path, good], on_error="skip"))) == 2
        assert reason in caplog.text


@pytest.mark.parametrize("kind", READERS)
def test_compressed_data_that_is_cut_short(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = {
        "text": b"".join(b"%d\n" % x for x in rng.integers(0, 2**60, 2000)),
        "fixed": rng.bytes(40_000),
        "csv": b"".join(b"%d,a\n" % x for x in rng.integers(0, 2**31, 2000)),
        "json": b"".join(b'{"x": %d}\n' % x for x in rng.integers(0, 2**60, 2000)),
    }[kind]
    whole = list(READERS[kind](written(tmp_path / "whole", rows)))
    packed = gzip.compress(rows)
    path = written(tmp_path / "cut", packed[: len(packed) // 2])
    found, error = outcome(lambda: READERS[kind](path, compression_type="GZIP"))
    assert isinstance(error, fb.FileError)
    assert "ends in the middle of its compressed data" in str(error)
    # The rows before it come out first, however they are cut into blocks, and the same ones are kept.
    assert len(whole) // 4 < len(found) < len(whole)
    assert_same(found, whole[: len(found)])
    kept = READERS[kind](path, compression_type="GZIP", on_error="skip")
    assert_same(list(kept), found)
    assert_same(list(kept.with_options(fb.Options(block_bytes=100))), found)


@pytest.mark.parametrize("kind", ["text", "csv", "json"])
@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_a_line_that_the_budget_does_not_hold(kind: str, compression: str | None, tmp_path: Path) -> None:
    size = 40 << 20
    long = {"text": b"z" * size, "csv": b'3,"' + b"z" * size, "json": b'{"x": 3, "y": "' + b"z" * size}[kind]
    data = GOOD[kind] + long + b"\n" + GOOD[kind]
    if compression:
        # A thousand times smaller: what is unfolded counts, not what is read.
        data = gzip.compress(data, 1)
    path = written(tmp_path / "long", data)
    ledger = fb.Ledger("8MiB")
    options = fb.Options(memory=ledger)
    dataset = READERS[kind](path, compression_type=compression).with_options(options)
    found, error = until_error(dataset)
    assert len(found) == 2
    assert isinstance(error, fb.FileError)
    assert "budget" in str(error)
    assert error.offset == len(GOOD[kind])
    skipping = READERS[kind](path, compression_type=compression, on_error="skip").with_options(options)
    assert_same(list(skipping), found * 2)
    assert ledger.peak < 24 << 20


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_faults_name_their_place_and_are_counted(kind: str, tmp_path: Path) -> None:
    bad = {"csv": b"x,a\n", "json": b"nonsense\n"}[kind]
    path = written(tmp_path / "bad", GOOD[kind] + bad * 3 + GOOD[kind])
    found, error = until_error(READERS[kind](path))
    assert len(found) == 2
    assert isinstance(error, fb.FileError)
    assert (error.path, error.offset) == (path, len(GOOD[kind]))
    assert len(list(READERS[kind](path, on_error="skip", max_errors=3))) == 4
    found, error = until_error(READERS[kind](path, on_error="skip", max_errors=2))
    assert len(found) == 2
    assert "2 faults of this file were passed over" in str(error)


def test_csv_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for record, reason in {
        b"x,1": "field 0 is not a valid int32: b'x'",
        b"2147483648,1": "field 0 is not a valid int32",
        b",1": "field 0 is empty, and has no default",
        b"1": "2 fields are wanted, and the record has 1",
        b"1,2,3": "more than 2 fields",
        b'1,a"b': "does not begin with a quote has one inside",
        b'1,"a"b"': "is not doubled",
        b'1,"a': "ends in the middle of a quoted field",
    }.items():
        written(path, b"1,a\n" + record)
        found, error = until_error(fb.CsvDataset(path, [np.int32, "x"]))
        assert len(found) == 1
        assert reason in str(error)
    written(path, b"1,2,3\n4,5")
    assert "column 2 is wanted" in str(until_error(fb.CsvDataset(path, [np.int32], select_cols=[2]))[1])


def test_csv_goes_on_behind_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", b'1,a\n2,"b\n3,c\n4,"d"e\n5,f\n')
    records = list(fb.CsvDataset(path, [np.int32, "x"], on_error="skip"))
    assert records == [(1, b"a"), (3, b"c"), (5, b"f")]


REFUSED: dict[str, Callable[[str], Any]] = {
    "must be one ASCII": lambda path: fb.CsvDataset(path, ["x"], field_delim=",,"),
    "cannot separate": lambda path: fb.CsvDataset(path, ["x"], field_delim="\n"),
    "must rise": lambda path: fb.CsvDataset(path, ["x", "y"], select_cols=[1, 0]),
    "at least 0": lambda path: fb.CsvDataset(path, ["x"], select_cols=[-1]),
    "not both": lambda path: fb.CsvDataset(path, ["x"], select_cols=[0], exclude_cols=[1]),
    "2 columns, but 1": lambda path: fb.CsvDataset(path, ["x"], select_cols=[0, 1]),
    "there is no column": lambda path: fb.CsvDataset(path, []),
    "give a list": lambda path: fb.CsvDataset(path, "int32"),
    "neither a dtype": lambda path: fb.CsvDataset(path, [True]),
    "more than one default": lambda path: fb.CsvDataset(path, [[1, 2]]),
    "does not fit into int32": lambda path: fb.CsvDataset(path, [2**40]),
    "int32, int64, float32": lambda path: fb.CsvDataset(path, [np.int8]),
    "compression_type='LZ4'": lambda path: fb.TextLineDataset(path, "LZ4"),
    "leave one of the two out": lambda path: fb.TextLineDataset(path, "GZIP", index=True),
    "record_bytes must be at least 1": lambda path: fb.FixedLengthRecordDataset(path, 0),
    "on_error must be": lambda path: fb.TextLineDataset(path, on_error="ignore"),
    "the drivers are": lambda path: fb.SqlDataset("oracle", path, "", np.int64),
    "is not a dtype": lambda path: fb.SqlDataset("sqlite", path, "", "nonsense"),
    "give column_names": lambda path: fb.Dataset.from_csv(path, header=False),
    "there is no column 'c'": lambda path: fb.Dataset.from_csv(path, select_columns=["c"]),
    "there is no column 7": lambda path: fb.Dataset.from_csv(path, select_columns=[7]),
    "the columns are": lambda path: fb.Dataset.from_csv(path, label_name="c"),
    "3 defaults for 2": lambda path: fb.Dataset.from_csv(path, column_defaults=[1, 2, 3]),
    "no file that matches": lambda path: fb.Dataset.from_csv(f"{path}.*"),
    "needs a spec": lambda path: fb.Dataset.from_json(fb.Dataset.list_files(path)),
    "there is no leaf 'y'": lambda path: fb.Dataset.from_json(path, {"x": int}, defaults={"y": 1}),
    "not int64": lambda path: fb.Dataset.from_json(path, {"x": int}, defaults={"x": "a"}),
    "a dict of specs": lambda path: fb.Dataset.from_json(path, np.int64),
    "JSON has no values": lambda path: fb.Dataset.from_json(path, {"x": np.complex64}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_on_the_line_that_asks_for_it(reason: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", b"a,b\n1,2\n")
    with pytest.raises(fb.PlanError, match=reason):
        REFUSED[reason](path)


def test_from_csv_finds_names_and_types(tmp_path: Path) -> None:
    rows = "\ufeffi,big,f,s,empty\n1,5000000000,1,a,\n2,1,1.5,2,\n,,,,\n"
    path = written(tmp_path / "a.csv", rows.encode())
    dataset = fb.Dataset.from_csv(path)
    assert [spec.dtype.name for spec in dataset.element_spec.values()] == [
        "int32",
        "int64",
        "float32",
        "bytes",
        "bytes",
    ]
    assert list(dataset)[2] == {"i": 0, "big": 0, "f": 0.0, "s": b"", "empty": b""}
    some = fb.Dataset.from_csv(path, column_defaults={"s": b"?"}, select_columns=["s", 0])
    assert list(some) == [{"i": 1, "s": b"a"}, {"i": 2, "s": b"2"}, {"i": 0, "s": b"?"}]
    named = fb.Dataset.from_csv(path, ["a", "b", "c", "d", "e"], [1, np.int64(2), 3.0, "", ""], header=True)
    assert list(named)[2] == {"a": 1, "b": 2, "c": 3.0, "d": b"", "e": b""}
    other = written(tmp_path / "b.csv", b"i,big,f,s,other\n1,2,3,4,5\n")
    found, error = until_error(fb.Dataset.from_csv([path, other]))
    assert len(found) == 3
    assert "its header" in str(error)
    gz = written(tmp_path / "a.gz", gzip.compress(rows.encode()))
    assert list(fb.Dataset.from_csv(gz, compression_type="GZIP")) == list(dataset)


@few
@given(data=st.text('a,"\n\r1 é', max_size=30).map(str.encode), cut=st.integers(0, 30))
def test_csv_kernels_do_not_depend_on_where_data_is_cut(data: bytes, cut: int) -> None:
    parser = CsvParser([(4, False, b"-")], [0], ord(","), True, b"")
    whole = np.frombuffer(data, np.uint8)
    columns, (rows, consumed, *_) = parser.parse(whole, True, 1000)
    for part in (whole[:cut], whole):
        some, (count, used, stop, *_) = parser.parse(part, False, 1000)
        assert count <= rows
        assert used <= consumed
        assert some[0][0].tobytes() == columns[0][0].tobytes()[: len(some[0][0])]
        # All records that are whole, unless something ends them early.
        assert stop in (0, 1, 2)
        fields, end = csv_fields(part, False, ord(","), True)
        assert (end[0] == 1) == (end[2] == 0 and len(part) > 0)
        assert end[0] == 0 or len(fields) >= 1


def test_lines_kernel_stays_within_its_arrays() -> None:
    data = np.frombuffer(b"a\nb\nc", np.uint8)
    starts, stops = np.zeros(1, np.int64), np.zeros(1, np.int64)
    assert scan_lines(data, True, starts, stops) == (1, 2)
    assert scan_lines(data[4:], False, starts, stops) == (0, 0)
    with pytest.raises(ValueError, match="differ in length"):
        scan_lines(data, True, starts, np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="must rise"):
        CsvParser([(0, True, None)] * 2, [1, 1], 44, True, b"")


@pytest.mark.parametrize("orjson", [True, False])
def test_json_objects(orjson: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if orjson:
        pytest.importorskip("orjson")
    else:
        monkeypatch.setitem(sys.modules, "orjson", None)
        assert json_lines._loader() is json_lines._loads
    rows = [
        {"i": 1, "f": 1, "s": "a", "b": True, "v": [1, 2], "o": {"x": [[1.5]], "y": None}, "m": [{"k": 1}]},
        {"i": None, "f": 2.5, "s": "é\n", "b": False, "v": [], "o": None, "extra": 0},
    ]
    bad = [b'{"i": "1"}', b"[1]", b"nonsense", b'{"i": NaN}', b'{"o": 3}', b'{"v": [[1]]}', b'{"s": 7}', b'{"i": 1' * 2]
    lines = [json.dumps(row).encode() for row in rows]
    path = written(tmp_path / "a.jsonl", b"\n\r\n".join([lines[0], *bad, b"  ", lines[1]]))
    first = {
        "i": np.int64(1),
        "f": np.float64(1),
        "s": "a",
        "b": np.bool_(True),
        "v": np.array([1, 2]),
        "o": {"x": np.array([[1.5]]), "y": None},
        "m": [{"k": 1}],
        "extra": None,
    }
    second = {
        "i": None,
        "f": np.float64(2.5),
        "s": "é\n",
        "b": np.bool_(False),
        "v": np.array([], np.int64),
        "o": {"x": None, "y": None},
        "m": None,
        "extra": np.int64(0),
    }
    dataset = fb.Dataset.from_json(path, on_error="skip")
    assert_same(list(dataset), [first, second])
    assert_same(list(dataset.with_options(fb.Options(block_bytes=1))), [first, second])
    for line in bad:
        alone = written(tmp_path / "b.jsonl", lines[0] + b"\n\n" + line)
        found, error = until_error(fb.Dataset.from_json(alone, dataset.element_spec))
        assert_same(found, [first])
        assert isinstance(error, fb.FileError)
        assert error.offset == len(lines[0]) + 2
    spec = {"f": np.float32, "o": {"x": fb.TensorSpec((None, None), np.float64)}, "i": np.uint8, "s": bytes}
    given = fb.Dataset.from_json(written(tmp_path / "c", b"\n".join(lines)), spec, defaults={"i": 7, "o.x": [[0]]})
    assert_same(
        list(given),
        [
            {"f": np.float32(1), "o": {"x": np.array([[1.5]])}, "i": np.uint8(1), "s": b"a"},
            {"f": np.float32(2.5), "o": {"x": np.array([[0.0]])}, "i": np.uint8(7), "s": "é\n".encode()},
        ],
    )


def _npy(array: Any, **how: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **how)
    return out.getvalue()


def _npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _compressed(array: Any) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, x=array)
    return out.getvalue()


def _zip_without_arrays() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("readme", "nothing")
    return out.getvalue()


BROKEN_ARRAYS = {
    "pickled objects": (".npy", _npy(np.array([{}], object), allow_pickle=True)),
    "is not a .npy file": (".npy", b"something else"),
    "does not begin as one": (".npy", b""),
    "cut short": (".npy", _npy(np.arange(100))[:-1]),
    "which it is not": (".npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff"),
    "header cannot be read": (".npy", b"\x93NUMPY\x01\x00\x08\x00" + b"((((((((" + bytes(8)),
    "which is not known": (".npy", b"\x93NUMPY\x09\x00\x08\x00{}      "),
    "no rows": (".npy", _npy(np.float32(3))),
    "column by column": (".npy", _npy(np.asfortranarray(np.ones((3, 2))))),
    "named fields": (".npy", _npy(np.zeros(3, [("a", "i4")]))),
    "is compressed": (".npz", _compressed(np.arange(5))),
    "not a zip archive": (".npz", b"PK but not really"),
    "no array in it": (".npz", _zip_without_arrays()),
    "different numbers of rows": (".npz", _npz(a=np.zeros(2), b=np.zeros(3))),
}


@pytest.mark.parametrize("reason", BROKEN_ARRAYS)
def test_arrays_that_cannot_be_read(reason: str, tmp_path: Path) -> None:
    suffix, data = BROKEN_ARRAYS[reason]
    path = written(tmp_path / f"a{suffix}", data)
    with pytest.raises((fb.FileError, fb.PlanError), match=reason):
        fb.Dataset.from_npy(path)


@few
@given(place=st.integers(0, 127), value=st.integers(0, 255))
def test_damaged_headers_of_arrays_never_get_through(tmp_path_factory: Any, place: int, value: int) -> None:
    data = bytearray(_npy(np.arange(12, dtype=np.int32).reshape(4, 3)))
    data[place] = value
    path = written(tmp_path_factory.mktemp("npy") / "a.npy", bytes(data))
    found, error = outcome(lambda: fb.Dataset.from_npy(path))
    assert error is None or isinstance(error, fb.FileError)
    assert sum(np.asarray(row).nbytes for row in found) <= len(data)


def test_arrays_of_every_kind(tmp_path: Path) -> None:
    arrays = {
        "f": np.arange(12.0).reshape(4, 3),
        "big": np.arange(4, dtype=">i4"),
        "b": np.array([True, False, True, True]),
        "t": np.array(["a", "bc", "", "é"]),
        "none": np.zeros((4, 0), np.float32),
        "d": np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]"),
    }
    path = written(tmp_path / "a.npz", _npz(**arrays))
    dataset = fb.Dataset.from_npy(path)
    expected = list(fb.Dataset.from_tensor_slices(arrays))
    assert_same(list(dataset), expected)
    assert len(dataset.skip(1)) == 3
    assert_same(sorted(map(str, dataset.shuffle(seed=3))), sorted(map(str, expected)))
    memory = "memory://forebay-test/a.npy"
    import fsspec

    fsspec.filesystem("memory").pipe("/forebay-test/a.npy", _npy(arrays["f"]))
    assert_same(list(fb.Dataset.from_npy([memory, memory]).skip(3).take(2)), [arrays["f"][3], arrays["f"][0]])


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


def test_duckdb(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = str(tmp_path / "a.db")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i, CAST(range / 4 AS DECIMAL(5, 2)) AS d FROM range(6)")
    dataset = fb.SqlDataset("duckdb", path, "SELECT i, d FROM t ORDER BY i", (np.int64, np.float32))
    assert_same(list(dataset), [(np.int64(i), np.float32(i / 4)) for i in range(6)])


def test_list_files_behind_a_url() -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    for name in ("b", "a"):
        system.pipe(f"/forebay-list/{name}.txt", name.encode())
    dataset = fb.Dataset.list_files("memory://forebay-list/*.txt", shuffle=False)
    assert [path.rpartition("/")[2] for path in dataset] == ["a.txt", "b.txt"]
    assert list(fb.TextLineDataset(dataset)) == [b"a", b"b"]


def test_list_files_shuffles_anew_and_states_fit_moved_files(tmp_path: Path) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        for i in range(20):
            written(tmp_path / folder / f"{i:02}.txt", b"%d\n" % i)

    def lines(folder: str) -> fb.Dataset[bytes]:
        return fb.TextLineDataset(fb.Dataset.list_files(str(tmp_path / folder / "*.txt"), seed=1))

    dataset = lines("here")
    epochs = [list(dataset) for _ in range(2)]
    assert epochs[0] != epochs[1]
    assert sorted(epochs[0]) == sorted(epochs[1])
    it = iter(lines("here"))
    start = [next(it) for _ in range(7)]
    state = json.loads(json.dumps(it.state_dict()))
    moved = iter(lines("there"))
    moved.load_state_dict(state)
    assert start + list(moved) == epochs[0]


def test_records_before_a_cut_do_not_depend_on_the_size_of_blocks(tmp_path: Path) -> None:
    records = [np.random.default_rng(i).bytes(50) for i in range(2000)]
    with fb.io.TFRecordWriter(tmp_path / "whole", "GZIP") as writer:
        for record in records:
            writer.write(record)
    packed = (tmp_path / "whole").read_bytes()
    path = written(tmp_path / "cut", packed[: len(packed) // 2])
    counts = set()
    for size in (100, 1 << 20):
        found, error = until_error(fb.TFRecordDataset(path, "GZIP").with_options(fb.Options(block_bytes=size)))
        assert isinstance(error, fb.FileError)
        assert found == records[: len(found)]
        counts.add(len(found))
    assert len(counts) == 1
    assert counts.pop() > 900
