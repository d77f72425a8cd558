"""Programs that end while a daemon thread iterates, as if nothing were under way."""

import subprocess
import sys
from pathlib import Path

import pytest

import forebay as fb

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
