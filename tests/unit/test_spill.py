"""Blocks and rows on disk: they come back as they were, are counted, and leave nothing behind."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import types
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from forebay.block import LEAF, Block, RowBuilder
from forebay.block.dense import Dense
from forebay.errors import DataError, SpillError
from forebay.ledger import Ledger
from forebay.run.places import Place
from forebay.run.row_store import RowStore
from forebay.run.spill import SpillFile, disk_left
from forebay.run.spill_room import SpillStore
from forebay.run.spilled_rows import SpilledRows
from forebay.run.stretches import Stretches
from unit.support import assert_same

Pair = namedtuple("Pair", "a b")

KINDS: dict[str, Any] = {
    "numbers": lambda i: i,
    "arrays": lambda i: np.full((2, 3), i, np.float32),
    "ragged": lambda i: np.arange(i % 4),
    "text": lambda i: "é" * (i % 5),
    "bytes": lambda i: b"\0" * (i % 3),
    "sometimes none": lambda i: None if i % 3 else i,
    "objects": lambda i: frozenset([i]),
    "nested": lambda i: {"x": Pair(i, (f"{i}", np.zeros(i % 2))), "y": i / 2},
    "shape changes": lambda i: np.zeros(2 if i < 40 else 3),
}


def block_of(kind: str, rows: range) -> Block:
    block, fault = RowBuilder().build([KINDS[kind](i) for i in rows])
    assert fault is None
    assert block is not None
    return block


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_come_back_as_they_were(kind: str) -> None:
    store = SpillStore()
    file = SpillFile(store)
    blocks = [block_of(kind, range(start, start + 15)) for start in (0, 15, 30)]
    places = [file.append(block) for block in blocks]
    assert store.used == len(file) > 0
    for block, place in zip(reversed(blocks), reversed(places), strict=True):
        assert_same(list(file.read(place).elements()), list(block.elements()))
    file.close()
    assert store.used == 0


@pytest.mark.parametrize("kind", KINDS)
def test_rows_on_disk_are_those_in_memory(kind: str) -> None:
    rng = np.random.default_rng(1)
    memory, disk = RowStore(1 << 20, 1 << 30), SpilledRows(SpillStore())
    for start in range(0, 400, 20):
        block = (
            block_of(kind, range(start, start + 20)) if kind != "shape changes" or start else block_of(kind, range(20))
        )
        slots = np.arange(20) if not start else rng.permutation(20)
        memory.put(slots, block)
        disk.put(slots, block)
        wanted = rng.integers(0, 20, 30)
        assert_same(list(disk.take(wanted).elements()), list(memory.take(wanted).elements()))
    disk.close()


def test_a_heap_is_rewritten_when_it_is_mostly_waste() -> None:
    store = SpillStore()
    rows = SpilledRows(store)
    block, _ = RowBuilder().build(["x" * 10_000] * 50)
    assert block is not None
    for _ in range(40):
        rows.put(np.arange(50), block)
    assert store.used < 4 << 20
    assert list(rows.take(np.arange(50)).elements()) == ["x" * 10_000] * 50


def each_way(file: SpillFile, place: Place, stretches: Stretches) -> list[Callable[[], Block]]:
    """How a block can be read: by itself, after others, and begun with before it is asked for."""

    def begun_with() -> Block:
        stretches.read(file.stretch(place), place.checksum, file.stretch(place))
        return file.read_next(place, stretches, None)

    return [lambda: file.read(place), lambda: file.read_next(place, stretches, None), begun_with]


@pytest.mark.parametrize("rows", [50, 20_000, 60_000])
def test_a_flipped_byte_is_noticed(rows: int) -> None:
    file = SpillFile(SpillStore())
    place = file.append(block_of("arrays", range(rows)))
    stretches = Stretches(Ledger(1 << 30).lease("test"))
    for offset in (0, 5, 20, place.nbytes // 2, place.nbytes - 1):
        before = os.pread(file.fileno, 1, offset)
        os.pwrite(file.fileno, bytes([before[0] ^ 1]), offset)
        for read in each_way(file, place, stretches):
            with pytest.raises(DataError, match="has come back changed"):
                read()
        os.pwrite(file.fileno, before, offset)
    for read in each_way(file, place, stretches):
        assert_same(list(read().elements()), list(file.read(place).elements()))
    os.ftruncate(file.fileno, place.nbytes - 1)
    for read in each_way(file, place, stretches):
        with pytest.raises(DataError, match="shorter"):
            read()
    stretches.stop()


def stream(rows: int) -> Dataset[Any]:
    return Dataset.from_generator(lambda: (np.full(100, i) for i in range(rows)))


@pytest.mark.parametrize("size", [None, 500])
def test_a_limit_holds_and_leaves_the_count_right(size: int | None) -> None:
    options = fb.Options(memory=50_000, spill_limit=100_000)
    it = iter(stream(1000).shuffle(size, seed=1).with_options(options))
    with pytest.raises(
        SpillError, match=r"spill_limit is 100,000 bytes; [\d,]+ are in use and [\d,]+ more are needed"
    ) as error:
        list(it)
    it.close()
    assert error.value.step is not None
    assert error.value.step.startswith("shuffle at test_spill.py:")
    assert str(error.value).startswith(f"{error.value.step}: Options.spill_limit")
    assert "memory_report() tells how much goes to disk" in str(error.value)


@pytest.mark.parametrize("size", [None, 500])
def test_statistics_tell_what_went_to_disk(size: int | None) -> None:
    dataset = stream(1000).shuffle(size, seed=1)
    for memory, least, most in (("64MiB", 0, 0), (50_000, 400_000, 2_000_000)):
        it = iter(dataset.with_options(fb.Options(memory=memory)))
        for _ in it:
            assert least <= it.stats().on_disk <= most
        assert least <= it.stats().on_disk <= most
        assert ("On disk: up to" in str(it.stats())) == (most > 0)


@pytest.mark.parametrize("kind", ["cache", "parquet"])
def test_statistics_count_what_an_earlier_iteration_has_left_on_disk(kind: str, tmp_path: Path) -> None:
    if kind == "cache":
        rows = stream(1000).cache()
    else:
        pq = pytest.importorskip("pyarrow.parquet")
        import pyarrow as pa

        pq.write_table(pa.table({"x": np.arange(100_000.0)}), tmp_path / "a.parquet", row_group_size=20_000)
        rows = Dataset.from_parquet(tmp_path / "a.parquet").shuffle(seed=1).batch(100)
    plain = rows.with_options(fb.Options(memory=400_000))
    found = []
    for dataset in (plain, plain, plain.map(lambda x: x)):
        with iter(dataset) as it:
            assert sum(1 for _ in it) == 1000
            found.append(it.stats().on_disk)
    assert found == [found[0]] * 3
    assert 60_000 < found[0] < 2_000_000
    # With what they take themselves.
    behind = plain.filter(lambda x: True).shuffle(900, seed=1).with_options(fb.Options(memory=400_000))
    with iter(behind) as it:
        assert sum(1 for _ in it) == 1000
        assert it.stats().on_disk > found[0] + 60_000
    if kind == "cache":
        plain.clear()
        with iter(plain.take(1)) as it:
            list(it)
            assert it.stats().on_disk == 0


def test_whoever_has_no_room_on_disk_is_named_whatever_comes_behind() -> None:
    options = fb.Options(memory=50_000, spill_limit=100_000)
    dataset = stream(1000).shuffle(5, seed=1).cache().map(lambda x: x, num_parallel_calls=2).batch(4).prefetch(2)
    with pytest.raises(SpillError, match=r"^cache at test_spill.py:\d+: Options.spill_limit is"):
        list(dataset.with_options(options))


def test_a_limit_may_be_a_part_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < disk_left(tmp_path) == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.1)
    rows = stream(1000).shuffle(seed=1)
    options = fb.Options(memory=50_000, spill_dir=tmp_path, spill_limit=0.5)
    expected = [x[0] for x in rows.with_options(fb.Options(memory="64MiB"))]
    assert [x[0] for x in rows.with_options(options)] == expected
    monkeypatch.setattr(os, "statvfs", lambda path: types.SimpleNamespace(f_bavail=200, f_frsize=1000))
    with pytest.raises(SpillError, match=r"spill_limit is 100,000 bytes"):
        list(rows.with_options(options))


def test_a_full_disk_is_a_clear_error() -> None:
    code = """
import signal, resource
import numpy as np, forebay as fb
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
rows = fb.Dataset.from_generator(lambda: (np.full(100, i) for i in range(2000)))
for size in (None, 1000):
    try:
        list(rows.shuffle(size).with_options(fb.Options(memory=50_000)))
    except fb.SpillError as error:
        step, line, said, _ = str(error).split(":")[:4]
        print(step, said.partition(" bytes ")[2])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "shuffle at <string> could not be spilled to disk\n" * 2
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 200_000


def test_the_folder_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    options = fb.Options(memory=50_000, spill_dir=tmp_path)
    it = iter(stream(1000).shuffle(seed=1).with_options(options))
    next(it)
    opened = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_link(fd)]
    assert any(name.startswith(str(tmp_path)) for name in opened)
    assert list(tmp_path.iterdir()) == []
    it.close()


def test_the_folder_may_be_below_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "spilled").mkdir()
    for folder in ("~/spilled", Path("~/spilled")):
        options = fb.Options(memory=50_000, spill_dir=folder)
        with iter(stream(1000).shuffle(seed=1).with_options(options)) as it:
            next(it)
            opened = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_link(fd)]
            assert any(name.startswith(str(tmp_path / "spilled")) for name in opened)


def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(folder: Path) -> str:
        rows = stream(1000).shuffle(seed=1).with_options(fb.Options(spill_dir=folder))
        with pytest.raises(SpillError, match="name a folder that files can be made in") as caught:
            iter(rows)
        return str(caught.value)

    (tmp_path / "file").touch()
    assert "missing' does not exist: " in refused(tmp_path / "missing")
    assert "file' is not a folder: " in refused(tmp_path / "file")
    # Root may write anywhere, but where the system says no.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "may not be written to: " in refused(tmp_path)
    iter(stream(1000).shuffle(seed=1)).close()


def _is_link(fd: str) -> bool:
    return os.path.islink(f"/proc/self/fd/{fd}") and os.path.lexists(f"/proc/self/fd/{fd}")


def test_nothing_is_left_by_a_process_that_was_killed(tmp_path: Path) -> None:
    code = f"""
import os, signal
import numpy as np, forebay as fb
rows = fb.Dataset.from_generator(lambda: (np.full(100, i) for i in range(3000)))
it = iter(rows.shuffle().with_options(fb.Options(memory=50_000, spill_dir={str(tmp_path)!r})))
next(it)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_slots_may_be_filled_in_any_order() -> None:
    rows = SpilledRows(SpillStore())
    for start in (40, 0):
        rows.put(np.arange(start, start + 20), block_of("shape changes", range(20)))
    # Rows of another shape join them, and slots 20 to 39 stay empty.
    rows.put(np.arange(60, 80), block_of("shape changes", range(40, 60)))
    found = list(rows.take(np.arange(50, 70)).elements())
    assert_same(found, [np.zeros(2)] * 10 + [np.zeros(3)] * 10)
    rows.close()


@pytest.mark.parametrize("bit", [0, 7, 8 * 8, 8 * 15 + 3])
def test_a_flipped_bit_of_a_row_is_noticed(bit: int, tmp_path: Path) -> None:
    rows = SpilledRows(SpillStore(tmp_path))
    rows.put(np.arange(100), Block(LEAF, [Dense(np.arange(100))], 100))
    assert rows._records is not None
    file = rows._records._table._file.fileno
    at = 16 * 50 + bit // 8
    before = os.pread(file, 1, at)
    os.pwrite(file, bytes([before[0] ^ 1 << bit % 8]), at)
    with pytest.raises(DataError, match="has come back changed"):
        rows.take(np.arange(100))
    # A row that lies in the place of another is not that one.
    os.pwrite(file, os.pread(file, 16, 16 * 3), 16 * 50)
    with pytest.raises(DataError, match="has come back changed"):
        rows.take(np.array([50]))
    rows.close()
