"""kill -9 while files are written: what was there is still there, and the next write leaves nothing of it behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forebay as fb
from forebay.storage.output import OutputFile
from forebay.storage.unnamed import Unnamed

SINKS = {
    "to_parquet": "d.to_parquet(path)",
    "to_arrow": "d.to_arrow(path)",
    "to_webdataset": "d.to_webdataset(path)",
    "write_tfrecord": "d.write_tfrecord(path)",
    "several files": "d.to_parquet(path + '{shard}', rows_per_file=10)",
}
# The second of several files is written to when a process with more than 50 rows waits to be killed.
_CHILD = """
import os, sys
import forebay as fb
from forebay.storage.output import OutputFile
path, rows = sys.argv[1], int(sys.argv[2])
finish, left = OutputFile.finish, [2 if "{" in sys.argv[3] else 1]
def wait(self):
    left[0] -= 1
    if left[0] == 0 and rows > 50:
        print("there", flush=True)
        sys.stdin.read()
    finish(self)
OutputFile.finish = wait
d = fb.Dataset.range(rows).map(lambda x: {"x": x})
eval(sys.argv[3])
"""


@pytest.mark.parametrize("sink", SINKS)
def test_the_next_write_removes_what_a_crash_left(tmp_path: Path, sink: str) -> None:
    command = [sys.executable, "-c", _CHILD, str(tmp_path / "f")]
    subprocess.run([*command, "40", SINKS[sink]], check=True)
    names = set(os.listdir(tmp_path))
    with subprocess.Popen(
        [*command, "100", SINKS[sink]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "there\n"
        left = set(os.listdir(tmp_path)) - names
        assert len(left) == (3 if sink == "several files" else 2)
        subprocess.run([*command, "40", SINKS[sink]], check=True)
        assert set(os.listdir(tmp_path)) == names | left, "the files of a living process were removed"
        child.send_signal(signal.SIGKILL)
    subprocess.run([*command, "40", SINKS[sink]], check=True)
    assert set(os.listdir(tmp_path)) == names


def test_files_of_the_same_name_do_not_meet(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    first, second, other = (OutputFile(name, atomic=True) for name in (path, path, path + "2"))
    for number, file in enumerate((first, second, other)):
        file.write(bytes([number]))
    assert len(os.listdir(tmp_path)) == 5
    first.close()
    assert (tmp_path / "f").read_bytes() == b"\0"
    second.close()
    other.discard()
    assert os.listdir(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"\1"


def test_what_only_looks_like_it_stays(tmp_path: Path) -> None:
    kept = {".f.forebay-0123", ".g.forebay-01234567", ".f.forebay-0123456g", "f.forebay-01234567"}
    for name in (*kept, ".f.forebay-01234567", ".forebay-89abcdef.lock"):
        (tmp_path / name).touch()
    (tmp_path / ".f.forebay-0123456789ab").mkdir()
    fb.Dataset.range(3).map(lambda x: {"x": x}).to_parquet(tmp_path / "f")
    assert set(os.listdir(tmp_path)) == kept | {"f", ".f.forebay-0123456789ab"}
    # A folder of the same name takes them for none of its own.
    fb.Dataset.range(3).save(tmp_path / "g")
    assert ".g.forebay-01234567" in os.listdir(tmp_path)


def test_a_folder_that_cannot_be_listed_or_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Unnamed(str(tmp_path / "none" / "f"))
    with pytest.raises(fb.FileError, match=r"there is no folder .*none; make it first"):
        OutputFile(str(tmp_path / "none" / "f"), atomic=True)
    place = Unnamed(str(tmp_path / "f"))
    place.release()
    place.release()
    assert os.listdir(tmp_path) == []
