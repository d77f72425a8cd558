"""``list_files``: what patterns find, in which order, and what states know of it."""

import json
import os
import zipfile
from pathlib import Path

import pytest

import forebay as fb
from unit.support import written


def test_list_files_behind_a_url() -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    for name in ("b", "a"):
        system.pipe(f"/forebay-list/{name}.txt", name.encode())
    dataset = fb.Dataset.list_files("memory://forebay-list/*.txt", shuffle=False)
    assert [path.rpartition("/")[2] for path in dataset] == ["a.txt", "b.txt"]
    assert list(fb.TextLineDataset(dataset)) == [b"a", b"b"]


def test_list_files_shuffles_anew_and_states_fit_moved_files(tmp_path: Path) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        for i in range(20):
            written(tmp_path / folder / f"{i:02}.txt", b"%d\n" % i)

    def lines(folder: str) -> fb.Dataset[bytes]:
        return fb.TextLineDataset(fb.Dataset.list_files(str(tmp_path / folder / "*.txt"), seed=1))

    dataset = lines("here")
    epochs = [list(dataset) for _ in range(2)]
    assert epochs[0] != epochs[1]
    assert sorted(epochs[0]) == sorted(epochs[1])
    it = iter(lines("here"))
    start = [next(it) for _ in range(7)]
    state = json.loads(json.dumps(it.state_dict()))
    moved = iter(lines("there"))
    moved.load_state_dict(state)
    assert start + list(moved) == epochs[0]


def test_files_of_forebays_own_are_no_data(tmp_path: Path) -> None:
    with fb.io.TFRecordWriter(str(tmp_path / "t-0.tfrecord")) as writer:
        writer.write(b"record")
    data = [str(tmp_path / "t-0.tfrecord")]
    assert len(fb.TFRecordDataset(data, index=True)) == 1
    index = str(tmp_path / "t-0.tfrecord.fbindex")
    assert os.path.exists(index)
    for name in ("t-0.tfrecord.fbindex.123", ".t-1.tfrecord.forebay-0a1b2c3d"):
        written(tmp_path / name, b"half")
    (tmp_path / ".saved.forebay-001122334455" / "data").mkdir(parents=True)
    written(tmp_path / ".saved.forebay-001122334455" / "data" / "part", b"half")
    for pattern in ("t-*", "*", "**"):
        found = fb.Dataset.list_files(str(tmp_path / pattern), shuffle=False)
        assert [path for path in found if os.path.isfile(path)] == data
    assert list(fb.TFRecordDataset(fb.Dataset.list_files(str(tmp_path / "t-*")))) == [b"record"]
    # Who asks for them gets them.
    assert list(fb.Dataset.list_files(str(tmp_path / "*.fbindex"))) == [index]
    assert list(fb.Dataset.list_files(index)) == [index]


def test_names_that_look_like_patterns(tmp_path: Path) -> None:
    path = written(tmp_path / "[x].jsonl", b'{"x": 1}\n')
    assert list(fb.Dataset.from_json(path)) == [{"x": 1}]
    written(tmp_path / "x.jsonl", b"")
    # As in tf.data, a pattern that matches something is one.
    assert [os.path.basename(found) for found in fb.Dataset.list_files(path)] == ["x.jsonl"]


def test_files_inside_of_archives_are_listed_as_they_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("a.txt", "b.txt"):
            archive.writestr(name, f"text {name}\n")
    names = fb.Dataset.list_files(f"zip://*.txt::file://{tmp_path}/a.zip", shuffle=False)
    assert list(fb.TextLineDataset(names)) == [b"text a.txt", b"text b.txt"]


def test_a_named_file_that_is_missing_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    for read, name in ((fb.Dataset.from_csv, "a.csv"), (fb.Dataset.from_json, "a.jsonl")):
        with pytest.raises(fb.FileError, match=r"none: there is no such file"):
            read([str(tmp_path / name), str(tmp_path / "none")])
        assert len(list(read([str(tmp_path / name), str(tmp_path / "none*")]))) == 1
    # As in tf.data.
    assert len(fb.Dataset.list_files([str(tmp_path / "a.csv"), str(tmp_path / "none")])) == 1
