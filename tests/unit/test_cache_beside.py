"""A cache in a folder that is used for something else: a warning, and other files stay as they are."""

import hashlib
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from unit.support import plain


def build(folder: Path, factor: int = 2) -> "fb.Dataset[Any]":
    return fb.Dataset.range(5).map(lambda x: x * factor).cache(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def named_by_digest(folder: Path) -> None:
    """Files as others have them that call theirs by MD5 sums: some are empty, and any may be the largest there."""
    for text in (b"", b"x" * 100_000, b'{"a": 1}'):
        for ending in ("data", "index", "plan", "tmp"):
            (folder / f"{hashlib.md5(text + ending.encode()).hexdigest()}.{ending}").write_bytes(text)


def test_other_files_are_warned_of_until_the_cache_is_there(tmp_path: Path) -> None:
    line = build.__code__.co_firstlineno + 1
    for name in ("d.csv", "b.csv", "c", "a.csv", ".hidden"):
        (tmp_path / name).write_text(name)
    text = (
        f"cache at test_cache_beside.py:{line} puts its files beside 'a.csv', 'b.csv', 'c' and others in {tmp_path}. "
        "Those stay as they are, also with clear(); to have them apart, give the cache a folder of its own"
    )
    for _ in range(2):
        with pytest.warns(UserWarning, match="beside") as seen:
            dataset = build(tmp_path)
        assert [(str(each.message), each.filename) for each in seen] == [(text, __file__)]
    assert plain(list(dataset)) == [0, 2, 4, 6, 8]
    # Somebody who goes on has read it.
    assert plain(list(build(tmp_path))) == [0, 2, 4, 6, 8]


def test_what_nobody_would_miss_is_not_warned_of(tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").touch()
    (tmp_path / "lost+found").mkdir()
    build(tmp_path)
    # Nor are those of a cache that somebody has copied.
    list(build(tmp_path / "kept"))
    shutil.copytree(tmp_path / "kept", tmp_path / "copy", ignore=shutil.ignore_patterns("lock"))
    build(tmp_path / "copy")


@pytest.mark.parametrize("names", ["plain", "digests"])
def test_other_files_are_never_touched(tmp_path: Path, names: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_text("a")
    if names == "digests":
        named_by_digest(tmp_path)
    else:
        for name in ("a.data", "a.index", "lock", "x.tmp", ".hidden"):
            (tmp_path / name).write_text(name)
    before = contents(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Another function: what the first one kept goes when the second is complete.
        for factor in (2, 3):
            dataset = build(tmp_path, factor)
            assert plain(list(dataset)) == [factor * x for x in range(5)]
    ours = contents(tmp_path).keys() - before.keys() - {"lock"}
    assert sorted(name.rpartition(".")[2] for name in ours) == ["data", "index", "plan"]
    key = next(iter(ours)).partition(".")[0]
    (tmp_path / f"{key}.data.bak").write_text("mine")
    dataset.clear()
    left = contents(tmp_path)
    assert left.pop(f"{key}.data.bak") == b"mine"
    left.setdefault("lock", b"")
    assert left == {"lock": b""} | before
    assert (tmp_path / "folder" / "a").read_text() == "a"


def test_files_that_others_call_by_digests_are_named(tmp_path: Path) -> None:
    named_by_digest(tmp_path)
    with pytest.warns(UserWarning, match=r"beside '[0-9a-f]{32}\.\w+', .* and others in"):
        build(tmp_path)
