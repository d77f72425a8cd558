"""Files that a thread reads ahead, and looks for records in."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay as fb
from forebay._native import Coming, Errands, scan_records
from forebay.io.tfrecord import framed
from unit.support import few, python, until_error

PIECE = 1 << 18
"""What the thread reads at once."""


def packed(records: list[bytes]) -> bytes:
    offsets = np.cumsum([0, *map(len, records)])
    return framed(np.frombuffer(b"".join(records), np.uint8), offsets).tobytes()


RECORDS = [bytes([i % 251]) * (i * 37 % 700) for i in range(4000)]
DATA = packed(RECORDS)


@pytest.fixture(scope="module")
def file(tmp_path_factory: Any) -> Iterator[int]:
    path = tmp_path_factory.mktemp("ahead") / "data"
    path.write_bytes(DATA)
    number = os.open(path, os.O_RDONLY)
    yield number
    os.close(number)


class Asked:
    """A stretch that has been asked for, beside what looking at all of it at once gives."""

    def __init__(self, thread: Errands, file: int, contents: bytes, start: int, size: int, held: int, rows: int):
        self.data = np.zeros(size, np.uint8)
        self.data[:held] = np.frombuffer(contents[start : start + held], np.uint8)
        self.starts, self.stops = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        self.expected = np.frombuffer(contents[start : start + size], np.uint8)
        self.read = len(self.expected) - held
        self.coming: Coming = thread.read(file, start + held, self.data, held, self.starts, self.stops)

    def check(self) -> None:
        got, rows, used = self.coming.wait()
        starts, stops = np.zeros_like(self.starts), np.zeros_like(self.stops)
        found = scan_records(self.expected, True, starts, stops)
        assert (got, rows, used) == (self.read, *found[:2])
        assert np.array_equal(self.data[: len(self.expected)], self.expected)
        assert np.array_equal(self.starts[:rows], starts[:rows])
        assert np.array_equal(self.stops[:rows], stops[:rows])


@few
@given(
    size=st.integers(1, 3 * PIECE) | st.sampled_from([PIECE - 1, PIECE, PIECE + 1, 2 * PIECE]),
    held=st.integers(0, 900),
    rows=st.integers(0, 5000),
)
def test_what_is_read_ahead_is_what_is_there(file: int, size: int, held: int, rows: int) -> None:
    # The last one goes beyond the end of the file.
    for start in (0, len(packed(RECORDS[:1000])), len(DATA) - PIECE // 2):
        Asked(Errands(), file, DATA, start, size, min(held, size - 1), rows).check()


@few
@given(places=st.lists(st.integers(0, len(DATA) - 1), max_size=3))
def test_damage_ends_what_is_found(tmp_path_factory: Any, places: list[int]) -> None:
    contents = bytearray(DATA)
    for place in places:
        contents[place] ^= 4
    path = tmp_path_factory.mktemp("damaged") / "data"
    path.write_bytes(contents)
    with path.open("rb") as opened:
        Asked(Errands(), opened.fileno(), bytes(contents), 0, len(contents), 0, 5000).check()


def test_in_any_order_and_after_the_thread_has_ended(file: int) -> None:
    thread = Errands()
    for stops in (False, True):
        asked = [Asked(thread, file, DATA, 0, 1000 * i, 0, 100) for i in range(1, 40)]
        if stops:
            thread.stop()
        for each in [*asked[::-2], *asked[-2::-2]]:
            each.check()
            each.check()


def test_what_nobody_waits_for_is_dropped(file: int) -> None:
    thread = Errands()
    for _ in range(200):
        for size in (10, 1 << 20):
            thread.read(file, 0, np.empty(size, np.uint8), 0, np.empty(50, np.int64), np.empty(50, np.int64))
    thread.stop()
    thread.stop()


def test_failures_are_those_of_the_system(tmp_path: Path) -> None:
    thread = Errands()
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2):
        coming = thread.read(folder, 0, np.empty(8, np.uint8), 0, np.empty(0, np.int64), np.empty(0, np.int64))
        with pytest.raises(OSError, match="directory") as caught:
            coming.wait()
        assert caught.value.errno == errno.EISDIR
    os.close(folder)


def test_arguments_that_do_not_fit(file: int) -> None:
    none, some = np.empty(0, np.int64), np.empty(1, np.int64)
    with pytest.raises(ValueError, match="held"):
        Errands().read(file, 0, np.empty(8, np.uint8), 9, none, none)
    with pytest.raises(ValueError, match="differ in length"):
        Errands().read(file, 0, np.empty(8, np.uint8), 0, none, some)


def test_a_forked_process_reads_for_itself(file: int) -> None:
    """There is no thread in it, whatever was under way."""
    thread = Errands()
    asked = [Asked(thread, file, DATA, 0, len(DATA), 0, 5000) for _ in range(4)]
    child = os.fork()
    if not child:
        status = 1
        try:
            for each in asked:
                each.check()
            Asked(thread, file, DATA, 0, 5000, 0, 5000).check()
            thread.stop()
            del asked, each, thread
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for each in asked:
        each.check()


def files(folder: Path) -> list[str]:
    """Of several windows each."""
    names = []
    for number in range(5):
        names.append(str(folder / f"{number}.tfrecord"))
        rows = [b"%d-%d " % (number, row) * (row % (40 if number else 9000)) for row in range(9000 // (1 + number))]
        Path(names[-1]).write_bytes(packed(rows))
    return names


def interleaved(names: list[str], calls: int | None, **how: Any) -> fb.Dataset[Any]:
    return fb.Dataset.from_tensor_slices(names).interleave(
        lambda name: fb.TFRecordDataset(name, **how), 3, 7, num_parallel_calls=calls
    )


@pytest.mark.parametrize("memory", ["1MiB", "1GiB"])
def test_rows_and_states_are_the_same(tmp_path: Path, memory: str) -> None:
    names = files(tmp_path)[1:]
    options = fb.Options(memory=memory)
    plain, ahead = (interleaved(names, calls).with_options(options) for calls in (None, fb.AUTOTUNE))
    expected = list(plain)
    assert list(ahead) == expected
    for stop in range(0, len(expected), len(expected) // 7):
        with iter(ahead) as it:
            for _ in range(stop):
                next(it)
            state = it.state_dict()
        for dataset in (plain, ahead):
            with iter(dataset) as it:
                it.load_state_dict(state)
                assert list(it) == expected[stop:]


def test_rows_that_others_keep_stay_as_they_are(tmp_path: Path) -> None:
    """Buffers are used again, but not before nobody looks at them."""
    names = files(tmp_path)[1:]
    expected = list(interleaved(names, None))
    kept = interleaved(names, fb.AUTOTUNE).cache()
    assert [list(kept) for _ in range(3)] == [expected] * 3
    moved = interleaved(names, fb.AUTOTUNE).shuffle(5000, seed=1)
    assert list(moved) == list(interleaved(names, None).shuffle(5000, seed=1))
    assert list(interleaved(names, fb.AUTOTUNE).batch(7000).unbatch()) == expected


def test_large_and_small_records(tmp_path: Path) -> None:
    names = files(tmp_path)
    assert list(interleaved(names, fb.AUTOTUNE)) == list(interleaved(names, None))


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("cut", [False, True])
def test_damaged_files(tmp_path: Path, on_error: str, cut: bool) -> None:
    names = files(tmp_path)[1:]
    for name in names:
        contents = bytearray(Path(name).read_bytes())
        for place in (len(contents) // 3, len(contents) // 2):
            contents[place] ^= 1
        Path(name).write_bytes(contents[: len(contents) - cut])
    rows, error = until_error(interleaved(names, None, on_error=on_error))
    ahead, failure = until_error(interleaved(names, fb.AUTOTUNE, on_error=on_error))
    assert ahead == rows
    assert str(failure) == str(error)
    assert (error is None) == (on_error == "skip")


def test_a_file_that_becomes_shorter_meanwhile(tmp_path: Path) -> None:
    names = files(tmp_path)[1:2]
    with iter(interleaved(names, fb.AUTOTUNE)) as it:
        first = next(it)
        os.truncate(names[0], 600_000)
        rows, error = until_error(it)
    assert error is None or isinstance(error, fb.FileError)
    whole = list(interleaved(files(tmp_path)[1:2], None))
    assert [first, *rows] == whole[: 1 + len(rows)]


def test_small_records_before_large_ones_keep_to_the_budget(tmp_path: Path) -> None:
    """How many were small says nothing of how much of the large ones to read."""
    names = []
    for number in range(6):
        names.append(str(tmp_path / f"{number}.tfrecord"))
        sizes = [100] * 2000 + ([1 << 20] + [50] * 200 + [100_000] * 5) * 4
        Path(names[-1]).write_bytes(packed([bytes(size) for size in sizes]))
    peaks = []
    for calls in (None, fb.AUTOTUNE):
        dataset = fb.Dataset.from_tensor_slices(names).interleave(fb.TFRecordDataset, 6, num_parallel_calls=calls)
        with iter(dataset.with_options(fb.Options(memory="128MiB"))) as it:
            assert sum(1 for _ in it) == 6 * len(sizes)
            peaks.append(it.ledger.peak)
    assert peaks[1] < peaks[0] + (8 << 20)


def test_inner_datasets_with_threads_of_their_own(tmp_path: Path) -> None:
    """They ask for files while the iteration ends, which may come at any time."""
    names = str(files(tmp_path)[1:])
    python(
        f"""
import random
import forebay as fb
inner = lambda name: fb.TFRecordDataset(name).prefetch(2)
ds = fb.Dataset.from_tensor_slices({names}).interleave(inner, 4, num_parallel_calls=fb.AUTOTUNE).take(3000)
chance = random.Random(1)
for _ in range(60):
    with iter(ds) as it:
        for _ in zip(range(chance.randrange(3000)), it):
            pass
for _ in range(20):
    assert sum(1 for _ in ds) == 3000
"""
    )


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_the_thread_ends_with_the_iteration(tmp_path: Path) -> None:
    dataset = interleaved(files(tmp_path), fb.AUTOTUNE)
    with iter(dataset) as it:
        next(it)
    before = threads()
    for _ in range(3):
        it = iter(dataset)
        assert threads() == before
        next(it)
        assert threads() > before
        it.close()
        assert threads() == before
        list(dataset)
        assert threads() == before
        it = iter(dataset)
        next(it)
        del it
        assert threads() == before


def test_no_thread_where_nobody_asked_for_any_or_there_is_one_processor(tmp_path: Path) -> None:
    names = files(tmp_path)
    alone = fb.Options()
    alone.autotune.cpu_budget = 1
    for dataset in (interleaved(names, None), interleaved(names, fb.AUTOTUNE).with_options(alone)):
        before = threads()
        with iter(dataset) as it:
            next(it)
            assert threads() == before
