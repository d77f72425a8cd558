"""Values in the place of nulls: ``fill_nulls`` of Parquet files and Arrow data."""

from __future__ import annotations

import datetime
import decimal
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay as fb

DAY = datetime.date(2020, 2, 29)
KINDS: dict[str, tuple[pa.DataType, Any, Any]] = {
    "bool": (pa.bool_(), True, False),
    "int8": (pa.int8(), 3, -1),
    "uint64": (pa.uint64(), 3, 2**64 - 1),
    "float16": (pa.float16(), np.float16(0.5), -1),
    "float32": (pa.float32(), 0.5, np.float32(0.1)),
    "float64": (pa.float64(), 0.5, np.inf),
    "string": (pa.string(), "a", "ä"),
    "string_view": (pa.string_view(), "a", "a longer one than fits inside"),
    "large_binary": (pa.large_binary(), b"a", b"\xff"),
    "binary of 2": (pa.binary(2), b"ab", b"any length"),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "a", "not in it"),
    "runs": (pa.run_end_encoded(pa.int32(), pa.int64()), 7, 0),
    "date32": (pa.date32(), DAY, DAY),
    "date64": (pa.date64(), DAY, np.datetime64("1969-01-01")),
    "timestamp": (pa.timestamp("us", "UTC"), datetime.datetime(2020, 1, 1), np.datetime64("2020-01-01T00:00:01")),
    "time32": (pa.time32("s"), datetime.time(1), np.timedelta64(5, "s")),
    "duration": (pa.duration("ms"), datetime.timedelta(seconds=1), datetime.timedelta(milliseconds=5)),
}


def column(kind: pa.DataType, value: Any) -> pa.Array:
    if pa.types.is_run_end_encoded(kind):
        return pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array([value, None, value], kind.value_type))
    return pa.array([value, None, value], kind)


@pytest.mark.parametrize("name", KINDS)
def test_columns_keep_their_dtype(name: str) -> None:
    kind, value, fill = KINDS[name]
    whole = pa.table({"a": column(kind, value)})
    plain = next(iter(fb.Dataset.from_arrow(whole.slice(0, 1)).batch(1)))["a"]
    for table, rows in ((whole, 3), (whole.slice(1, 1), 1), (whole.slice(2), 1)):
        dataset = fb.Dataset.from_arrow(table, fill_nulls={"a": fill})
        batch = next(iter(dataset.batch(rows)))["a"]
        assert batch.dtype == plain.dtype
        assert len(batch) == rows
    filled = next(iter(fb.Dataset.from_arrow(whole, fill_nulls=fill).batch(3)))["a"]
    expected = np.array([plain[0], fill, plain[0]], plain.dtype)
    np.testing.assert_array_equal(filled, expected)


def stored(folder: Path, format: str, table: pa.Table) -> str:
    path = str(folder / f"a.{format}")
    if format == "parquet":
        pq.write_table(table, path, row_group_size=2)
    else:
        maker = pa.ipc.new_file if format == "arrow" else pa.ipc.new_stream
        with maker(path, table.schema) as writer:
            writer.write_table(table, 2)
    return path


@pytest.mark.parametrize("format", ["parquet", "arrow", "stream"])
@pytest.mark.parametrize("index", [True, False])
def test_files(tmp_path: Path, format: str, index: bool) -> None:
    table = pa.table({"a": pa.array([None, 1, None, None, 5], pa.int32()), "b": ["x", None, "y", "z", None]})
    path = stored(tmp_path, format, table)
    read = fb.Dataset.from_parquet if format == "parquet" else fb.Dataset.from_arrow
    dataset = read(path, fill_nulls={"b": "", "a": -1}, index=index)
    assert [(int(e["a"]), e["b"]) for e in dataset] == [(-1, "x"), (1, ""), (-1, "y"), (-1, "z"), (5, "")]
    batch = next(iter(dataset.shuffle(seed=1).batch(5)))
    assert batch["a"].dtype == np.int32
    spec = dataset.element_spec
    assert spec["a"].dtype == np.int32
    assert spec["a"].shape == ()
    # What has no value to stand for it stays as it was.
    assert [e["b"] for e in read(path, fill_nulls={"a": 0}, index=index)] == ["x", None, "y", "z", None]


def test_files_that_forebay_wrote(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    rows = [{"n": None if i % 2 else i, "t": None if i % 3 else "t", "x": np.arange(2)} for i in range(6)]
    fb.Dataset.from_generator(lambda: iter(rows)).to_parquet(path)
    dataset = fb.Dataset.from_parquet(path, fill_nulls={"n": 9, "t": "none"})
    batch = next(iter(dataset.batch(6)))
    assert batch["n"].tolist() == [0, 9, 2, 9, 4, 9]
    assert batch["t"].tolist() == ["t", "none", "none"] * 2
    assert dataset.element_spec["n"].dtype == np.int64
    with pytest.raises(fb.FileError, match=r"a column 'x' \(of shape \(2,\)\), and fill_nulls fills plain values only"):
        list(fb.Dataset.from_parquet(path, fill_nulls={"x": 0}))


def test_readers_and_filters(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, None, 3.0]})
    for source in (table.to_reader, table.to_reader(), table.to_batches()[0]):
        assert [float(e["a"]) for e in fb.Dataset.from_arrow(source, fill_nulls=0)] == [1.0, 0.0, 3.0]
    path = stored(tmp_path, "parquet", table)
    kept = fb.Dataset.from_parquet(path, filters=[("a", "<", 2)], fill_nulls=0)
    assert [float(e["a"]) for e in kept] == [1.0]


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "no such column": (pa.int8(), {"z": 0}, "gives no column 'z', which fill_nulls names; those that are read are 'a'"),
    "too large": (pa.int8(), {"a": 300}, "a column 'a' of int8, which cannot hold the 300 that fill_nulls gives"),
    "negative": (pa.uint8(), {"a": -1}, "cannot hold the -1"),
    "a fraction": (pa.int64(), {"a": 0.5}, "cannot hold the 0.5"),
    "not a number": (pa.int64(), {"a": np.nan}, "cannot hold the nan"),
    "beyond float32": (pa.float32(), {"a": 1e300}, "cannot hold the 1e"),
    "not exact": (pa.float32(), {"a": 2**24 + 1}, "cannot hold the 16777217"),
    "a truth value": (pa.int64(), {"a": True}, "cannot hold the True"),
    "a number as truth": (pa.bool_(), {"a": 1}, "of bool, which cannot hold the 1"),
    "text as number": (pa.int64(), {"a": "0"}, "cannot hold the '0'"),
    "bytes as text": (pa.string(), {"a": b"x"}, "of str, which cannot hold the b'x'"),
    "half a day": (pa.date32(), {"a": np.datetime64("2020-01-01T12")}, "cannot hold"),
    "a number as date": (pa.timestamp("s"), {"a": 5}, "cannot hold the 5"),
    "a list": (pa.list_(pa.int64()), {"a": 0}, r"'a' \(list of int64\), and fill_nulls fills plain values only: .*map"),
    "a struct": (pa.struct({"x": pa.int64()}), {"a": 0}, "plain values only"),
    "a decimal": (pa.decimal128(5), {"a": 0}, "plain values only"),
    "one for all": (pa.string(), 0, r"cannot hold the 0 .*; name the columns, as in fill_nulls=\{'a': ...\}"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit(tmp_path: Path, name: str) -> None:
    kind, fill, text = REFUSED[name]
    table = pa.table({"a": pa.array([None], kind)})
    with pytest.raises(fb.PlanError, match=rf"from_arrow\(\): the table .*{text}"):
        fb.Dataset.from_arrow(table, fill_nulls=fill)
    path = stored(tmp_path, "parquet", table)
    with pytest.raises(fb.FileError, match=rf"from_parquet at .*{re.escape(path)}: .*{text}"):
        list(fb.Dataset.from_parquet(path, fill_nulls=fill))


@pytest.mark.parametrize("fill", [{}, {1: 0}, [0], {"a": None}, {"a": decimal.Decimal(1)}, np.datetime64("NaT")])
def test_what_cannot_be_meant(fill: Any) -> None:
    for build in (
        lambda: fb.Dataset.from_parquet("nowhere.parquet", fill_nulls=fill),
        lambda: fb.Dataset.from_arrow(pa.table({"a": [1]}), fill_nulls=fill),
    ):
        with pytest.raises(fb.PlanError, match=r"\(fill_nulls="):
            build()


def test_a_state_of_other_values_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"a": [1, None, 3]})
    path = stored(tmp_path, "parquet", table)
    for source in (
        lambda fill: fb.Dataset.from_parquet(path, fill_nulls=fill),
        lambda fill: fb.Dataset.from_arrow(table.slice(0, 1), fill_nulls=fill),
        lambda fill: fb.Dataset.from_arrow(table.to_reader, fill_nulls=fill),
    ):
        with iter(source({"a": np.int64(4)})) as it:
            next(it)
            state = it.state_dict()
        with iter(source({"a": 4})) as it:
            it.load_state_dict(state)
        for other in ({"a": 5}, None):
            with iter(source(other)) as it, pytest.raises(fb.CursorError):
                it.load_state_dict(state)
        source({"a": 4}).explain()
        assert "fill_nulls={'a': 4}" in capsys.readouterr().out


def test_batches_without_it_say_what_to_do() -> None:
    dataset = fb.Dataset.from_arrow(pa.table({"a": [1.0, None]})).batch(2)
    cure = r"leaf \['a'\] is None in some .* as 0 if x\['a'\] is None else x\['a'\] does, or with .*fill_nulls"
    with pytest.raises(fb.DataError, match=cure):
        list(dataset)
