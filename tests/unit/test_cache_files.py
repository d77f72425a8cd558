"""A cache in a folder: what the next run finds, and what it does not."""

import operator
import os
import re
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, Options
from unit.support import plain, python, resumed, saved

Point = namedtuple("Point", "x y")


def double(x: Any) -> Any:
    # By name in the environment, which no digest looks at: what a function refers to is part of the key.
    os.environ["FOREBAY_TEST_CALLS"] = str(int(os.environ.get("FOREBAY_TEST_CALLS", "0")) + 1)
    return x * 2


@pytest.fixture(autouse=True)
def _no_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_TEST_CALLS", "0")


def calls() -> int:
    return int(os.environ["FOREBAY_TEST_CALLS"])


def build(folder: Path, rows: int = 2000, **options: Any) -> Dataset[Any]:
    return Dataset.range(rows).map(double).cache(folder, **options)


EXPECTED = list(range(0, 4000, 2))


def files(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.glob(f"*.{ending}"))


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_another_dataset_finds_what_one_has_kept(tmp_path: Path, compression: str | None) -> None:
    for _ in range(3):
        assert plain(list(build(tmp_path / "a" / "b", compression=compression))) == EXPECTED
    assert calls() == 2000
    # What is there can be read whatever is asked for now.
    assert plain(list(build(tmp_path / "a" / "b").with_options(Options(optimize=False)))) == EXPECTED
    assert calls() == 2000
    assert [path.suffix for path in sorted((tmp_path / "a" / "b").iterdir())] == [".data", ".index", ".plan", ""]


def test_another_process_finds_it(tmp_path: Path) -> None:
    code = """
import sys
import forebay as fb
calls = []
def function(x):
    print("call", end=" ")
    return x + 1
print(sum(fb.Dataset.range(5).map(function).cache(sys.argv[1])))
"""
    assert python(code, 300, str(tmp_path)) == "call call call call call 15\n"
    assert python(code, 300, str(tmp_path)) == "15\n"
    assert python(code.replace("x + 1", "x + 2"), 300, str(tmp_path)) == "call call call call call 20\n"


def test_files_of_an_earlier_format_are_computed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.ops.cache._FORMAT", "2")
    assert plain(list(build(tmp_path))) == EXPECTED
    monkeypatch.undo()
    monkeypatch.setenv("FOREBAY_TEST_CALLS", "0")
    old = files(tmp_path, "data")
    assert plain(list(build(tmp_path))) == EXPECTED
    assert calls() == 2000
    assert len(files(tmp_path, "data")) == 1
    assert files(tmp_path, "data") != old


def test_records_of_an_earlier_format_are_none(tmp_path: Path) -> None:
    assert plain(list(build(tmp_path))) == EXPECTED
    (index,), (data,) = files(tmp_path, "index"), files(tmp_path, "data")
    index.unlink()
    content = data.read_bytes()
    assert content.startswith(b"FBCACHE3")
    data.write_bytes(content.replace(b"FBCACHE3", b"FBCACHE2"))
    assert plain(list(build(tmp_path))) == EXPECTED
    assert calls() == 4000


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("dtype", ["<i2", ">i4", "<f2", "<M8[ns]", "<c16", "|b1", "i4,f8"])
def test_dtypes_come_back_as_they_were(tmp_path: Path, dtype: str, compression: str | None) -> None:
    rows = np.arange(24).astype("<i8").astype(dtype)
    expected = [(x.dtype, x.tolist()) for x in Dataset.from_tensor_slices(rows)]
    for _ in range(2):
        found = Dataset.from_tensor_slices(rows).cache(tmp_path, compression)
        assert [(x.dtype, x.tolist()) for x in found] == expected


def test_a_part_is_kept_and_continued(tmp_path: Path) -> None:
    with iter(build(tmp_path, 100_000)) as it:
        for _ in range(1000):
            next(it)
    before = calls()
    assert 1000 <= before < 100_000
    with iter(build(tmp_path, 100_000)) as it:
        assert plain([next(it) for _ in range(1000)]) == list(range(0, 2000, 2))
    assert calls() == before
    assert plain(list(build(tmp_path, 100_000))) == list(range(0, 200_000, 2))
    assert calls() == 100_000


def test_a_part_without_an_index_is_found(tmp_path: Path) -> None:
    """As after a process that was killed."""
    with iter(build(tmp_path, 100_000)) as it:
        for _ in range(1000):
            next(it)
    before = calls()
    files(tmp_path, "index")[0].unlink()
    assert plain(list(build(tmp_path, 100_000))) == list(range(0, 200_000, 2))
    assert calls() == 100_000
    assert before >= 1000


def changed_by(factor: Any) -> Callable[[Any], Any]:
    return lambda x: x * factor


class Scale:
    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, x: Any) -> Any:
        return x * self.by


_BIG = np.arange(200_000)
_CHANGED = _BIG.copy()
_CHANGED[100_003] = -1

CHANGES: dict[str, tuple[Callable[[], Dataset[Any]], Callable[[], Dataset[Any]]]] = {
    "source": (lambda: Dataset.range(9), lambda: Dataset.range(1, 10)),
    "one number in a large array": (
        lambda: Dataset.from_tensor_slices(_BIG),
        lambda: Dataset.from_tensor_slices(_CHANGED),
    ),
    "code": (lambda: Dataset.range(9).map(lambda x: x + 1), lambda: Dataset.range(9).map(lambda x: x - 1)),
    "captured number": (
        lambda: Dataset.range(9).map(changed_by(2)),
        lambda: Dataset.range(9).map(changed_by(3)),
    ),
    "captured array": (
        lambda: Dataset.range(9).map(changed_by(np.array(2))),
        lambda: Dataset.range(9).map(changed_by(np.array(3))),
    ),
    "object's attribute": (lambda: Dataset.range(9).map(Scale(2)), lambda: Dataset.range(9).map(Scale(3))),
    "captured list": (
        lambda: Dataset.range(9).map(lambda x, table=[1, 2]: x + table[0]),
        lambda: Dataset.range(9).map(lambda x, table=[3, 2]: x + table[0]),
    ),
    "compiled pattern": (
        lambda: Dataset.range(9).map(lambda x, p=re.compile("1"): p.sub("a", str(x))),
        lambda: Dataset.range(9).map(lambda x, p=re.compile("2"): p.sub("a", str(x))),
    ),
    "getter": (
        lambda: Dataset.range(9).map(lambda x: {"a": x, "b": -x}).map(operator.itemgetter("a")),
        lambda: Dataset.range(9).map(lambda x: {"a": x, "b": -x}).map(operator.itemgetter("b")),
    ),
    "argument": (lambda: Dataset.range(9).batch(2), lambda: Dataset.range(9).batch(3)),
    "order of steps": (lambda: Dataset.range(9).skip(2).take(3), lambda: Dataset.range(9).take(3).skip(2)),
    "seed": (
        lambda: Dataset.range(90).shuffle(9, 1, False),
        lambda: Dataset.range(90).shuffle(9, 2, False),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_input_is_not_served_what_was_kept(tmp_path: Path, what: str) -> None:
    one, other = CHANGES[what]
    for make in (one, other, other, one):
        expected = [np.asarray(element).tolist() for element in make()]
        assert [np.asarray(element).tolist() for element in make().cache(tmp_path)] == expected
        # What belongs to another plan does not stay for ever.
        assert len(files(tmp_path, "data")) == 1


@pytest.mark.parametrize("keep", ["cache", "snapshot"])
def test_a_changed_module_is_not_served_what_was_kept(tmp_path: Path, keep: str) -> None:
    code = f"""
import sys
sys.path.insert(0, sys.argv[1])
import helpers
from forebay import Dataset
print([int(x) for x in Dataset.range(2).map(lambda x: helpers.scaled(helpers.Adds().to(x))).{keep}(sys.argv[1] + "/a")])
"""
    for by, more in ((2, 0), (3, 0), (3, 1)):
        (tmp_path / "helpers.py").write_text(
            f"def scaled(x):\n    return x * {by}\nclass Adds:\n    def to(self, x):\n        return x + {more}\n"
        )
        # Python itself goes by the second in which a module was changed.
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        assert python(code, 300, str(tmp_path)) == f"[{more * by}, {(1 + more) * by}]\n"


@pytest.mark.parametrize("keep", ["cache", "snapshot"])
@pytest.mark.parametrize("how", ["file", "listed", "mapped"])
def test_a_changed_file_is_not_served_what_was_kept(tmp_path: Path, keep: str, how: str) -> None:
    path = tmp_path / "a"

    def rows() -> Dataset[Any]:
        if how == "listed":
            return Dataset.list_files(str(path), shuffle=False).interleave(fb.TextLineDataset)
        if how == "file":
            return fb.TextLineDataset(str(path))
        return Dataset.from_tensor_slices(np.memmap(path, np.uint8, "r"))

    # In a place where no sample is taken of it.
    contents = bytearray(b"abcdefg\n" * 100_000)
    for time, change in enumerate((b"x", b"y", b"y")):
        contents[123_457:123_458] = change
        path.write_bytes(contents)
        os.utime(path, ns=(time, time))
        expected = [str(row) for row in rows()]
        assert [str(row) for row in getattr(rows(), keep)(tmp_path / "kept")] == expected


def test_a_state_is_answered_from_the_files_or_without_them(tmp_path: Path) -> None:
    dataset = build(tmp_path)
    list(dataset)
    for k in (0, 700, 1999, 2000):
        state = saved(dataset, k)
        assert plain(list(resumed(build(tmp_path), state))) == EXPECTED[k:]
        assert calls() == 2000
    assert plain(list(resumed(build(tmp_path / "empty"), state))) == []
    state = saved(dataset, 1500)
    assert plain(list(resumed(build(tmp_path / "other"), state))) == EXPECTED[1500:]
    assert calls() == 2500


def test_structures_come_back_as_they_were(tmp_path: Path) -> None:
    def make() -> Dataset[Any]:
        return Dataset.range(5).map(lambda i: {"p": Point(i, str(i)), "r": np.arange(i), "n": None})

    for _ in range(2):
        for a, b in zip(make().cache(tmp_path), make(), strict=True):
            assert a["p"] == b["p"]
            assert type(a["p"]) is Point
            np.testing.assert_array_equal(a["r"], b["r"])
            assert a["n"] is None


def test_classes_that_no_other_process_finds_are_refused(tmp_path: Path) -> None:
    Local = namedtuple("Local", "x")
    with pytest.raises(fb.DataError, match="top of a module"):
        list(Dataset.range(3).map(lambda i: Local(i)).cache(tmp_path))


def test_clear_deletes_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    dataset = build(folder).batch(10)
    dataset.clear()
    assert not folder.exists()
    list(dataset)
    dataset.clear()
    assert [path.name for path in folder.iterdir()] == ["lock"]
    list(dataset)
    assert calls() == 4000


@pytest.mark.parametrize("by", ["clear", "rmtree"])
def test_rows_that_others_delete_are_not_taken_for_none(tmp_path: Path, by: str) -> None:
    dataset, folder = build(tmp_path / "a"), tmp_path / "a"
    with iter(dataset) as it:
        # All rows, but not yet that these are all.
        assert plain([next(it) for _ in range(2000)]) == EXPECTED
    with iter(dataset) as it:
        assert plain([next(it) for _ in range(2000)]) == EXPECTED
        if by == "clear":
            build(folder).clear()
        else:
            shutil.rmtree(folder)
        assert list(it) == []
    assert plain(list(build(folder))) == EXPECTED
    assert plain(list(dataset)) == EXPECTED


@pytest.mark.parametrize("by", ["another process", "rmtree"])
def test_what_others_have_cleared_is_kept_anew_by_the_next_iteration(tmp_path: Path, by: str) -> None:
    folder = tmp_path / "cache"
    dataset = build(folder)
    list(dataset)
    with iter(dataset) as under_way:
        assert int(next(under_way)) == 0
        if by == "another process":
            python(f"import forebay as fb; fb.Dataset.range(3).cache({str(folder)!r}).clear()")
        else:
            shutil.rmtree(folder)
        assert plain(list(under_way)) == EXPECTED[1:]
    assert calls() == 2000
    assert plain(list(dataset)) == plain(list(dataset)) == plain(list(build(folder))) == EXPECTED
    assert calls() == 4000


@pytest.mark.parametrize("how", ["deleted", "shorter", "a byte shorter"])
def test_rows_that_were_there_and_are_gone_are_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    list(build(tmp_path))
    (data,) = files(tmp_path, "data")
    if how == "deleted":
        data.unlink()
    else:
        os.truncate(data, data.stat().st_size - 1 if how == "a byte shorter" else 1)
    again = build(tmp_path)
    assert plain(list(again)) == plain(list(again)) == plain(list(build(tmp_path))) == EXPECTED
    (text,) = caplog.messages
    assert text.startswith(f"cache({str(tmp_path)!r}): elements ")
    assert "to 1,999 were there and are gone" in text
    assert data.name in text


def test_what_was_cleared_or_never_finished_is_not_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with iter(build(tmp_path)) as it:
        next(it)
    build(tmp_path).clear()
    assert plain(list(build(tmp_path))) == EXPECTED
    assert caplog.messages == []


def test_two_datasets_in_one_process_share_a_folder(tmp_path: Path) -> None:
    one, other = build(tmp_path), build(tmp_path)
    with iter(one) as a, iter(other) as b:
        assert [(int(x), int(y)) for x, y in zip(a, b, strict=True)] == [(x, x) for x in EXPECTED]
    assert plain(list(one)) == plain(list(other)) == EXPECTED
    assert len(files(tmp_path, "data")) == 1


def test_a_reader_sees_what_the_writer_has_written_so_far(tmp_path: Path) -> None:
    options = Options(block_bytes=800)
    writer, reader = build(tmp_path, 50_000).with_options(options), build(tmp_path, 50_000).with_options(options)
    with iter(writer) as a, iter(reader) as b:
        for _ in range(5000):
            next(a)
        before = calls()
        for i in range(4000):
            assert next(b) == 2 * i
        assert calls() == before


def test_a_complete_cache_may_be_read_only(tmp_path: Path) -> None:
    list(build(tmp_path))
    for path in tmp_path.iterdir():
        path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert plain(list(build(tmp_path))) == EXPECTED
    finally:
        tmp_path.chmod(0o755)
    assert calls() == 2000


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(fb.PlanError, match=r"pip install forebay\[compression\]"):
        build(tmp_path, compression="zstd")


def test_unseeded_steps_before_it_are_warned_about(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="without a seed, every run fills the files anew"):
        Dataset.range(3).shuffle(2).cache(tmp_path)
    Dataset.range(3).shuffle(2, seed=1).cache(tmp_path)
    for seed, anew in ((1, False), (None, True)):
        with pytest.warns(UserWarning, match="all epochs will be the same") as seen:
            Dataset.range(3).map(lambda x, rng: x, rng=True, seed=seed).cache(tmp_path)
        assert ("anew" in str(seen[0].message)) == anew


def test_a_folder_that_is_removed_meanwhile_is_named(tmp_path: Path) -> None:
    dataset = Dataset.range(20_000).cache(tmp_path / "kept").with_options(fb.Options(block_bytes=4000))
    it = iter(dataset)
    next(it)
    shutil.rmtree(tmp_path / "kept")
    with pytest.raises(fb.SpillError, match="the folder is gone; iterate again to fill it anew"):
        list(it)
    it.close()
    assert [int(x) for x in dataset] == list(range(20_000))


def test_a_file_in_the_place_of_the_folder_is_said_too(tmp_path: Path) -> None:
    dataset = Dataset.range(20_000).cache(tmp_path / "kept").with_options(fb.Options(block_bytes=4000))
    with iter(dataset) as it:
        next(it)
        shutil.rmtree(tmp_path / "kept")
        (tmp_path / "kept").touch()
        with pytest.raises(fb.SpillError, match="the folder is gone"):
            list(it)
    with pytest.raises(fb.SpillError, match="cannot be read: Not a directory"):
        list(dataset)


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    rows = Dataset.range(5)
    rows.save("~/saved")
    for dataset in (rows.cache("~/cached"), rows.snapshot("~/snapshot"), Dataset.load("~/saved")):
        assert plain(list(dataset)) == list(range(5))
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["cached", "saved", "snapshot"]
