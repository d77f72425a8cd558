"""A snapshot that is damaged is written again: by the next iteration, or by the one that is reading it."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.storage import writer
from forebay.storage.manifest import MANIFEST
from unit.support import assert_same, plain, resumed, saved, until_error

Dataset = fb.Dataset
# Small blocks, so that there are rows before the damage, and batches of as many rows.
SMALL = fb.Options(block_bytes=400)
ROWS = 400


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BATCH_BYTES", 1000)


def build(path: Path, **how: Any) -> fb.Dataset[Any]:
    return Dataset.range(ROWS).map(lambda x: {"x": x * 3}).snapshot(path, **how).with_options(SMALL)


def only_folder(path: Path) -> Path:
    (found,) = path.iterdir()
    return found


def flip(file: Path, part: float) -> None:
    data = bytearray(file.read_bytes())
    data[int(len(data) * part)] ^= 1
    file.write_bytes(data)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


OPENING: dict[str, Callable[[Path], None]] = {
    "the manifest is gone": lambda folder: (folder / MANIFEST).unlink(),
    "the manifest is damaged": lambda folder: flip(folder / MANIFEST, 0.5),
    "the manifest is empty": lambda folder: (folder / MANIFEST).write_bytes(b""),
    "a file is gone": lambda folder: next(folder.glob("*.arrow")).unlink(),
    "a file is cut short": lambda folder: cut(next(folder.glob("*.arrow"))),
}
READING: dict[str, Callable[[Path], None]] = {
    "the first byte": lambda folder: flip(next(folder.glob("*.arrow")), 0.0),
    "the middle": lambda folder: flip(next(folder.glob("*.arrow")), 0.5),
    "near the end": lambda folder: flip(next(folder.glob("*.arrow")), 0.8),
}


@pytest.mark.parametrize("kind", [*OPENING, *READING])
def test_it_is_written_again(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = list(build(tmp_path / "s"))
    folder = only_folder(tmp_path / "s")
    {**OPENING, **READING}[kind](folder)
    with caplog.at_level(logging.WARNING, "forebay"):
        assert_same(list(build(tmp_path / "s")), expected)
    assert [record.name for record in caplog.records] == ["forebay"]
    assert "The snapshot is written again" in caplog.text
    assert str(folder) in caplog.text
    caplog.clear()
    assert_same(list(build(tmp_path / "s")), expected)
    assert caplog.text == ""
    assert only_folder(tmp_path / "s") == folder
    assert_same(list(Dataset.load(folder)), expected)


@pytest.mark.parametrize("kind", [*OPENING, *READING])
@pytest.mark.parametrize("rows", [1, 10, ROWS - 10])
def test_a_state_goes_on_where_it_was(kind: str, rows: int, tmp_path: Path) -> None:
    how = {"shard_func": lambda e: e["x"] % 2, "reader_func": lambda shards: shards.flat_map(lambda shard: shard)}
    list(build(tmp_path / "s", **how))
    expected = list(build(tmp_path / "s", **how))
    state = saved(build(tmp_path / "s", **how), rows)
    {**OPENING, **READING}[kind](only_folder(tmp_path / "s"))
    assert_same(list(resumed(build(tmp_path / "s", **how), state)), expected[rows:])
    assert_same(list(build(tmp_path / "s", **how)), expected)


def test_two_that_read_it_go_on(tmp_path: Path) -> None:
    expected = list(build(tmp_path / "s"))
    one, other = iter(build(tmp_path / "s")), iter(build(tmp_path / "s"))
    for it in (one, other):
        assert_same(next(it), expected[0])
    flip(next(only_folder(tmp_path / "s").glob("*.arrow")), 0.8)
    assert_same(list(one), expected[1:])
    # What it has open is what was damaged; what stands there now is whole.
    assert_same(list(other), expected[1:])


def test_a_snapshot_that_is_removed_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    expected = list(build(tmp_path / "s", shard_func=lambda e: e["x"] * 4 // (3 * ROWS)))
    reader = {"reader_func": lambda shards: shards.flat_map(lambda shard: shard)}
    it = iter(build(tmp_path / "s", shard_func=lambda e: e["x"] * 4 // (3 * ROWS), **reader))
    assert_same(next(it), expected[0])
    for folder in list((tmp_path / "s").iterdir()):
        shutil.rmtree(folder)
    with pytest.raises(fb.DataError, match="is missing"):
        list(it)


def test_damage_that_a_function_of_the_reader_comes_upon(tmp_path: Path) -> None:
    how = {"reader_func": lambda shards: shards.flat_map(_backwards)}
    list(build(tmp_path / "s", **how))
    expected = list(build(tmp_path / "s", **how))
    flip(next(only_folder(tmp_path / "s").glob("*.arrow")), 0.5)
    assert_same(list(build(tmp_path / "s", **how)), expected)


def _backwards(shard: Any) -> Any:
    return Dataset.from_tensor_slices({"x": np.array([element["x"] for element in shard])[::-1]})


def test_a_reader_that_fails_is_no_damage(tmp_path: Path) -> None:
    def failing(e: Any) -> Any:
        return {"x": 1 // (e["x"] - 30)}

    how = {"reader_func": lambda shards: shards.flat_map(lambda shard: shard).map(failing)}
    list(build(tmp_path / "s", **how))
    manifest = only_folder(tmp_path / "s") / MANIFEST
    before = manifest.stat().st_ino
    found, error = until_error(build(tmp_path / "s", **how))
    assert len(found) == 10
    assert isinstance(error, fb.FunctionError)
    assert manifest.stat().st_ino == before


class Shifted:
    """A function that returns other rows without being another function for it."""

    shift = 0

    def __reduce__(self) -> Any:
        return Shifted, ()

    def __call__(self, x: Any) -> Any:
        return x + self.shift


def test_rows_that_cannot_be_had_again_are_an_error_once(tmp_path: Path) -> None:
    function = Shifted()

    def built() -> Any:
        return Dataset.range(ROWS).map(function).snapshot(tmp_path / "s").with_options(SMALL)

    list(built())
    flip(next(only_folder(tmp_path / "s").glob("*.arrow")), 0.8)
    function.shift = 1
    found, error = until_error(built())
    assert plain(found) == list(range(len(found)))
    assert 0 < len(found) < ROWS
    assert isinstance(error, fb.DataError)
    assert "written again, with other rows" in str(error)
    assert plain(list(built())) == list(range(1, ROWS + 1))


def test_rows_in_any_order_are_an_error_once(tmp_path: Path) -> None:
    def built() -> Any:
        steps = Dataset.range(ROWS).map(lambda x: x + 1, num_parallel_calls=2, deterministic=False)
        return steps.snapshot(tmp_path / "s").with_options(SMALL)

    list(built())
    flip(next(only_folder(tmp_path / "s").glob("*.arrow")), 0.8)
    with pytest.raises(fb.DataError, match="the next one writes the snapshot again"):
        list(built())
    assert sorted(plain(list(built()))) == list(range(1, ROWS + 1))
    assert sorted(plain(list(built()))) == list(range(1, ROWS + 1))


@pytest.mark.parametrize("kind", [*OPENING, *READING])
def test_files_of_others_are_never_removed(kind: str, tmp_path: Path) -> None:
    list(build(tmp_path / "s"))
    folder = only_folder(tmp_path / "s")
    (folder / "notes.txt").write_text("mine")
    {**OPENING, **READING}[kind](folder)
    with pytest.raises((fb.DataError, fb.PlanError), match="ther files"):
        list(build(tmp_path / "s"))
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_folder_that_is_no_snapshot_stays(tmp_path: Path) -> None:
    list(build(tmp_path / "s"))
    folder = only_folder(tmp_path / "s")
    for file in folder.iterdir():
        file.unlink()
    (folder / "table.arrow").write_bytes(b"mine")
    with pytest.raises(fb.PlanError, match="the folder holds other files, which would be removed"):
        list(build(tmp_path / "s"))
    assert (folder / "table.arrow").read_bytes() == b"mine"
