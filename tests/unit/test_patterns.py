"""Patterns in place of names: what takes them, what they stand for, and what they do not."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, FileError
from forebay.storage.listing import is_pattern


def lines(template: str) -> Callable[[str, int], Any]:
    return lambda path, x: Path(path).write_text(template.format(x))


def array(path: str, x: int) -> None:
    with open(path, "wb") as file:  # By its name, it would be given an ending.
        np.save(file, np.array([x]))


def value(row: Any) -> int:
    return int(row["x"] if isinstance(row, dict) else row[0] if isinstance(row, np.ndarray) else row)


# How a file with a number is written, and how those files are read.
FORMATS: dict[str, tuple[Callable[[str, int], Any], Callable[..., Dataset[Any]]]] = {
    "csv": (lines("x\n{}\n"), Dataset.from_csv),
    "json": (lines('{{"x": {}}}\n'), Dataset.from_json),
    "parquet": (lambda path, x: Dataset.from_tensor_slices({"x": [x]}).to_parquet(path), Dataset.from_parquet),
    "arrow": (lambda path, x: Dataset.from_tensor_slices({"x": [x]}).to_arrow(path), Dataset.from_arrow),
    "npy": (array, Dataset.from_npy),
    "tar": (lambda path, x: Dataset.from_tensor_slices({"x": [x]}).to_webdataset(path), Dataset.from_webdataset),
    "tokens": (lambda path, x: np.array([x], np.uint16).tofile(path), lambda p: Dataset.from_tokens(p, np.uint16, 1)),
}


@pytest.fixture(params=FORMATS)
def read(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[int]]:
    """Reads the numbers of files; those of part-2, part-0 and part-1 are there, with an index beside one of them."""
    monkeypatch.chdir(tmp_path)
    write, reader = FORMATS[request.param]
    for x in (2, 0, 1):
        write(f"part-{x}", x)
    Path("part-1.fbindex").write_bytes(b'{"format": "forebay row index 3"}\n')
    for number, name in enumerate(["[x]", "x", "[none]"]):
        write(name, 10 + number)
    return lambda names: [value(row) for row in reader(names)]


def test_they_stand_for_the_files_that_match(read: Callable[[Any], list[int]], tmp_path: Path) -> None:
    assert read("part-*") == [0, 1, 2]
    assert read(tmp_path / "part-[12]") == [1, 2]
    assert read(["part-2", "part-?", "nothing*"]) == [2, 0, 1, 2]
    assert read(f"file://{tmp_path}/part-*") == [0, 1, 2]


def test_a_file_that_is_called_so_is_meant(read: Callable[[Any], list[int]]) -> None:
    assert (read("[x]"), read("x"), read("[none]"), read("[yx]")) == ([10], [11], [12], [11])
    # As in tf.data.
    assert list(Dataset.list_files("[x]")) == ["x"]


def test_they_have_to_match_something(read: Callable[[Any], list[int]]) -> None:
    for names in ("other-*", ["other-*", "none-?"]):
        with pytest.raises(FileError, match=r"(other-\*|none-\?): there is no file that matches"):
            read(names)
    with pytest.raises(FileError, match="there is no such file"):
        read("other")


def test_in_turns_and_passed_over(tmp_path: Path) -> None:
    for x in range(3):
        Dataset.from_tensor_slices({"x": [x, x]}).to_parquet(tmp_path / f"{x}.parquet")
    turns = Dataset.from_parquet(tmp_path / "*.parquet", num_parallel_reads=3)
    assert [value(row) for row in turns] == [0, 1, 2, 0, 1, 2]
    assert len(Dataset.from_parquet(tmp_path / "*.parquet")) == 6
    # Of a name, and not of a pattern, it is known what is missing.
    names = [tmp_path / "none.parquet", tmp_path / "*.parquet"]
    assert len(list(Dataset.from_parquet(names, on_error="skip"))) == 6


def test_arrays_by_name(tmp_path: Path) -> None:
    for x in range(2):
        np.save(tmp_path / f"a-{x}.npy", np.array([x]))
        np.save(tmp_path / f"b-{x}.npy", np.array([10 * x]))
    paired = Dataset.from_npy({"a": tmp_path / "a-*.npy", "b": str(tmp_path / "b-*.npy")})
    assert list(paired) == [{"a": 0, "b": 0}, {"a": 1, "b": 10}]


@pytest.mark.parametrize("reader", [
    fb.TFRecordDataset,
    fb.TextLineDataset,
    lambda path: fb.FixedLengthRecordDataset(path, 2),
    lambda path: fb.CsvDataset(path, [np.int32]),
])  # fmt: skip
def test_what_tf_data_has_takes_paths_as_there(reader: Callable[[str], Dataset[Any]], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    with pytest.raises(FileError, match=r"there is no such file; Dataset\.list_files\(\) finds those that match"):
        list(reader(f"{tmp_path}/*"))


def test_urls() -> None:
    system = fsspec.filesystem("memory")
    try:
        for name, x in (("b-1", 1), ("b-0", 0), ("b-[01]", 7)):
            Dataset.from_tensor_slices({"x": [x]}).to_parquet(f"memory://patterns/{name}.parquet")
        assert [value(row) for row in Dataset.from_parquet("memory://patterns/b-?.parquet")] == [0, 1]
        assert [value(row) for row in Dataset.from_parquet("memory://patterns/b-[01].parquet")] == [7]
        with pytest.raises(FileError, match="there is no file that matches"):
            Dataset.from_parquet("memory://patterns/c-*.parquet")
    finally:
        system.rm("/patterns", recursive=True)


@pytest.mark.parametrize(("name", "pattern"), [
    ("https://host/a.parquet?key=1", False),
    ("https://host/*.parquet?key=1", True),
    ("s3://bucket/a-?.parquet", True),
    ("a?", True),
    ("a", False),
])  # fmt: skip
def test_a_query_is_no_pattern(name: str, pattern: bool) -> None:
    assert is_pattern(name) is pattern


def test_files_that_are_not_there_are_for_the_reader_to_miss(tmp_path: Path) -> None:
    # It is built: what is read in an hour may be written until then.
    dataset = Dataset.from_parquet(tmp_path / "later.parquet", index=False)
    Dataset.from_tensor_slices({"x": [5]}).to_parquet(tmp_path / "later.parquet")
    assert [value(row) for row in dataset] == [5]
    assert os.listdir(tmp_path) == ["later.parquet"]
