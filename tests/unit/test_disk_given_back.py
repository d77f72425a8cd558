"""Disk space that was spilled to goes back when nobody needs it, and errors say who has how much."""

import errno
import gc
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay as fb
from forebay import Dataset
from forebay.run.spill import SpillFile
from forebay.run.spill_room import SpillStore
from unit.support import python

ROWS, GROUP = 40_000, 5_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Groups of 2.5 MB."""
    path = tmp_path_factory.mktemp("tables") / "rows.parquet"
    values = np.random.default_rng(0).random(ROWS * 63)
    columns = {"x": np.arange(ROWS), "v": pa.FixedSizeListArray.from_arrays(pa.array(values), 63)}
    pq.write_table(pa.table(columns), path, row_group_size=GROUP)
    return path


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def on_disk(folder: Path) -> int:
    """Bytes that open files without a name take up there."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith(str(folder)):
                about = os.fstat(int(number))
                found[about.st_ino] = about.st_blocks * 512
        except OSError:
            continue
    return sum(found.values())


def shuffled(table: Path, folder: Path, **options: Any) -> Dataset[Any]:
    return (
        Dataset.from_parquet(table).shuffle(seed=1).with_options(fb.Options(memory="2MiB", spill_dir=folder, **options))
    )


def test_a_group_that_could_not_be_decoded_is_not_counted_as_kept(table: Path, tmp_path: Path) -> None:
    """It had begun to be kept in memory, which has no room for all of it, and neither has the disk."""
    ledger = fb.Ledger("8MiB")
    dataset = Dataset.from_parquet(table).shuffle(seed=1)
    dataset = dataset.with_options(fb.Options(memory=ledger, spill_dir=tmp_path, spill_limit="4MiB"))
    with pytest.raises(fb.SpillError, match="spill_limit"):
        list(dataset)
    assert ledger.holders() == {}


def test_decoded_groups_stay_as_long_as_their_dataset(table: Path, tmp_path: Path, uncollected: None) -> None:
    dataset = shuffled(table, tmp_path)
    first = [int(row["x"]) for row in dataset.take(100)]
    there = on_disk(tmp_path)
    assert there > 0
    assert [int(row["x"]) for row in dataset.take(100)] == first
    assert on_disk(tmp_path) == there
    del dataset
    assert on_disk(tmp_path) == 0


def test_what_did_not_fit_is_given_back_with_the_error(table: Path, tmp_path: Path, uncollected: None) -> None:
    dataset = shuffled(table, tmp_path, spill_limit="8MB")
    for _ in range(2):
        with pytest.raises(fb.SpillError, match="spill_limit is 8,000,000 bytes"):
            list(dataset)
        assert on_disk(tmp_path) == 0
    # What it holds in memory serves all the same, and rows that fit go to disk again.
    rows = dataset.with_options(fb.Options(spill_limit="1GB"))
    assert sorted(int(row["x"]) for row in rows) == list(range(ROWS))


def test_only_groups_that_were_decoded_count(table: Path, tmp_path: Path) -> None:
    """The last one is no further away than the first."""
    rows = Dataset.from_parquet(table).skip(ROWS - 100).shuffle(seed=1)
    with iter(rows.with_options(fb.Options(memory="2MiB", spill_dir=tmp_path, spill_limit="8MB"))) as it:
        assert sorted(int(row["x"]) for row in it) == list(range(ROWS - 100, ROWS))
        # With its columns, which were decoded one by one.
        assert GROUP * 500 < it.stats().on_disk < 3 * GROUP * 512


def full(*arguments: Any) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_says_who_has_how_much_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = object()
    # Two epochs of one dataset, and another dataset.
    files = [SpillFile(SpillStore(tmp_path, None, of)) for of in (owner, owner, object())]
    for file, size in zip(files, (1 << 20, 1 << 21, 1 << 22)):
        file.put([bytes(size)])
    before = [os.fstat(file.fileno).st_blocks * 512 for file in files]
    closed = SpillFile(SpillStore(tmp_path, None, owner))
    closed.put([bytes(1 << 20)])
    closed.close()
    monkeypatch.setattr(os, "pwritev", full)
    # What could not be written is not to be counted as in use, however large it is.
    with pytest.raises(fb.SpillError) as caught:
        files[0].write(1 << 40, [b"much"])
    text = str(caught.value)
    found = re.search(
        r"this dataset has ([\d,]+) bytes in use, other datasets of this process have ([\d,]+), and", text
    )
    assert found is not None, text
    mine, others = (int(number.replace(",", "")) for number in found.groups())
    # Room that was set aside for the file itself is given back with the failure.
    assert (1 << 20) + before[1] <= mine <= before[0] + before[1]
    assert others >= before[2]
    assert re.search(rf"and [\d,]+ of [\d,]+ bytes are free in '{tmp_path}'\. Set Options\.spill_dir", text), text
    assert text.startswith("4 bytes could not be spilled to disk: the disk is full; ")
    for file in files:
        file.close()


def test_holes_are_not_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.run.spill.allocate_ahead", lambda *arguments: False)
    file = SpillFile(SpillStore(tmp_path))
    file.write(1 << 40, [b"far away"])
    monkeypatch.setattr(os, "pwritev", full)
    with pytest.raises(fb.SpillError, match=r"this dataset has [\d,]{1,7} bytes in use"):
        file.write(0, [b"near"])
    file.close()


def test_nothing_is_set_aside_for_a_hole_that_the_disk_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("forebay.run.spill.allocate_ahead", lambda *arguments: bool(asked.append(arguments)))
    file = SpillFile(SpillStore(tmp_path))
    file.write(1 << 43, [b"far away"])
    assert asked == []
    file.close()


def test_little_is_set_aside_where_little_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = os.fstatvfs, []

    def nearly_full(file: int) -> Any:
        found = list(real(file))
        found[1], found[4] = 1, 4000  # The size of a fragment, and how many are free.
        return os.statvfs_result(found)

    def ahead(file: int, offset: int, size: int) -> bool:
        asked.append(offset + size)
        return True

    monkeypatch.setattr(os, "fstatvfs", nearly_full)
    monkeypatch.setattr("forebay.run.spill.allocate_ahead", ahead)
    file = SpillFile(SpillStore(tmp_path))
    file.put([b"some"])
    assert asked == [1004]
    file.close()


WRITERS = {
    "save": "data.save(folder + '/saved')",
    "snapshot": "list(data.snapshot(folder + '/snapshot'))",
    "arrow": "data.to_arrow(folder + '/rows.arrow')",
    "parquet": "data.to_parquet(folder + '/rows.parquet')",
    "tfrecord": "data.write_tfrecord(folder + '/rows.tfrecord')",
}


@pytest.mark.parametrize("name", WRITERS)
def test_whoever_writes_files_says_how_much_is_free(name: str, tmp_path: Path) -> None:
    code = """
import resource, sys
import numpy as np
import forebay as fb
folder = sys.argv[1]
data = fb.Dataset.range(3000).map(lambda i: {"x": np.random.default_rng(int(i)).random(100)})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    eval(sys.argv[2])
except fb.DataError as error:
    print(type(error).__name__, error)
"""
    text = python(code, 60, str(tmp_path), WRITERS[name])
    kind = "DataError" if name in ("save", "snapshot") else "FileError"
    assert text.startswith(kind), text
    assert "no file may become that large there; " in text
    assert re.search(rf"[\d,]+ of [\d,]+ bytes are free in '{tmp_path}\S*'\. Make room there, or write to", text), text


def test_files_in_the_making_are_looked_at_from_any_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others open and close theirs meanwhile."""
    stop = threading.Event()

    def others() -> None:
        while not stop.is_set():
            SpillFile(SpillStore(tmp_path)).close()

    threads = [threading.Thread(target=others) for _ in range(3)]
    mine = SpillFile(SpillStore(tmp_path))
    monkeypatch.setattr(os, "pwritev", full)
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            with pytest.raises(fb.SpillError, match="this dataset has 0 bytes in use"):
                mine.write(0, [b"x"])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        mine.close()


@pytest.mark.parametrize("buffer", [None, 800])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_disk_space_of_its_parent(buffer: int | None, tmp_path: Path) -> None:
    rows = Dataset.from_generator(lambda: (np.full(1000, i) for i in range(1000))).shuffle(buffer, seed=1)
    kept = Dataset.from_generator(lambda: (np.full(1000, i) for i in range(600))).cache()
    options = fb.Options(memory="1MiB", spill_dir=tmp_path)
    assert len(list(kept.with_options(options))) == 600
    expected = [int(row[0]) for row in rows.with_options(options)]
    cached = on_disk(tmp_path)
    assert cached > 0
    with iter(rows.with_options(options)) as it:
        assert int(next(it)[0]) == expected[0]
        assert on_disk(tmp_path) > cached
        child = os.fork()
        if child == 0:
            done = False
            try:
                # What a cache has kept is there for both.
                alone = on_disk(tmp_path) == cached
                it.close()
                done = alone and [int(row[0]) for row in kept.with_options(options)] == list(range(600))
            finally:
                os._exit(0 if done else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert [int(row[0]) for row in it] == expected[1:]
