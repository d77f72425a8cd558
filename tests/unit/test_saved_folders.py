"""Saving puts a folder in place or leaves everything as it was; loading says what is wrong with a folder."""

import json
import os
import subprocess
import sys
from collections import namedtuple
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.storage import folder as folder_module
from forebay.storage.folder import NewFolder
from forebay.storage.manifest import MANIFEST
from unit.support import assert_same, plain, python, resumed, saved

Dataset = fb.Dataset


def fails(x: Any) -> Any:
    if x == 700:
        raise ArithmeticError("no")
    return x


def entries(path: Path) -> list[str]:
    return sorted(os.listdir(path))


def test_saving_again_replaces(tmp_path: Path) -> None:
    Dataset.range(10).save(tmp_path / "d")
    Dataset.range(5).save(tmp_path / "d")
    assert plain(list(Dataset.load(tmp_path / "d"))) == [0, 1, 2, 3, 4]
    assert entries(tmp_path) == ["d"]


def test_overwrite_false_refuses(tmp_path: Path) -> None:
    Dataset.range(10).save(tmp_path / "d", overwrite=False)
    with pytest.raises(fb.PlanError, match="overwrite=False"):
        Dataset.range(5).save(tmp_path / "d", overwrite=False)
    assert len(Dataset.load(tmp_path / "d")) == 10


@pytest.mark.parametrize("exchange", ["in one step", "in two"])
def test_a_failed_save_leaves_the_old_one(exchange: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if exchange == "in two":
        monkeypatch.setattr(folder_module, "_renameat2", lambda: None)
    Dataset.range(10).save(tmp_path / "d")
    with pytest.raises(fb.FunctionError, match="element 700"):
        Dataset.range(1000).map(fails).save(tmp_path / "d")
    assert len(Dataset.load(tmp_path / "d")) == 10
    Dataset.range(7).save(tmp_path / "d")
    assert len(Dataset.load(tmp_path / "d")) == 7
    assert entries(tmp_path) == ["d"]


def test_a_crash_between_two_renames_is_mended_by_the_next_save(tmp_path: Path) -> None:
    Dataset.range(10).save(tmp_path / "d")
    left = tmp_path / ".d.forebay-0123456789ab"
    left.mkdir()
    (tmp_path / "d").rename(left / "old")
    with pytest.raises(fb.FunctionError):
        Dataset.range(1000).map(fails).save(tmp_path / "d")
    assert len(Dataset.load(tmp_path / "d")) == 10
    assert entries(tmp_path) == ["d"]


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(fb.PlanError, match="other files"):
        Dataset.range(5).save(tmp_path)
    assert entries(tmp_path) == ["notes.txt"]
    with pytest.raises(fb.PlanError, match="something else than a folder"):
        Dataset.range(5).save(tmp_path / "notes.txt")
    with pytest.raises(fb.DataError, match="cannot write there"):
        Dataset.range(5).save(tmp_path / "notes.txt" / "d")


def test_an_empty_folder_will_do_and_parents_are_made(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    Dataset.range(5).save(tmp_path / "d")
    Dataset.range(5).save(str(tmp_path / "a" / "b" / "c"))
    assert len(Dataset.load(tmp_path / "a" / "b" / "c")) == 5


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "d").symlink_to(tmp_path / "elsewhere" / "d")
    for count in (5, 7):
        Dataset.range(count).save(tmp_path / "d")
        assert len(list(Dataset.load(tmp_path / "d"))) == count
    assert (tmp_path / "d").is_symlink()
    assert entries(tmp_path / "elsewhere") == ["d"]


def test_the_folder_of_one_who_still_writes_is_not_swept(tmp_path: Path) -> None:
    other = NewFolder(str(tmp_path / "d"), "save", True)
    Dataset.range(5).save(tmp_path / "d")
    assert os.path.isdir(other.data)
    other.close()
    assert entries(tmp_path) == ["d"]


def test_folders_of_others_with_such_names_are_not_swept(tmp_path: Path) -> None:
    kept = [tmp_path / ".d.forebay-my-notes" / "mine", tmp_path / ".d.forebay-0123456789ab" / "mine"]
    for path in kept:
        path.parent.mkdir()
        path.write_text("mine")
    left = tmp_path / ".d.forebay-ba9876543210"
    (left / "data").mkdir(parents=True)
    Dataset.range(3).save(tmp_path / "d")
    assert [path.read_text() for path in kept] == ["mine", "mine"]
    assert not left.exists()


def test_saving_a_dataset_over_the_one_it_reads(tmp_path: Path) -> None:
    Dataset.range(100).save(tmp_path / "d")
    loaded = Dataset.load(tmp_path / "d")
    loaded.map(lambda x: x * 2).save(tmp_path / "d")
    assert plain(list(Dataset.load(tmp_path / "d"))) == [2 * x for x in range(100)]


def test_a_replaced_dataset_is_noticed_by_those_who_loaded_it(tmp_path: Path) -> None:
    Dataset.range(100).save(tmp_path / "d")
    loaded = Dataset.load(tmp_path / "d")
    Dataset.range(100, 200).save(tmp_path / "d")
    with pytest.raises(fb.DataError, match=r"damaged|replaced"):
        list(loaded)


def test_rows_of_a_dataset_and_of_what_replaced_it_are_not_mixed(tmp_path: Path) -> None:
    # More files than are kept open, which are opened again by their names.
    def save(first: int) -> None:
        Dataset.range(first, first + 1000).save(tmp_path / "d", shard_func=lambda x: x % 100)

    save(0)
    loaded = Dataset.load(tmp_path / "d").shuffle(seed=1)
    assert sorted(map(int, loaded)) == list(range(1000))
    save(5000)
    with pytest.raises(fb.DataError, match="was replaced since it was first read: load the dataset again"):
        list(loaded)
    assert sorted(map(int, Dataset.load(tmp_path / "d"))) == list(range(5000, 6000))


class Opaque:
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Opaque(), "is an Opaque, which cannot be saved"),
        (np.array([Opaque()], object), "an array of objects"),
        (np.array([None, "a"], object), "an array of objects"),
        (np.longdouble(1), "Arrow has no type for"),
        ("\ud800", "lone surrogates"),
        (np.array([(1, 2.0)], [("a", int), ("b", float)]), "Arrow has no type for"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_saved_is_refused(value: Any, text: str, tmp_path: Path) -> None:
    with pytest.raises(fb.DataError, match=text):
        Dataset.range(3).map(lambda x: {"x": x, "y": value}).save(tmp_path / "d")
    assert entries(tmp_path) == []


def test_axes_that_arrow_has_no_room_for_are_refused(tmp_path: Path) -> None:
    def rows(*shapes: tuple[int, ...]) -> Dataset[Any]:
        return Dataset.from_generator(lambda: (np.zeros(shape, np.uint8) for shape in shapes))

    said = r"element 1: value has an axis of 4,294,967,301, and Arrow has room for 2,147,483,647: reshape it in a map"
    for shapes in ([(0, 3), (0, 2**32 + 5)], [(0,), (0, 2**32 + 5)]):
        with pytest.raises(fb.DataError, match=rf"save\(\), {said}"):
            rows(*shapes).save(tmp_path / "d")
        with pytest.raises(fb.DataError, match=rf"snapshot\(\), {said}"):
            list(rows(*shapes).snapshot(tmp_path / "s"))
    rows((0, 2**31 - 1), (2, 0)).save(tmp_path / "d")
    assert [row.shape for row in Dataset.load(tmp_path / "d")] == [(0, 2**31 - 1), (2, 0)]
    rows((), (0, 2)).save(tmp_path / "d")
    assert [np.shape(row) for row in Dataset.load(tmp_path / "d")] == [(), (0, 2)]
    cached = rows((0, 2**32 + 5), (0, 2**31)).cache(tmp_path / "c")
    assert [[row.shape for row in cached] for _ in range(2)] == [[(0, 2**32 + 5), (0, 2**31)]] * 2


def test_arguments_are_checked(tmp_path: Path) -> None:
    ds = Dataset.range(5)
    path = tmp_path / "d"
    for how, text in [
        ({"compression": "GZIP"}, "'zstd' or 'lz4'"),
        ({"shard_func": 3}, "must be a function"),
        ({"checkpoint_args": {}}, "not supported"),
        ({"overwrite": "no"}, "True or False"),
    ]:
        with pytest.raises(fb.PlanError, match=text):
            ds.save(path, **how)  # type: ignore[arg-type]
    with pytest.raises(fb.PlanError, match="infinite"):
        ds.repeat().save(path)
    with pytest.raises(fb.PlanError, match="name of a folder"):
        ds.save(7)  # type: ignore[arg-type]
    with pytest.raises(fb.PlanError, match="hold no values"):
        ds.map(lambda x: ()).save(path)
    assert entries(tmp_path) == []


def test_a_shard_func_returns_whole_numbers(tmp_path: Path) -> None:
    for bad in (-1, 0.5, "a", None, [1, 2]):
        with pytest.raises(fb.DataError, match=r"element 3: .* must return a whole number"):
            Dataset.range(5).save(tmp_path / "d", shard_func=lambda x, bad=bad: bad if x == 3 else 0)
    with pytest.raises(fb.FunctionError, match=r"save at .*element 0: .*ZeroDivisionError"):
        Dataset.range(5).save(tmp_path / "d", shard_func=lambda x: 1 // 0)
    assert entries(tmp_path) == []


def test_more_shards_than_open_files(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).integers(0, 300, 3000)
    ds = Dataset.from_tensor_slices((np.arange(3000), numbers)).with_options(fb.Options(block_bytes=1000))
    ds.save(tmp_path / "d", shard_func=lambda i, number: number)
    loaded = Dataset.load(tmp_path / "d", reader_func=lambda shards: shards.flat_map(lambda shard: shard))
    order = np.argsort(numbers, kind="stable")
    assert [int(i) for i, _ in loaded] == order.tolist()
    whole = Dataset.load(tmp_path / "d")
    turns = Dataset.load(tmp_path / "d", reader_func=lambda shards: shards.interleave(lambda shard: shard))
    assert_same(list(whole), list(turns))
    assert_same(list(whole.skip(1234).take(50)), list(turns)[1234:1284])


@pytest.mark.parametrize(
    ("reader", "what"),
    [
        (lambda shards: shards, "the shards themselves"),
        (lambda shards: shards.shuffle(3).take(1), "the shards themselves"),
        (lambda shards: shards.batch(2), "TensorSpec"),
        (lambda shards: shards.enumerate(), r"\(TensorSpec"),
    ],
)
@pytest.mark.parametrize("elements", [[1, 2, 3], ["a", "b", "c"]])
def test_a_reader_func_has_to_take_elements_out_of_the_shards(
    tmp_path: Path, elements: list[Any], reader: Any, what: str
) -> None:
    Dataset.from_tensor_slices(elements).save(tmp_path / "d")
    with pytest.raises(
        fb.PlanError, match=rf"its elements are {what}.*: take them out with .interleave\(lambda shard: shard\)"
    ):
        Dataset.load(tmp_path / "d", reader_func=reader)
    with pytest.raises(fb.PlanError, match="one for each shard, and must return one of the elements"):
        list(Dataset.from_tensor_slices(elements).snapshot(tmp_path / "s", reader_func=reader).repeat(2))


def test_nothing_at_the_path(tmp_path: Path) -> None:
    with pytest.raises(fb.PlanError, match="no saved dataset"):
        Dataset.load(tmp_path / "nothing")
    with pytest.raises(fb.PlanError, match="no saved dataset"):
        Dataset.load(tmp_path)


def test_a_newer_version_is_named(tmp_path: Path) -> None:
    Dataset.range(5).save(tmp_path / "d")
    manifest = tmp_path / "d" / MANIFEST
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "forebay_dataset": 9}))
    with pytest.raises(fb.PlanError, match="version 9, written by a newer Forebay"):
        Dataset.load(tmp_path / "d")


def test_an_older_version_is_named(tmp_path: Path) -> None:
    Dataset.range(5).save(tmp_path / "d")
    manifest = tmp_path / "d" / MANIFEST
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "forebay_dataset": 1}))
    with pytest.raises(fb.PlanError, match=r"version 1, written by an older Forebay .* save the dataset again"):
        Dataset.load(tmp_path / "d")


def test_an_empty_dataset_of_unknown_elements(tmp_path: Path) -> None:
    Dataset.range(0).map(lambda x: x).save(tmp_path / "d")
    loaded = Dataset.load(tmp_path / "d")
    assert list(loaded) == []
    assert len(loaded) == 0
    with pytest.raises(fb.DataError, match="element_spec cannot be told"):
        _ = loaded.element_spec


def test_element_spec_is_checked_and_gives_the_containers(tmp_path: Path) -> None:
    Dataset.range(5).map(lambda x: {"a": x, "b": float(x)}).save(tmp_path / "d")
    kind = namedtuple("kind", "a b")
    spec = kind(fb.TensorSpec((), np.int64), fb.TensorSpec((), np.float64))
    assert next(iter(Dataset.load(tmp_path / "d", spec))) == kind(0, 0.0)
    swapped = {"b": spec.b, "a": spec.a}
    assert next(iter(Dataset.load(tmp_path / "d", swapped))) == {"a": 0, "b": 0.0}
    for bad in ({"a": spec.a}, {"a": spec.a, "b": spec.a}, {"a": spec.a, "b": fb.TensorSpec((3,), np.float64)}, (1, 2)):
        with pytest.raises(fb.PlanError, match="element_spec"):
            Dataset.load(tmp_path / "d", bad)


def test_classes_are_found_by_their_path(tmp_path: Path) -> None:
    local = make_dataclass("local", ["x"])
    local.__qualname__ = "f.<locals>.local"
    with pytest.raises(fb.PlanError, match="inside a function"):
        Dataset.range(3).map(lambda x: local(x)).save(tmp_path / "d")
    script = (
        "import sys, forebay as fb\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Pair:\n    x: int\n    y: int\n"
        "fb.Dataset.range(3).map(lambda x: Pair(x, -x)).save(sys.argv[1])\n"
        "assert list(fb.Dataset.load(sys.argv[1]))[1] == Pair(1, -1)"
    )
    python(script, 300, str(tmp_path / "d"))
    with pytest.raises(fb.PlanError, match="Pair of __main__, which cannot be found"):
        Dataset.load(tmp_path / "d")
    pair = make_dataclass("pair", ["x", "y"])
    spec = pair(fb.TensorSpec((), np.int64), fb.TensorSpec((), np.int64))
    assert list(Dataset.load(tmp_path / "d", spec))[2] == pair(2, -2)


def test_a_state_fits_the_same_data_only(tmp_path: Path) -> None:
    Dataset.range(100).map(lambda x: x * 2).save(tmp_path / "a")
    state = saved(Dataset.load(tmp_path / "a").shuffle(seed=1).batch(3), 7)
    Dataset.range(100).map(lambda x: x * 2).save(tmp_path / "moved")
    again = resumed(Dataset.load(tmp_path / "moved").shuffle(seed=1).batch(3), state)
    assert_same(list(again), list(Dataset.load(tmp_path / "a").shuffle(seed=1).batch(3))[7:])
    Dataset.range(100).map(lambda x: x * 3).save(tmp_path / "b")
    with pytest.raises(fb.CursorError, match="has changed"):
        resumed(Dataset.load(tmp_path / "b").shuffle(seed=1).batch(3), state)


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["pyarrow"] = None
import forebay as fb
try:
    fb.Dataset.range(3).save(sys.argv[1])
except fb.PlanError as error:
    print(error)
"""
    assert "pip install 'forebay[arrow]'" in python(code, 300, str(tmp_path / "d"))
    assert entries(tmp_path) == []


def test_progress_is_shown_when_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Dataset.range(5).save(tmp_path / "d")
    assert capfd.readouterr().err == ""
    Dataset.range(5).save(tmp_path / "d", progress=True)
    assert "5/5" in capfd.readouterr().err


def test_two_processes_saving_at_once(tmp_path: Path) -> None:
    code = """
import sys, forebay as fb
first = int(sys.argv[2])
for _ in range(15):
    fb.Dataset.range(first, first + 1000).save(sys.argv[1])
    try:
        found = [int(x) for x in fb.Dataset.load(sys.argv[1])]
    except fb.DataError:
        continue  # The other one has replaced it since load().
    assert found in (list(range(1000)), list(range(5000, 6000)))
"""
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "d"), start], stderr=subprocess.PIPE, text=True)
        for start in ("0", "5000")
    ]
    errors = [process.communicate(timeout=300)[1] for process in both]
    assert errors == ["", ""]
    values = plain(list(Dataset.load(tmp_path / "d")))
    assert values in (list(range(1000)), list(range(5000, 6000)))
    assert entries(tmp_path) == ["d"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    with pytest.raises(fb.PlanError, match="this is a file, not a folder that save"):
        fb.Dataset.load(tmp_path / "rows.parquet")
