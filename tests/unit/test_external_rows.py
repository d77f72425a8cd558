"""An external shuffle's rows on disk: of any kind, in the same order, checked, counted and in pieces of a good size."""

import os
import threading
from contextlib import suppress
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from forebay.block import Block, Structure
from forebay.block.dense import Dense
from forebay.errors import DataError, SpillError
from forebay.run.places import Places
from forebay.run.spill import SpillFile
from forebay.run.spill_room import SpillStore
from unit.support import assert_same

KINDS: dict[str, Any] = {
    "several leaves": lambda i: {"x": np.full(3, i, np.float32), "y": (i, np.int8(i % 5))},
    "nothing in some leaf": lambda i: (i, np.empty((2, 0))),
    "structured": lambda i: np.array((i, i / 2), [("a", "i4"), ("b", "f8")]),
    "text": lambda i: f"{i} " * (i % 7),
    "uneven": lambda i: np.arange(i, i + i % 5),
    "large rows": lambda i: np.full(70_000, i % 251, np.uint8),
    "another shape later": lambda i: np.full(2 if i < 150 else 3, i),
    "another shape at once": lambda i: np.full(2 if i < 2 else 3, i),
    "None later": lambda i: i if i < 150 else None,
    "dates": lambda i: np.datetime64("2020-01-01") + i,
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_any_kind_come_in_the_same_order_at_any_budget(kind: str) -> None:
    rows = [KINDS[kind](i) for i in range(300)]
    size = 90_000 if kind == "large rows" else 0
    whole, tight, tighter = (
        list(Dataset.from_generator(lambda: iter(rows)).shuffle(seed=5).with_options(fb.Options(memory=memory)))
        for memory in ("1GiB", 6_000 + 8 * size, 600 + 2 * size)
    )
    assert_same(tight, whole)
    assert_same(tighter, whole)


@pytest.mark.parametrize("kind", ["several leaves", "text"])
def test_a_flipped_byte_on_disk_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files: list[SpillFile] = []
    made = SpillFile.__init__
    monkeypatch.setattr(SpillFile, "__init__", lambda file, store: (made(file, store), files.append(file))[0])
    rows = Dataset.from_generator(lambda: (KINDS[kind](i) for i in range(2000)))
    with iter(rows.shuffle(seed=1).with_options(fb.Options(memory=8_000))) as it:
        next(it)
        file, _ = files
        for offset in range(0, len(file), 100):
            before = os.pread(file.fileno, 1, offset)
            os.pwrite(file.fileno, bytes([before[0] ^ 1]), offset)
        with pytest.raises(fb.DataError, match="has come back changed"):
            list(it)


def test_a_full_disk_is_an_error_and_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    stores: list[SpillStore] = []
    made = SpillFile.__init__
    monkeypatch.setattr(SpillFile, "__init__", lambda file, store: (stores.append(store), made(file, store))[1])
    rows = Dataset.from_generator(lambda: (np.full(50, i) for i in range(2000))).shuffle(seed=1)
    threads = threading.active_count()
    with (
        pytest.raises(fb.SpillError, match="spill_limit"),
        iter(rows.with_options(fb.Options(memory=20_000, spill_limit=50_000))) as it,
    ):
        next(it)
    assert stores[0].used == 0
    assert threading.active_count() == threads


def test_small_budgets_do_not_make_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    extend = Places.extend
    monkeypatch.setattr(Places, "extend", lambda self, some: (pieces.extend(some[:, 1]), extend(self, some))[1])
    rows = Dataset.from_generator(lambda: (np.full(1000, i) for i in range(4000))).shuffle(seed=1)
    found = [int(x[0]) for x in rows.with_options(fb.Options(memory="8MiB"))]
    assert sorted(found) == list(range(4000))
    # What is left in every bucket at the end is less than a piece.
    assert np.median(pieces) > 30_000


def test_large_files_are_freed_before_the_next_is_made(tmp_path: Path) -> None:
    """The end of an epoch does not wait for it, but whoever needs the disk does."""
    store = SpillStore(tmp_path)
    first = SpillFile(store)
    first.put([bytes(1 << 20)] * 65)
    first.close()
    assert store.used == 0
    second = SpillFile(store)
    assert sum(name.startswith(str(tmp_path)) for name in open_files()) == 1
    second.close()


def open_files() -> list[str]:
    found = []
    for each in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{each}"))
    return found


def taken(*files: SpillFile) -> int:
    """Bytes on the disk."""
    return sum(os.fstat(file.fileno).st_blocks * 512 for file in files)


def test_files_keep_to_the_limit_together(tmp_path: Path) -> None:
    store = SpillStore(tmp_path, 4 << 20)
    files = SpillFile(store), SpillFile(store)
    for file in files * 2:
        file.put([bytes(1 << 20)])
    # The disk counts some blocks of its own.
    assert taken(*files) <= (4 << 20) + (64 << 10)
    with pytest.raises(SpillError, match="4,194,304 are in use"):
        files[0].put([b"x"])
    for file in files:
        assert os.fstat(file.fileno).st_size == 2 << 20
        file.close()
    assert store.used == 0


def test_what_was_set_aside_goes_back(tmp_path: Path) -> None:
    file = SpillFile(SpillStore(tmp_path))
    file.put([bytes(3 << 20)])
    file.trim()
    assert taken(file) <= (3 << 20) + (64 << 10)
    offset, digest = file.put([b"behind that"])
    found = np.empty(11, np.uint8)
    file.read_into(offset, found, digest)
    assert found.tobytes() == b"behind that"
    file.close()


def test_places_that_nobody_reads_any_more_go_back(tmp_path: Path) -> None:
    store = SpillStore(tmp_path)
    file = SpillFile(store)
    first, second, third = (file.append(column_block(byte)) for byte in (1, 2, 3))
    file.trim()
    used, before = store.used, taken(file)
    file.free(second)
    freed = used - store.used
    assert second.nbytes - 2 * PAGESIZE <= freed <= second.nbytes
    assert taken(file) == before - freed
    for place, byte in ((first, 1), (third, 3)):
        assert np.asarray(file.read(place).columns[0].values).tobytes() == bytes([byte]) * (1 << 20)
    with pytest.raises(DataError):
        file.read(second)
    file.close()
    assert store.used == 0


def column_block(byte: int) -> Block:
    return Block(Structure(None), [Dense(np.full(1 << 20, byte, np.uint8))], 1 << 20)
