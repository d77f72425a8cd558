"""What was kept on disk and is made anew is said in the log, with what has changed."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from forebay import Dataset
from unit.support import plain, python

LIMIT = [3]


class Settings:
    scale = 1


def helper(x: Any) -> Any:
    return x * Settings.scale


def limited(x: Any) -> Any:
    return helper(x) + LIMIT[0]


def by(factor: int) -> Any:
    def times(x: Any) -> Any:
        return x * factor

    return times


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    caplog.clear()
    return found


def files(folder: Path, ending: str) -> list[Path]:
    return sorted(folder.glob(f"*.{ending}"))


@pytest.mark.parametrize("keep", ["cache", "snapshot"])
def test_the_part_that_has_changed_is_named(
    tmp_path: Path, keep: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(function: Any) -> str:
        dataset = getattr(Dataset.range(9).map(function), keep)(tmp_path)
        for _ in range(2):
            list(dataset)
        return "\n".join(said(caplog))

    start = f"{keep}({str(tmp_path)!r}) at test_kept_changes.py:"
    assert run(limited) == ""
    monkeypatch.setattr("unit.test_kept_changes.LIMIT", [4])
    found = run(limited)
    assert found.startswith(start)
    assert "is of another dataset and is made anew: map(map_func=limited) at test_kept_changes.py:" in found
    assert "has changed (the global 'LIMIT')." in found
    assert found.count("made anew") == 1
    monkeypatch.setattr(Settings, "scale", 2)
    assert "has changed (the global 'Settings')." in run(limited)
    run(by(2))
    assert "map(map_func=times)" in (found := run(by(3)))
    assert "has changed (the captured value 'factor')." in found


def test_an_edited_function_is_named_in_another_run(tmp_path: Path) -> None:
    code = """
import logging, sys
import forebay as fb
logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
def helper(x):
    return x + 1
list(fb.Dataset.range(5).map(lambda x: helper(x)).cache(sys.argv[1]))
"""
    assert python(code, 300, str(tmp_path)) == ""
    found = python(code.replace("x + 1", "x + 2"), 300, str(tmp_path))
    assert found.startswith("WARNING cache(")
    assert "has changed (the code of helper)." in found


def test_other_steps_and_data_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def run(dataset: Dataset[Any]) -> str:
        list(dataset.cache(tmp_path))
        return "\n".join(said(caplog))

    run(Dataset.range(9).batch(2))
    assert "step 2 was batch(batch_size=2, drop_remainder=False) and is batch(batch_size=3" in run(
        Dataset.range(9).batch(3)
    )
    assert "what was kept goes on with batch(batch_size=3" in run(Dataset.range(9))
    assert "this goes on with take(count=3) where it ends" in run(Dataset.range(9).take(3))
    run(Dataset.from_tensor_slices([1, 2, 3]))
    assert "from_tensor_slices" in (found := run(Dataset.from_tensor_slices([1, 2, 4])))
    assert "has changed" in found
    text = tmp_path / "a.txt"
    text.write_text("a\n")
    run(fb.TextLineDataset(str(text)))
    text.write_text("b\nc\n")
    assert "has changed (its files)." in run(fb.TextLineDataset(str(text)))


def test_caches_that_do_not_say_what_they_are_of_still_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for damage in (None, "", "[]", '{"steps": [3], "seeds": []}'):
        list(Dataset.range(9).cache(tmp_path))
        caplog.clear()
        (path,) = files(tmp_path, "plan")
        path.unlink()
        if damage is not None:
            path.write_text(damage)
        assert plain(list(Dataset.range(9).cache(tmp_path))) == list(range(9))
        assert said(caplog) == []
        list(Dataset.range(8).cache(tmp_path))
        (found,) = said(caplog)
        assert "it does not say what it was made of" in found


def test_what_was_kept_stays_until_the_new_one_is_complete(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def build(factor: int) -> Dataset[Any]:
        return Dataset.range(20_000).map(by(factor)).cache(tmp_path).with_options(fb.Options(block_bytes=4000))

    list(build(1))
    (old,) = files(tmp_path, "data")
    for factor in (2, 3, 4):
        with iter(build(factor)) as it:
            next(it)
        # One of another plan, and no more than one.
        assert old in files(tmp_path, "data")
        assert len(files(tmp_path, "data")) == 2
    assert len(said(caplog)) == 3
    list(build(1))
    assert said(caplog) == []
    list(build(4))
    assert files(tmp_path, "data") != [old]
    assert len(files(tmp_path, "data")) == len(files(tmp_path, "plan")) == 1


def test_an_empty_dataset_does_not_replace_another_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    list(Dataset.range(9).cache(tmp_path))
    list(Dataset.range(9).filter(lambda x: x > 9).cache(tmp_path))
    assert len(said(caplog)) == 1


def test_two_pipelines_in_one_folder_are_told_what_to_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    list(Dataset.range(9).map(by(2)).cache(tmp_path))
    for factor in (3, 2, 3):
        list(Dataset.range(9).map(by(factor)).cache(tmp_path))
        (text,) = said(caplog)
        assert "Pipelines that are used in turns need a folder each" in text


def test_where_there_is_no_room_for_both_the_old_one_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list(Dataset.range(9).cache(tmp_path))
    (old,) = files(tmp_path, "data")
    real = os.pwritev

    def full(*arguments: Any) -> int:
        if old.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(os, "pwritev", full)
    assert plain(list(Dataset.range(8).cache(tmp_path))) == list(range(8))
    assert len(files(tmp_path, "data")) == 1


def test_clear_deletes_what_other_plans_kept_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    list(Dataset.range(9).cache(tmp_path))
    Dataset.range(8).cache(tmp_path).clear()
    assert said(caplog) == []
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_snapshots_of_other_steps_are_others_and_no_reason_to_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    list(Dataset.range(9).map(by(2)).snapshot(tmp_path))
    list(Dataset.range(9).snapshot(tmp_path))
    assert said(caplog) == []


def test_snapshots_that_are_written_otherwise_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def run(**how: Any) -> str:
        list(Dataset.range(9).snapshot(tmp_path, **how))
        return "\n".join(said(caplog))

    assert run() == ""
    assert "is made anew: its compression has changed. The older one stays" in run(compression="zstd")
    assert "its shard_func has changed." in run(compression="zstd", shard_func=by(2))
    assert "its compression and shard_func have changed." in run(shard_func=by(1))
    assert "its shard_func has changed." in run(shard_func=by(3))
    assert run() == ""


def test_a_folder_that_cannot_be_made_is_named_with_the_reason() -> None:
    with pytest.raises(
        fb.SpillError, match=r"cache\('/proc/x'\): the folder cannot be made: No such file .*\(/proc/x\)"
    ):
        list(Dataset.range(3).cache("/proc/x"))
