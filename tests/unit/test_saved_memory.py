"""Saving and loading hold a few blocks in memory, however large the dataset is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from unit.support import python

_CODE = """
import json, sys
import numpy as np
import forebay as fb
import pyarrow, pyarrow.ipc

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


_IN_TURNS = """
import sys
import forebay as fb

def figure(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) >> 10

def pipeline(path):
    load = lambda i: fb.Dataset.load(path)
    made = fb.Dataset.range(6).interleave(load, cycle_length=6, num_parallel_calls=4)
    return made.prefetch(100).with_options(fb.Options(memory="8MiB"))
list(pipeline(sys.argv[1]))  # Loads what there is to load.
open("/proc/self/clear_refs", "w").write("5")
before = figure("VmRSS")
for _ in range(2):
    count = sum(1 for _ in pipeline(sys.argv[2]))
print(count, figure("VmHWM") - before)
"""


@pytest.mark.slow
def test_what_decodes_keeps_little_of_it(tmp_path: Path) -> None:
    """Arrow's allocator kept tens of MiB, some for each thread, of which its own figures say nothing."""

    def element(i: int) -> dict[str, object]:
        return {"text": f"word{i} " * (i % 500), "list": np.arange(i % 700), "none": None if i % 3 else float(i)}

    rows = fb.Dataset.range(8000).map(lambda i: element(int(i)))
    rows.take(10).save(tmp_path / "few", "zstd")
    rows.save(tmp_path / "all", "zstd")
    count, grown = map(int, python(_IN_TURNS, 300, str(tmp_path / "few"), str(tmp_path / "all")).split())
    assert count == 48_000
    assert grown <= 8 + 48


def test_rows_that_wait_for_others_of_their_shard_count_in_the_budget(tmp_path: Path) -> None:
    ledger = fb.Ledger("2MiB")
    rows = fb.Dataset.from_generator(lambda: (np.full(500, i) for i in range(3000)))
    rows = rows.with_options(fb.Options(memory=ledger))
    rows.save(tmp_path / "d", shard_func=lambda x: int(x[0]) % 100)
    # A hundred shards of up to half a MiB each would wait, were there no budget. The first 4 MiB are looked at.
    assert ledger.peak < 7 << 20
    assert ledger.held == 0
    found = sorted(int(x[0]) for x in fb.Dataset.load(tmp_path / "d"))
    assert found == list(range(3000))
    again = rows.snapshot(tmp_path / "s", shard_func=lambda x: int(x[0]) % 100)
    assert sorted(int(x[0]) for x in again) == sorted(int(x[0]) for x in again) == found
    assert ledger.held == 0


def test_decoded_batches_count_in_the_budget(tmp_path: Path) -> None:
    rows = fb.Dataset.from_generator(lambda: (np.full(500, i) for i in range(3000)))
    rows.save(tmp_path / "d", "zstd")
    peaks = {}
    for budget in (3 << 20, 1 << 30):
        ledger = fb.Ledger(budget)
        loaded = fb.Dataset.load(tmp_path / "d").shuffle(seed=1).take(60).with_options(fb.Options(memory=ledger))
        for _ in range(2):
            with iter(loaded) as it:
                found = [int(x[0]) for x in it]
                assert it.ledger is ledger
        assert len(set(found)) == 60
        assert ledger.held == 0
        peaks[budget] = ledger.peak
    # All of its 12 MiB stay decoded where there is room; one batch always does.
    assert peaks[1 << 30] > 8 << 20
    assert peaks[3 << 20] < 5 << 20


def test_more_decoded_batches_are_kept_of_rows_that_are_read_by_number(tmp_path: Path) -> None:
    """Whoever shuffles comes back to all of them; whoever reads in order to few."""
    rows = fb.Dataset.from_generator(lambda: (np.full(500, i) for i in range(6000)))
    rows.save(tmp_path / "d", "zstd")

    def most(dataset: fb.Dataset[Any], budget: str) -> int:
        found = 0
        with iter(dataset.with_options(fb.Options(memory=budget))) as it:
            for i, _ in enumerate(it):
                if i % 100 == 0:
                    held = it.ledger.holders().items()
                    found = max(found, sum(size for owner, size in held if owner.startswith("load(")))
        return found

    loaded = fb.Dataset.load(tmp_path / "d")
    # All of its 23 MiB, within a quarter of the budget; a quarter is left to what decodes them in any case.
    assert most(loaded.shuffle(seed=1), "128MiB") > 20 << 20
    assert most(fb.Dataset.load(tmp_path / "d"), "128MiB") < 18 << 20
    assert most(fb.Dataset.load(tmp_path / "d").shuffle(seed=1), "20MiB") < 15 << 20


def test_blocks_of_compressed_rows_take_the_time_to_share_what_is_decoded(tmp_path: Path) -> None:
    """By number they would come a few at a time, each of which has most of the file decoded again."""
    rows = fb.Dataset.range(40).map(lambda x: {"x": x})
    rows.save(tmp_path / "plain")
    rows.save(tmp_path / "zstd", compression="zstd")

    def seconds(name: str) -> float:
        loaded = fb.Dataset.load(tmp_path / name)
        chained = loaded.map(lambda d: d["x"]).concatenate(fb.Dataset.range(3)).enumerate().skip(1).shuffle().batch(2)
        access = chained.plan.access()
        assert access is not None
        return access.seconds

    assert 0 < seconds("plain") < seconds("zstd")
