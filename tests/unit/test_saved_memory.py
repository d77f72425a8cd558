"""Saving and loading hold a few blocks in memory, however large the dataset is."""

import json
from pathlib import Path

from unit.support import python

_CODE = """
import json, sys
import numpy as np
import forebay as fb
import pyarrow, pyarrow.ipc, xxhash

def resident():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

def peak(dataset):
    most = resident()
    with iter(dataset) as it:
        for i, _ in enumerate(it):
            if i % 500 == 0:
                most = max(most, resident())
    return most

path, compression = sys.argv[1], sys.argv[2] if sys.argv[2] != "None" else None
def element(x):
    return {"x": np.full(500, x), "text": "t" * 1000, "list": np.arange(x % 20)}
seen = []
def watched(e):
    if e["x"][0] % 500 == 0:
        seen.append(resident())
    return e
small = fb.Dataset.range(100).map(element)
small.save(path, compression)
list(fb.Dataset.load(path).shuffle())
base = resident()
fb.Dataset.range(30_000).map(element).map(watched).save(path, compression)
saving = max(seen) - base
base = resident()
loaded = fb.Dataset.load(path)
reading = peak(loaded) - base
permuted = peak(loaded.skip(0 if compression is None else 29_000).shuffle()) - base
print(json.dumps([saving, reading, permuted]))
"""


def test_plain(tmp_path: Path) -> None:
    # 150 MB of rows.
    saving, reading, permuted = json.loads(python(_CODE, 300, str(tmp_path / "d"), "None"))
    assert max(saving, reading, permuted) < 24


def test_compressed(tmp_path: Path) -> None:
    saving, reading, permuted = json.loads(python(_CODE, 300, str(tmp_path / "d"), "lz4"))
    # The batches decoded last, 16 MiB of them, and what the decoder's allocator keeps.
    assert max(saving, reading, permuted) < 64
