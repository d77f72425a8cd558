"""Programs that end while iterators are open or a daemon thread iterates, as if nothing were under way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import forebay as fb
from unit.support import python

PROGRAM = """
import sys, threading
import numpy as np
import forebay as fb

path = sys.argv[1]
under_way = threading.Event()

def feed():
    for _ in {dataset}.repeat():
        under_way.set()

threading.Thread(target=feed, daemon=True).start()
under_way.wait()
"""

DATASETS = {
    "arrays": "fb.Dataset.from_tensor_slices(np.zeros((100_000, 100))).shuffle(seed=1).batch(32)",
    "text": "fb.TextLineDataset(path)",
    "records": "fb.Dataset.from_tensor_slices([path + '.tfrecord'] * 4).interleave("
    "fb.TFRecordDataset, 4, num_parallel_calls=fb.AUTOTUNE)",
    "prefetched": "fb.TextLineDataset(path).prefetch(2)",
}


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS)
def test_a_daemon_thread_does_not_make_an_exit_a_crash(tmp_path: Path, dataset: str) -> None:
    path = tmp_path / "lines"
    path.write_text("a line of text\n" * 200_000)
    with fb.io.TFRecordWriter(f"{path}.tfrecord") as writer:
        for row in range(20_000):
            writer.write(bytes(row % 300))
    for _ in range(5):
        command = [sys.executable, "-c", PROGRAM.format(dataset=dataset), str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert (run.returncode, run.stdout) == (0, ""), run.stderr
        # Python may begin to tell that the thread's iterator was closed, and be gone before the end of that.
        assert "terminate" not in run.stderr


UNFINISHED = """
import gc, sys, threading
import forebay as fb

path, keep, how = sys.argv[1:]
calls = 0

def double(x):
    global calls
    calls += 1
    return x * 2

def begin():
    it = iter(getattr(fb.Dataset.range(50_000).map(double), keep)(path))
    for _ in range(20_000):
        next(it)
    return it

def hold():
    it = begin()
    begun.set()
    threading.Event().wait()

if how == "global":
    it = begin()
elif how == "cycle":
    gc.disable()
    cycle = [begin()]
    cycle.append(cycle)
    del cycle
else:
    begun = threading.Event()
    threading.Thread(target=hold, daemon=True).start()
    begun.wait()
print(calls)
"""

FINISHED = UNFINISHED.partition("if how")[0].replace("range(20_000)", "range(50_000)") + "begin()\nprint(calls)"


@pytest.mark.parametrize("how", ["global", "cycle", "thread"])
def test_a_cache_has_all_that_was_made_when_a_program_ends(tmp_path: Path, how: str) -> None:
    path = str(tmp_path / "cache")
    # A function that counts its calls is the same one again: it is looked at before the first of them.
    made = int(python(UNFINISHED, 60, path, "cache", how))
    assert 20_000 <= made < 50_000
    assert int(python(FINISHED, 60, path, "cache", how)) == 50_000 - made


@pytest.mark.parametrize("how", ["global", "cycle", "thread"])
def test_a_snapshot_that_is_not_complete_leaves_nothing_when_a_program_ends(tmp_path: Path, how: str) -> None:
    path = tmp_path / "snapshot"
    python(UNFINISHED, 60, str(path), "snapshot", how)
    assert os.listdir(path) == []
