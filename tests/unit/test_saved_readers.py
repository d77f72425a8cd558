"""Others read saved datasets as they are: pyarrow, polars and DuckDB."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import forebay as fb

Dataset = fb.Dataset
COUNT = 50


def element(x: Any) -> Any:
    return {
        "image": np.full((2, 3), x, np.float32),
        "label": x,
        "flag": x % 2 == 0,
        "nested": {"name": f"row {x}", "raw": b"\0%d" % x},
        "tokens": np.arange(x % 4),
        "box": np.full((int(x) % 3, 2), x, np.int32),
        "words": ["a"] * (int(x) % 3 + 1),
        "score": None if x % 5 == 0 else float(x),
        "when": np.datetime64("2024-01-01") + x,
        "wave": complex(x, 1),
    }


@pytest.fixture(params=[None, "zstd"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    Dataset.range(COUNT).map(element).save(tmp_path / "d", request.param)
    return tmp_path / "d"


def check(row: dict[str, Any], x: int) -> None:
    assert row["label"] == x
    assert row["flag"] == (x % 2 == 0)
    assert row["nested.name"] == f"row {x}"
    assert row["nested.raw"] == b"\0%d" % x
    assert np.ravel(row["image"]).tolist() == [x] * 6
    assert list(row["tokens"]) == list(range(x % 4))
    assert list(row["box"]["shape"]) == [x % 3, 2]
    assert list(row["box"]["data"]) == [x] * (x % 3 * 2)
    assert list(row["words"]) == ["a"] * (x % 3 + 1)
    assert row["score"] == (None if x % 5 == 0 else x)
    assert str(row["when"])[:10] == str(np.datetime64("2024-01-01") + x)
    assert np.ravel(row["wave"]).tolist() == [x, 1]


def test_pyarrow_reads_the_folder(folder: Path) -> None:
    table = pa.dataset.dataset(folder, format="ipc").to_table()
    assert table.num_rows == COUNT
    assert table.schema.field("image").type == pa.fixed_shape_tensor(pa.float32(), [2, 3])
    images = table.column("image").combine_chunks().to_numpy_ndarray()
    assert images.shape == (COUNT, 2, 3)
    expected = {
        "label": "int64",
        "flag": "bool",
        "nested.name": "large_string",
        "nested.raw": "large_binary",
        "when": "timestamp[s]",
    }
    assert {name: str(table.schema.field(name).type) for name in expected} == expected
    table.validate(full=True)
    for x, row in enumerate(table.to_pylist()):
        check(row, x)


def test_polars_reads_the_files(folder: Path) -> None:
    frame = pl.read_ipc(sorted(folder.glob("*.arrow"))[0])
    assert frame.height == COUNT
    for x, row in enumerate(frame.iter_rows(named=True)):
        check(row, x)


def test_duckdb_reads_the_files(folder: Path) -> None:
    table = pa.dataset.dataset(folder, format="ipc")
    found = duckdb.from_arrow(table)
    names = found.columns
    rows = found.order("label").fetchall()
    assert len(rows) == COUNT
    for x, row in enumerate(rows):
        check(dict(zip(names, row)), x)


def test_float16_is_float16_to_pyarrow_and_polars(tmp_path: Path) -> None:
    Dataset.from_tensor_slices({"h": np.arange(5, dtype=np.float16)}).save(tmp_path / "d")
    file = next((tmp_path / "d").glob("*.arrow"))
    assert pa.ipc.open_file(file).read_all().column("h").type == pa.float16()
    assert pl.read_ipc(file)["h"].to_list() == [0, 1, 2, 3, 4]


def test_nat_is_null_to_others_and_nat_to_us(tmp_path: Path) -> None:
    times = np.array(["2024-01-01T12", "NaT"], "M8[ms]")
    Dataset.from_tensor_slices(times).save(tmp_path / "d")
    file = next((tmp_path / "d").glob("*.arrow"))
    assert pa.ipc.open_file(file).read_all().column("value").null_count == 1
    assert np.isnat(list(Dataset.load(tmp_path / "d"))).tolist() == [False, True]


def test_columns_have_readable_names(tmp_path: Path) -> None:
    def names(dataset: fb.Dataset[Any]) -> list[str]:
        dataset.save(tmp_path / "d")
        return list(pa.dataset.dataset(tmp_path / "d", format="ipc").schema.names)

    assert names(Dataset.range(3)) == ["value"]
    assert names(Dataset.range(3).map(lambda x: (x, {"a": x, "b": (x, x)}))) == ["0", "1.a", "1.b.0", "1.b.1"]
    assert names(Dataset.range(3).map(lambda x: {"a.b": x, "a": {"b": x}})) == ["a.b", "a.b_2"]


def test_the_program_in_the_docs(tmp_path: Path) -> None:
    shown = (Path(__file__).parents[2] / "docs" / "memory.md").read_text()
    code = shown.partition("## Saved datasets in other libraries")[2].partition("```python\n")[2].partition("```")[0]
    rows = {"image": np.arange(40, dtype=np.uint8).reshape(10, 2, 2)}
    Dataset.from_tensor_slices(rows).save(tmp_path / "folder", shard_func=lambda row: row["image"][0, 0] % 3)
    found: dict[str, Any] = {}
    exec(code.replace('"folder', f'"{tmp_path / "folder"}'), found)
    assert (found["saved"].count_rows(), found["frame"].collect().height) == (10, 10)
    assert found["rows"].fetchall() == [(10,)]
    assert found["images"].shape == (10, 2, 2)
