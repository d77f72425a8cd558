"""Parquet and Arrow: values against pyarrow's own, filters, budget, broken files, and writing."""

from __future__ import annotations

import decimal
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb

Dataset = fb.Dataset

_TYPES = st.recursive(
    st.sampled_from(
        [
            pa.bool_(),
            pa.int8(),
            pa.uint64(),
            pa.float32(),
            pa.string(),
            pa.large_binary(),
            pa.binary(3),
            pa.date32(),
            pa.timestamp("us", "UTC"),
            pa.duration("ns"),
            pa.time32("ms"),
            pa.decimal128(5, 2),
            pa.dictionary(pa.int8(), pa.string()),
        ]
    ),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda kind: pa.list_(kind, 2)),
        inner.map(lambda kind: pa.struct({"a": kind, "b": pa.int64()})),
    ),
    max_leaves=3,
)


def _value(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        plain = st.fixed_dictionaries({field.name: _value(field.type) for field in kind})
    elif pa.types.is_fixed_size_list(kind):
        plain = st.lists(_value(kind.value_type), min_size=2, max_size=2)
    elif pa.types.is_list(kind):
        plain = st.lists(_value(kind.value_type), max_size=3)
    elif pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        plain = st.text(max_size=3)
    elif pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        plain = st.binary(min_size=3, max_size=3)
    elif pa.types.is_large_binary(kind):
        plain = st.binary(max_size=3)
    elif pa.types.is_boolean(kind):
        plain = st.booleans()
    elif pa.types.is_decimal(kind):
        plain = st.integers(-999, 999).map(lambda n: decimal.Decimal(n) / 100)
    elif pa.types.is_floating(kind):
        plain = st.floats(width=32, allow_nan=False)
    elif pa.types.is_integer(kind):
        plain = st.integers(0, 127)
    else:
        plain = st.integers(0, 80_000).map(lambda n: pa.scalar(n, pa.int64()).cast(pa.int32()).as_py())
    return st.one_of(st.none(), plain) if not pa.types.is_struct(kind) else plain


def _plain(value: Any) -> Any:
    """An element as pyarrow's ``as_py`` would give it, numbers of time as they are stored."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return int(value.astype(np.int64))
    return value.item() if isinstance(value, np.generic) else value


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type with plain numbers in place of times, to compare by."""
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct({field.name: _stored(field.type) for field in kind})
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_stored(kind.value_type), 2)
    return pa.list_(_stored(kind.value_type)) if pa.types.is_list(kind) else kind


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=_TYPES)
def test_elements_are_what_pyarrow_says(data: st.DataObject, kind: pa.DataType) -> None:
    values = data.draw(st.lists(_value(kind), min_size=1, max_size=5))
    numbers = pa.array(values, _stored(kind))
    table = pa.table({"x": numbers.cast(kind) if kind != numbers.type else numbers})
    want = pa.table({"x": numbers}).to_pylist()
    dataset = Dataset.from_arrow(table)
    assert [_plain(element) for element in dataset] == want
    # Alone, every row is what it is among others.
    alone = [next(iter(Dataset.from_arrow(table.slice(i, 1)))) for i in range(len(values))]
    assert list(map(repr, alone)) == list(map(repr, dataset))
    assert list(map(repr, dataset.shuffle(seed=1))) == [
        repr(alone[i]) for i in map(int, Dataset.range(len(values)).shuffle(seed=1))
    ]


def _encoded() -> dict[str, pa.Array]:
    """Layouts that Arrow's own casts and kernels get wrong, or have none for."""
    numbers, text = pa.array([1, 2, None, 4, 5]), pa.array(["a" * 20, None, "b", "", "c"], pa.string_view())
    places, sizes = pa.array([0, 3, 0, 2], pa.int32()), pa.array([0, 2, 2, 3], pa.int32())
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0, None], pa.int8()), pa.array(["x", None]))
    return {
        "views of lists": pa.ListViewArray.from_arrays(places, sizes, numbers),
        "views of lists of text": pa.ListViewArray.from_arrays(places, sizes, text),
        "views of lists, cut": pa.ListViewArray.from_arrays(places, sizes, numbers).slice(1),
        "large views of lists": pa.LargeListViewArray.from_arrays(places.cast("int64"), sizes.cast("int64"), numbers),
        "views of text": text,
        "lists of views": pa.ListArray.from_arrays([0, 2, 5], text),
        "null in a dictionary": hidden,
        "lists of null in a dictionary": pa.ListArray.from_arrays([0, 2, 5], hidden),
        "null in runs": pc.run_end_encode(pa.array([1, 1, None, 2])),
        "lists of null in runs": pa.ListArray.from_arrays(
            [0, 2, 4], pc.run_end_encode(pa.array(["a", "a", None, "b"]))
        ),
    }


@pytest.mark.parametrize("layout", _encoded())
def test_layouts_that_arrow_gets_wrong(tmp_path: Path, layout: str) -> None:
    array = _encoded()[layout]
    table = pa.table({"x": array, "i": np.arange(len(array))})
    want = [{"x": value, "i": i} for i, value in enumerate(array.to_pylist())]
    assert [_plain(each) for each in Dataset.from_arrow(table)] == want
    shuffled = [_plain(each) for each in Dataset.from_arrow(table).shuffle(seed=3)]
    assert sorted(shuffled, key=lambda each: each["i"]) == want
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    assert [_plain(each) for each in Dataset.from_arrow(path)] == want
    try:
        pq.write_table(table, tmp_path / "a.parquet")
    except (pa.ArrowException, NotImplementedError):
        return
    kept = [_plain(each) for each in Dataset.from_parquet(tmp_path / "a.parquet", filters=[("i", ">", 1)])]
    assert kept == want[2:]


def test_maps_of_lists_of_null() -> None:
    # Cast to lists of structs, the lists inside would lose all but the first of their items.
    array = pa.array([[], [("k", [None] * 5)], [("l", [None])]], pa.map_(pa.string(), pa.list_(pa.null())))
    for cut, want in ((array, [[], [5], [1]]), (array.slice(1), [[5], [1]])):
        elements = list(Dataset.from_arrow(pa.table({"x": cut})))
        assert [[len(item["value"]) for item in each["x"]] for each in elements] == want


def test_fields_of_one_name_are_refused() -> None:
    twins = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    for array in (twins, pa.ListArray.from_arrays([0, 1], twins)):
        with pytest.raises(fb.PlanError, match="several fields of one name: 'a', 'a'"):
            Dataset.from_arrow(pa.table({"x": array}))


def _numbers(path: Path, rows: int = 1000, group: int = 100, **how: Any) -> str:
    table = pa.table({"x": np.arange(rows), "y": [f"text {i}" for i in range(rows)]})
    pq.write_table(table, path, row_group_size=group, **how)
    return str(path)


def test_what_a_schema_tells(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2], "n": pa.array([None, 1.5]), "t": [[1], [2]], "s": ["a", "b"]})
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = Dataset.from_parquet(tmp_path / "a.parquet")
    assert len(dataset) == 2
    assert dataset.element_spec == {
        "x": fb.TensorSpec((), np.int64),
        "n": fb.TensorSpec((), object),
        "t": fb.TensorSpec((None,), np.int64),
        "s": fb.TensorSpec((), str),
    }


@pytest.mark.parametrize(
    "filters",
    [[("x", ">=", 250), ("x", "<", 260)], (pc.field("x") >= 250) & (pc.field("x") < 260)],
    ids=["dnf", "expr"],
)
def test_filters_leave_out_row_groups_and_rows(tmp_path: Path, filters: Any) -> None:
    path = _numbers(tmp_path / "a.parquet")
    # Only what is left out by statistics can be unreadable.
    data = bytearray(Path(path).read_bytes())
    column = pq.read_metadata(path).row_group(7).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    Path(path).write_bytes(data)
    dataset = Dataset.from_parquet(path, ["y"], filters)
    assert [row["y"] for row in dataset] == [f"text {i}" for i in range(250, 260)]
    with pytest.raises(fb.FileError, match="row group 7"):
        list(Dataset.from_parquet(path))


def test_unreadable_row_groups_are_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = _numbers(tmp_path / "a.parquet")
    data = bytearray(Path(path).read_bytes())
    column = pq.read_metadata(path).row_group(4).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    Path(path).write_bytes(data)
    found = [int(row["x"]) for row in Dataset.from_parquet(path, on_error="skip")]
    assert found == [*range(400), *range(500, 1000)]
    assert "row group 4" in caplog.text
    with pytest.raises(fb.FileError, match="max_errors"):
        list(Dataset.from_parquet([path], on_error="skip", max_errors=0))


def test_a_shuffle_is_the_same_at_any_budget(tmp_path: Path) -> None:
    path = _numbers(tmp_path / "a.parquet")
    dataset = Dataset.from_parquet(path).shuffle(seed=5)
    ledger = fb.Ledger("80KiB")  # Of which the decoder of one column takes up most.
    small = list(dataset.with_options(fb.Options(memory=ledger)))
    assert small == list(dataset)
    assert ledger.peak <= ledger.budget
    assert sorted(int(row["x"]) for row in small) == list(range(1000))


def test_a_row_group_larger_than_the_budget_is_read_in_pieces(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((4000, 512))
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(rows.reshape(-1), 512)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4000, compression="none")
    code = f"""
import resource, forebay as fb, pyarrow.parquet, pyarrow.dataset
ds = fb.Dataset.from_parquet({str(tmp_path / "a.parquet")!r}).with_options(fb.Options(memory="2MiB"))
next(iter(ds))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert sum(1 for _ in ds) == 4000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # The row group has 16 MB.
    assert int(done.stdout) * 1024 < 12e6


def _broken(kind: str, path: Path) -> str:
    """A file with a fault, and what is to be said about it."""
    good = Path(_numbers(path)).read_bytes()
    if kind == "missing":
        path.unlink()
        return "no such file"
    if kind == "denied":
        path.chmod(0)
        return "permission denied"
    path.write_bytes({"cut short": good[:-100], "garbage": b"garbage" * 100, "empty": b""}[kind])
    return "no Parquet file"


@pytest.mark.parametrize("kind", ["missing", "denied", "cut short", "garbage", "empty"])
def test_broken_files_are_named(tmp_path: Path, kind: str) -> None:
    if kind == "denied" and os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = tmp_path / "a.parquet"
    reason = _broken(kind, path)
    for index in (True, False):
        with pytest.raises(fb.FileError, match=reason) as caught:
            list(Dataset.from_parquet(path, index=index))
        assert caught.value.path == str(path)
        assert "from_parquet at test_tables.py" in str(caught.value)
    good = _numbers(tmp_path / "good.parquet", 10)
    assert len(list(Dataset.from_parquet([str(path), good], on_error="skip"))) == 10


@pytest.mark.parametrize("content", [b"", b"garbage" * 50, b"ARROW1\0\0" + b"x" * 300], ids=["empty", "garbage", "cut"])
def test_broken_arrow_files_are_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.arrow").write_bytes(content)
    with pytest.raises(fb.FileError, match="no Arrow file"):
        list(Dataset.from_arrow(tmp_path / "a.arrow"))


def test_files_have_to_be_alike(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": ["text"]}), tmp_path / "b.parquet")
    files = [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    for index in (True, False):
        with pytest.raises(fb.FileError, match=r"b.parquet: its columns are \{x: str\}, those of .*x: int64"):
            list(Dataset.from_parquet(files, index=index))
    with pytest.raises(fb.FileError, match="no column 'z'; there are 'x'"):
        list(Dataset.from_parquet(files[0], ["z"]))


def test_arguments_are_checked_when_a_dataset_is_built() -> None:
    for call in (
        lambda: Dataset.from_parquet("a", columns="x"),
        lambda: Dataset.from_parquet("a", columns=[]),
        lambda: Dataset.from_parquet("a", filters=[("x",)]),
        lambda: Dataset.from_parquet(3),
        lambda: Dataset.from_arrow(pa.table({"x": [1]}), ["y"]),
        lambda: Dataset.range(3).to_parquet("a.parquet", shards=2),
        lambda: Dataset.range(3).to_parquet("a.parquet", compression="zip"),
        lambda: Dataset.counter().to_parquet("a.parquet"),
    ):
        with pytest.raises(fb.PlanError):
            call()


def test_a_reader_is_read_once() -> None:
    dataset = Dataset.from_arrow(pa.table({"x": [1, 2, 3]}).to_reader())
    assert dataset.element_spec == {"x": fb.TensorSpec((), np.int64)}
    assert [int(row["x"]) for row in dataset] == [1, 2, 3]
    with pytest.raises(fb.DataError, match="can be read only once"):
        list(dataset)


def test_files_may_be_anywhere() -> None:
    source = Dataset.range(50).map(lambda x: {"x": x, "name": f"row {x}"})
    source.to_parquet("memory://tables/a-{shard}.parquet", shards=2)
    source.to_arrow("memory://tables/a.arrow")
    files = [f"memory://tables/a-{i}.parquet" for i in range(2)]
    assert list(Dataset.from_parquet(files)) == list(source)
    assert list(Dataset.from_parquet(files).shuffle(seed=1)) == list(source.shuffle(seed=1))
    assert list(Dataset.from_parquet(Dataset.from_tensor_slices(files))) == list(source)
    assert len(list(Dataset.from_parquet(files, filters=[("x", ">", 20)]))) == 29
    assert list(Dataset.from_arrow("memory://tables/a.arrow")) == list(source)
    with pytest.raises(fb.FileError, match="no such file"):
        list(Dataset.from_parquet("memory://tables/none.parquet"))


@pytest.mark.parametrize("index", [False, True])
def test_text_that_is_none_is_an_error_of_the_file(tmp_path: Path, index: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"good", b"b\xf6d"], pa.binary()).buffers())
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": text}), path)
    with pytest.raises(fb.FileError, match=r"row group 0 cannot be read: .*UTF8"):
        list(Dataset.from_parquet(path, index=index))


def test_the_forecast_knows_what_is_kept_of_decoded_groups(tmp_path: Path) -> None:
    table = pa.table({"x": np.random.default_rng(0).random(40_000)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10_000)
    rows = Dataset.from_parquet(tmp_path / "a.parquet").with_options(fb.Options(memory="1MiB"))

    def source(dataset: Dataset[Any]) -> Any:
        return next(step for step in dataset.memory_report().steps if "from_parquet" in step.step)

    in_order, by_number = source(rows.batch(32)), source(rows.shuffle().batch(32))
    assert in_order.disk == (0, 0, 0)
    assert by_number.memory[0] >= 1 << 18
    assert by_number.memory[0] == by_number.memory[2]
    assert by_number.disk[0] > 0


def test_a_shuffle_of_row_groups_takes_no_more_memory_for_more_rows(tmp_path: Path) -> None:
    code = """
import sys
import forebay as fb
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
def read(path):
    dataset = fb.Dataset.from_parquet(path).shuffle(seed=1).take(100)
    return len(list(dataset.with_options(fb.Options(memory="4MiB"))))
read(sys.argv[1])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = peak()
read(sys.argv[2])
print(peak() - before)
"""
    paths = [str(tmp_path / "few.parquet"), str(tmp_path / "many.parquet")]
    for path, rows in zip(paths, (100_000, 3_000_000)):
        pq.write_table(pa.table({f"c{i}": np.arange(rows) for i in range(4)}), path)
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    # A checksum of 8 bytes for each number would be as large as the data, which has 96 MB.
    assert int(done.stdout) < 40_000
