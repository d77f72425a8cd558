"""kill -9 at any point of a save: the old dataset is there, whole, and the next save works and clears up."""

import os
import random
import signal
from pathlib import Path

import pytest

import forebay as fb
from faults.nursery import Nursery

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
        if count == point and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*args, **kwargs)
        if count == point and after:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
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
    generator = random.Random(11 + two_steps)
    # The last calls are those that put the folder in place; the rest is drawn.
    chosen = [*range(points - 9, points + 1), *generator.sample(range(1, points - 9), 10)]
    old = 0
    for point in chosen:
        Dataset.range(10).save(path)
        died = nursery.run(_CHILD, path, point, generator.choice(["before", "after"]), *more)
        assert died.returncode == -signal.SIGKILL, (point, died.stderr)
        if path.exists():
            loaded = Dataset.load(path)
            count = len(list(loaded))
            assert count in (10, 5000)
            old += count == 10
        else:
            assert two_steps
    assert old >= 10
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
