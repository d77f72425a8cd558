"""Places that nothing can be written to, and names that nothing can have: errors of Forebay's own, and soon."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from forebay import Dataset

ROWS = Dataset.range(3).map(lambda x: {"x": x})

FOLDERS: dict[str, Callable[[Any], Any]] = {
    "cache": lambda path: ROWS.cache(path),
    "load": lambda path: Dataset.load(path),
    "save": lambda path: ROWS.save(path),
    "snapshot": lambda path: ROWS.snapshot(path),
}
FILES: dict[str, Callable[[Any], Any]] = {
    "write_tfrecord": lambda path: ROWS.write_tfrecord(path),
    "to_parquet": lambda path: ROWS.to_parquet(path),
    "to_arrow": lambda path: ROWS.to_arrow(path),
    "to_webdataset": lambda path: ROWS.to_webdataset(path),
}


@pytest.mark.parametrize("name", ["a\0b", "\ud800"], ids=["nul", "surrogate"])
@pytest.mark.parametrize("call", [*FOLDERS, *FILES])
def test_a_name_that_nothing_can_have(tmp_path: Path, call: str, name: str) -> None:
    if call in FOLDERS:
        with pytest.raises(fb.PlanError, match=rf"{call}\(.*no folder can have that name"):
            FOLDERS[call](f"{tmp_path}/{name}")
    else:
        with pytest.raises(fb.FileError):
            FILES[call](f"{tmp_path}/{name}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("call", FOLDERS)
def test_a_name_that_is_too_long(tmp_path: Path, call: str) -> None:
    with pytest.raises(fb.PlanError, match="too long"):
        FOLDERS[call](tmp_path / ("a" * 300))


@pytest.mark.parametrize("call", FOLDERS)
def test_a_relative_path_in_a_folder_that_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(fb.PlanError, match=rf"{call}\('rel'\): the current folder has been removed"):
        FOLDERS[call]("rel")


def test_a_relative_path_means_the_same_wherever_the_program_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "then").mkdir()
    monkeypatch.chdir(tmp_path / "first")
    ROWS.save("saved")
    kept = [ROWS.cache("cached"), ROWS.snapshot("snapshots"), Dataset.load("saved")]
    with iter(kept[0].with_options(fb.Options(block_bytes=1))) as it:
        next(it)
        monkeypatch.chdir(tmp_path / "then")
        assert list(it) == [{"x": 1}, {"x": 2}]
    for dataset in kept:
        assert list(dataset) == [{"x": 0}, {"x": 1}, {"x": 2}]
    assert sorted(os.listdir(tmp_path / "first")) == ["cached", "saved", "snapshots"]
    assert os.listdir(tmp_path / "then") == []


@pytest.mark.parametrize("call", ["save", "snapshot", "to_parquet", "to_arrow", "write_tfrecord", "to_webdataset"])
def test_a_key_that_is_no_text(tmp_path: Path, call: str) -> None:
    with pytest.raises((fb.PlanError, fb.DataError), match=r"'\\ud800'"):
        list(getattr(Dataset.range(3).map(lambda x: {"\ud800": x}), call)(tmp_path / "out"))
    assert not [name for _, _, names in os.walk(tmp_path) for name in names]


def test_a_length_that_len_cannot_say() -> None:
    huge = Dataset.range(3).repeat(2**70)
    assert huge.cardinality() == 3 * 2**70
    with pytest.raises(fb.LengthError, match=f"{3 * 2**70} elements"):
        len(huge)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_reduce_with_an_exception_that_cannot_be_printed() -> None:
    def fails(total: int, x: int) -> int:
        raise Unspeakable

    with pytest.raises(fb.FunctionError, match=r"element 0: .*fails raised Unspeakable") as caught:
        Dataset.range(3).reduce(0, fails)
    assert isinstance(caught.value.__cause__, Unspeakable)


def test_what_is_above_a_link_is_where_it_points_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "there" / "below")
    fb.Dataset.range(3).save(str(tmp_path / "link" / ".." / "saved"))
    monkeypatch.chdir(tmp_path)
    for above in ("link/..", str(tmp_path / "link" / "..")):
        assert len(list(fb.Dataset.load(f"{above}/saved").cache(f"{above}/cached").snapshot(f"{above}/snapshot"))) == 3
    assert {"saved", "cached", "snapshot"} <= {path.name for path in (tmp_path / "there").iterdir()}
