"""Lines, records, CSV, JSON and queries: what is broken, too large or not there, and what is refused."""

import gzip
import json
import logging
import os
import sys
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
from unit.support import assert_same, few, outcome, until_error, written

READERS: dict[str, Callable[..., fb.Dataset[Any]]] = {
    "text": lambda path, **how: fb.TextLineDataset(path, **how),
    "fixed": lambda path, **how: fb.FixedLengthRecordDataset(path, 4, **how),
    "csv": lambda path, **how: fb.CsvDataset(path, [np.int32, "x"], **how),
    "json": lambda path, **how: fb.Dataset.from_json(path, {"x": np.int64}, **how),
}
GOOD = {"text": b"a\nb\n", "fixed": b"aaaabbbb", "csv": b"1,a\n2,b\n", "json": b'{"x": 1}\n{"x": 2}\n'}


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
    assert "this is fault 3, and max_errors is 2" in str(error)


def test_csv_takes_a_bad_first_record_for_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", b"id\n1\nx\n")
    assert until_error(fb.CsvDataset(path, [np.int32]))[1].reason.endswith(": b'id'; if this is a header: header=True")
    found, error = until_error(fb.CsvDataset(path, [np.int32], header=True))
    assert found == [(1,)]
    assert error.reason.endswith(": b'x'")


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
    r"from_csv\(\[\]\): there is no file": lambda path: fb.Dataset.from_csv([]),
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


@pytest.mark.parametrize("build", [fb.Dataset.from_csv, fb.Dataset.from_json, fb.Dataset.list_files])
def test_files_that_are_not_there(build: Any, tmp_path: Path) -> None:
    for name, reason in (("a", "there is no such file"), ("a*", "there is no file that matches")):
        path = str(tmp_path / name)
        with pytest.raises(fb.FileError, match=reason) as caught:
            build(path)
        assert caught.value.path == path
        assert f"{build.__name__} at test_text_files.py:" in str(caught.value)


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


@pytest.mark.parametrize(
    ("spec", "value", "reason"),
    [
        (fb.TensorSpec((None,), str), b'["y", ["z"]]', "not all of one length"),
        (fb.TensorSpec(None, str), b'["y", ["z", "w"]]', "not all of one length"),
        (fb.TensorSpec(None, bytes), b'[["y"], ["z", "w"]]', "not all of one length"),
        (fb.TensorSpec((), bytes), b'"\\ud800"', "surrogates not allowed"),
        (fb.TensorSpec(None, np.int64), b"[" * 500 + b"]" * 500, "in more than 64 others"),
    ],
)
def test_json_lists_that_are_no_arrays(tmp_path: Path, spec: Any, value: bytes, reason: str) -> None:
    good = b'{"x": null}\n'
    path = written(tmp_path / "a.jsonl", good + b'{"x": %b}\n' % value + good)
    found, error = until_error(fb.Dataset.from_json(path, {"x": spec}))
    assert found == [{"x": None}]
    assert isinstance(error, fb.FileError)
    assert error.offset == len(good)
    # What reads JSON may refuse it before that, in its own words.
    assert reason in str(error) or "not a JSON object" in str(error)
    assert len(list(fb.Dataset.from_json(path, {"x": spec}, on_error="skip"))) == 2


@pytest.mark.parametrize("line", [b'{"x": ' + b"[" * 300 + b"]" * 300 + b"}", b'{"x": ' * 300 + b"1" + b"}" * 300])
def test_objects_of_any_depth(tmp_path: Path, line: bytes) -> None:
    (element,) = fb.Dataset.from_json(written(tmp_path / "a.jsonl", line + b"\n"))
    assert element == json.loads(line)


@pytest.mark.parametrize("header", [b'a"b', b'a"b,"\n"'])
def test_a_header_that_is_wrong_is_a_fault_of_its_own(tmp_path: Path, header: bytes) -> None:
    path = written(tmp_path / "a.csv", header + b"\n1\n2\n")
    _, error = until_error(fb.CsvDataset(path, [np.int32], header=True))
    assert isinstance(error, fb.FileError)
    assert error.offset == 1
    dataset = fb.CsvDataset([path, path], [np.int32], header=True, on_error="skip")
    assert list(dataset) == [(1,), (2,), (1,), (2,)]
    it = iter(dataset)
    states = [it.state_dict() for _ in it]
    for done, state in enumerate(states, 1):
        it.load_state_dict(state)
        assert len(list(it)) == 4 - done


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


def test_what_has_no_size_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    # They would look empty, and a pipe would be waited for.
    for path, reason in ((tmp_path / "pipe", "a pipe or a device"), ("/proc/self/status", "does not tell its size")):
        with pytest.raises(fb.FileError, match=reason):
            list(fb.TextLineDataset(path))
    assert list(fb.TextLineDataset(written(tmp_path / "empty", b""))) == []


def test_a_line_that_is_much_larger_as_objects(tmp_path: Path) -> None:
    """Short lists take many times as much memory as their text; the budget would be gone before anybody looked."""
    path = tmp_path / "lists.jsonl"
    path.write_bytes(b'{"a": [1]}\n{"a": [1], "b": [' + b"[0]," * 500_000 + b'[0]]}\n{"a": [2]}\n')
    dataset = fb.Dataset.from_json(str(path))
    small = fb.Options(memory="32MiB")
    assert len(list(dataset)) == 3
    with pytest.raises(
        fb.FileError, match=r"line 2 .*: the line takes some 66,000,342 bytes as objects, and the budget is"
    ):
        list(dataset.with_options(small))
    left = fb.Dataset.from_json(str(path), on_error="skip").with_options(small)
    assert [row["a"].tolist() for row in left] == [[1], [2]]
