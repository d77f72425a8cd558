"""Parquet and Arrow files as they are written."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import forebay as fb
from forebay.sinks import tables as sink

Dataset = fb.Dataset


def _mixed(x: Any) -> Any:
    i = int(x)
    return {
        "pair": (np.arange(i % 5), np.float32(i)),
        "text": f"t{i}" if i % 7 else None,
        "tensor": np.full((2, 3), i, np.int16),
        "complex": np.complex64(i),
        "time": np.datetime64(i, "s") if i % 3 else np.datetime64("NaT", "s"),
        "late": None if i == 90 else np.int8(3),
        "shape": np.zeros(2 if i < 95 else 3),
        "ranks": np.zeros((1,) * (i % 3 + 1)),
        "flag": i % 2 == 0,
    }


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("how", [{}, {"shards": 3}, {"rows_per_file": 30, "compression": "lz4"}], ids=str)
def test_what_is_written_comes_back(
    tmp_path: Path, kind: str, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that what does not fit the first rows comes after these have been written.
    monkeypatch.setattr(sink, "_LOOK_BYTES", 1000)
    source = Dataset.range(100).map(_mixed).with_options(fb.Options(memory="64KiB"))
    getattr(source, f"to_{kind}")(tmp_path / ("a-{shard:02d}" if how else "a-00"), **how)
    files = sorted(map(str, tmp_path.iterdir()))
    assert [Path(file).name for file in files] == [
        f"a-{i:02d}" for i in range({"shards": 3}.get(next(iter(how), ""), 4 if how else 1))
    ]
    back = getattr(Dataset, f"from_{kind}")(files)
    assert list(map(repr, back)) == list(map(repr, source))


def test_other_readers_read_what_is_written(tmp_path: Path) -> None:
    times = np.array(["2020-01-01", "NaT"], "M8[ms]")
    Dataset.from_tensor_slices({"x": [1, 2], "t": times, "l": [[1.0, 2.0], [3.0, 4.0]]}).to_parquet(tmp_path / "a")
    got = pq.read_table(tmp_path / "a").to_pylist()
    assert got[0]["x"] == 1
    assert got[0]["t"] == datetime.datetime(2020, 1, 1)
    assert got[1]["t"] is None


def test_a_failure_leaves_nothing_and_what_was_there(tmp_path: Path) -> None:
    def fails(x: Any) -> Any:
        if x == 50:
            raise RuntimeError("broken")
        return x

    Dataset.range(3).to_parquet(tmp_path / "a-0")
    with pytest.raises(fb.FunctionError):
        Dataset.range(100).map(fails).to_parquet(tmp_path / "a-{}", rows_per_file=10)
    assert os.listdir(tmp_path) == ["a-0"]
    assert len(Dataset.from_parquet(tmp_path / "a-0")) == 3
    with pytest.raises(fb.DataError, match="element 0: value is a set"):
        Dataset.from_tensor_slices(np.array([{1}], object)).to_parquet(tmp_path / "b")


LONE = "\ud800"


@pytest.mark.parametrize(("write", "more"), [
    (Dataset.to_parquet, {}),
    (Dataset.to_arrow, {"shards": 2}),
    (Dataset.to_webdataset, {"rows_per_file": 2}),
    (Dataset.write_tfrecord, {"shards": 2}),
    (lambda dataset, path: fb.io.TFRecordWriter(path), {}),
])  # fmt: skip
@pytest.mark.parametrize("name", ["none/a-{shard}", "file/a-{shard}", "none/"])
def test_a_folder_that_is_not_there_is_named_before_anything_is_made(
    write: Any, more: dict[str, Any], name: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    made: list[int] = []
    dataset = Dataset.range(3).map(lambda x: made.append(x) or {"x": x})
    path = f"{tmp_path}/{name}{'{shard}' if more and name == 'none/' else ''}"
    folder = os.path.dirname(path)
    with pytest.raises(fb.FileError, match=f"there is no folder {folder}; make it first, or name another"):
        write(dataset, path, **more)
    assert (made, os.listdir(tmp_path)) == ([], ["file"])


@pytest.mark.parametrize("write", ["to_parquet", "to_arrow", "save"])
@pytest.mark.parametrize("form", [
    lambda i, bad: LONE if bad else "good",
    lambda i, bad: LONE if bad else None if i % 3 else "good",
    lambda i, bad: np.array(["good", LONE if bad else "good"], object),
    lambda i, bad: np.array(["good"] * (i % 5) + [LONE if bad else "good"], object),
    # Saved in seconds, which do not reach as far as days.
    lambda i, bad: np.datetime64(1 << 62 if bad else int(i), "D"),
], ids=["text", "text or None", "arrays", "lists", "days"])  # fmt: skip
@pytest.mark.parametrize("at", [0, 7, 99, 199])
def test_the_element_that_does_not_go_in_is_named(write: str, form: Any, at: int, tmp_path: Path) -> None:
    dataset = Dataset.range(200).map(lambda i: {"i": i, "s": form(i, i == at)})
    with pytest.raises(fb.DataError, match=rf"{write}\(\), element {at}: s holds"):
        getattr(dataset, write)(tmp_path / "out", progress=False)
    assert list(tmp_path.iterdir()) == []


def test_the_element_that_does_not_go_in_is_named_behind_others(tmp_path: Path) -> None:
    # Behind what is looked at first, in the middle of a file, and of a shard.
    dataset = Dataset.range(150_000).map(lambda i: {"s": LONE if i == 123_457 else "a text that takes up some room"})
    with pytest.raises(fb.DataError, match=r"element 123457: s holds"):
        dataset.to_parquet(tmp_path / "a{shard}.parquet", rows_per_file=40_000, progress=False)
    with pytest.raises(fb.DataError, match=r"element 123457: 1\.s holds"):
        dataset.enumerate().save(tmp_path / "a", shard_func=lambda i, row: i % 3, progress=False)


def test_elements_that_differ_are_refused(tmp_path: Path) -> None:
    dataset = Dataset.range(70).map(lambda i: {"s": i}).concatenate(Dataset.range(5).map(lambda i: {"s": {"t": i}}))
    with pytest.raises(fb.DataError, match=r"dataset 2 of those put together: has the structure"):
        dataset.to_parquet(tmp_path / "a.parquet", progress=False)
