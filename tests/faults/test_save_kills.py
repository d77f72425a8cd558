"""kill -9 or a full disk at any point of a save: the old dataset is there, whole, and the next save works."""

import itertools
import os
import signal
from pathlib import Path

import pytest

import forebay as fb
from faults.nursery import Nursery
from unit.support import python

Dataset = fb.Dataset

# Dies at the n-th of the calls that change what is on the disk, before the call or after it.
_CHILD = """
import os, signal, sys
import forebay as fb
import forebay.storage.folder as folder
import forebay.storage.file_writer as file_writer

path, point, after = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "after"
count = 0

def dying(function):
    def call(*args, **kwargs):
        global count
        count += 1
        deadly = count == point  # It may call others.
        if deadly and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return function(*args, **kwargs)
        finally:
            if deadly and after:
                os.kill(os.getpid(), signal.SIGKILL)
    return call

for name in ("mkdir", "rename", "fsync", "open", "unlink", "rmdir"):
    setattr(os, name, dying(getattr(os, name)))
file_writer._Sink._out = dying(file_writer._Sink._out)
swap = folder._renameat2()
folder._renameat2 = (lambda: dying(swap)) if len(sys.argv) < 5 else (lambda: None)
dataset = fb.Dataset.range(5000).map(lambda x: {"new": x, "text": str(x) * 9})
dataset.with_options(fb.Options(block_bytes=4000)).save(path, shard_func=lambda e: int(e["new"]) % 3)
print(count)
"""


@pytest.mark.parametrize("two_steps", [False, True], ids=["exchange", "two renames"])
def test_kill_9_at_any_point_of_a_save(two_steps: bool, tmp_path: Path, nursery: Nursery) -> None:
    more = ("two renames",) if two_steps else ()
    path = tmp_path / "d"
    Dataset.range(10).save(path)
    whole = nursery.run(_CHILD, path, -1, "before", *more)
    assert whole.returncode == 0, whole.stderr
    points = int(whole.stdout)
    old = 0
    for point, moment in itertools.product(range(1, points + 1), ("before", "after")):
        Dataset.range(10).save(path)
        died = nursery.run(_CHILD, path, point, moment, *more)
        assert died.returncode == -signal.SIGKILL, (point, died.stderr)
        if path.exists():
            loaded = Dataset.load(path)
            count = len(list(loaded))
            assert count in (10, 5000)
            old += count == 10
        else:
            assert two_steps
    assert old >= points
    assert points >= 25
    # The next save needs no help, and leaves nothing of the crashes behind.
    Dataset.range(20).save(path)
    assert len(list(Dataset.load(path))) == 20
    assert os.listdir(tmp_path) == ["d"]


def test_kill_9_of_a_first_save_leaves_nothing_to_load(tmp_path: Path, nursery: Nursery) -> None:
    for point in (1, 5, 12):
        assert nursery.run(_CHILD, tmp_path / "d", point, "before").returncode == -signal.SIGKILL
        with pytest.raises(fb.PlanError, match="no saved dataset"):
            Dataset.load(tmp_path / "d")
    Dataset.range(20).save(tmp_path / "d")
    assert os.listdir(tmp_path) == ["d"]


_KILLED = """
import os, signal, sys
import forebay as fb

added = int(sys.argv[2])
rows = fb.Dataset.range(100).map(lambda x: x + added).snapshot(sys.argv[1])
it = iter(rows.with_options(fb.Options(block_bytes=1)))
next(it)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_snapshot_leaves_goes_also_if_the_plan_has_changed_since(
    tmp_path: Path, nursery: Nursery
) -> None:
    for added in (1, 2):
        assert nursery.run(_KILLED, tmp_path / "s", added).returncode == -signal.SIGKILL
    (tmp_path / "s" / ".notes.forebay-1").mkdir()
    assert len(os.listdir(tmp_path / "s")) >= 2
    writing = iter(Dataset.range(100).map(lambda x: x - 1).snapshot(tmp_path / "s"))
    next(writing)
    ds = Dataset.range(100).map(lambda x: x + 3).snapshot(tmp_path / "s")
    assert list(ds) == list(range(3, 103))
    # One who still writes is not disturbed.
    assert list(writing) == list(range(100))[:-1]
    assert sorted(name for name in os.listdir(tmp_path / "s") if name[0] == ".") == [".notes.forebay-1"]
    assert len(os.listdir(tmp_path / "s")) == 3


_FULL = """
import os, resource, signal, sys
import numpy as np
import forebay as fb

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, call, compression = sys.argv[1], sys.argv[2], sys.argv[3] or None
rows = fb.Dataset.from_generator(lambda: (np.random.default_rng(i).random(500) for i in range(400)))
rows = rows.with_options(fb.Options(block_bytes=4000))
failed = 0
for limit in [*range(0, 10_000, 1900), *range(10_000, 2_000_000, 130_000), 10**9]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        if call == "save":
            rows.save(path, compression, shard_func=lambda x: int(x[0] * 3))
        else:
            assert len(list(rows.snapshot(path, compression))) == 400
        done = True
    except fb.DataError as error:
        failed += 1
        done = False
        assert "writing failed: no file may become that large there; " in str(error), error
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    if call == "save":
        assert len(list(fb.Dataset.load(path))) == (400 if done else 10)
        assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    else:
        assert done or os.listdir(path) == [], os.listdir(path)
    if done:
        break
print(failed)
"""


@pytest.mark.parametrize("compression", ["", "zstd"])
@pytest.mark.parametrize("call", ["save", "snapshot"])
def test_a_disk_that_is_full_at_any_write(call: str, compression: str, tmp_path: Path) -> None:
    """Files may grow to a limit that rises step by step, so that one write after another is the first to fail."""
    path = tmp_path / "d"
    if call == "save":
        Dataset.range(10).save(path)
    else:
        path.mkdir()
    assert int(python(_FULL, 300, str(path), call, compression)) > 6
