"""A cache in a folder: writers that are killed, files that are damaged, a disk that is full, two that race."""

import os
import random
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from faults.nursery import Nursery
from forebay import Dataset, Options
from unit.support import plain, until_error

ROWS = 3000

PIPELINE = """
import os, random, signal, sys
import numpy as np
import forebay as fb

def function(x):
    return x, np.full(20, x * 0.5)

def build(folder):
    dataset = fb.Dataset.range(3000).map(function).filter(lambda x, y: x % 7 != 3).cache(folder)
    return dataset.with_options(fb.Options(block_bytes=2000))

def check(dataset):
    rows = [x for x in range(3000) if x % 7 != 3]
    count = 0
    for x, (number, values) in zip(rows, dataset, strict=True):
        assert number == x and values.shape == (20,) and (values == x * 0.5).all(), (x, number)
        count += 1
    return count
"""

# Dies at the n-th call that changes a file, before it, after it or half-way through it.
KILLED = (
    PIPELINE
    + """
draw = random.Random(int(sys.argv[2]))
left = draw.choice([draw.randrange(6), draw.randrange(60), draw.randrange(160)])

def deadly(name, half):
    real = getattr(os, name)
    def call(*arguments):
        global left
        left -= 1
        how = draw.random() if left < 0 else None
        if how is not None and how < 0.6:
            if how > 0.2 and half is not None:
                real(*half(*arguments))
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments)
        if how is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(os, name, call)

def some_bytes(file, views, offset):
    joined = b"".join(views)
    return file, [joined[: draw.randrange(len(joined))]], offset

deadly("pwritev", some_bytes)
for name in ("fsync", "replace", "ftruncate"):
    deadly(name, None)
check(build(sys.argv[1]))
print("survived")
"""
)
CHECKED = PIPELINE + "print(check(build(sys.argv[1])), check(build(sys.argv[1])))"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(34))
def test_killed_while_filling(tmp_path: Path, seed: int, nursery: Nursery) -> None:
    """Killed up to three times in a row, each time at another point; then all is well."""
    died = 0
    for attempt in range(3):
        done = nursery.run(KILLED, tmp_path, seed * 10 + attempt)
        if done.returncode == 0:
            assert done.stdout == "survived\n"
        else:
            assert done.returncode == -signal.SIGKILL, done.stderr
            died += 1
    done = nursery.run(CHECKED, tmp_path)
    assert done.stdout.split() == [str(ROWS - 429)] * 2, done.stderr
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".data", ".index", ".plan"]
    assert died or seed not in (0, 1, 2), "the points are too late to kill anything"


def build(folder: Path, rows: int = ROWS, compression: Any = None) -> Dataset[Any]:
    dataset = Dataset.range(rows).map(lambda x: (x, np.full(20, x * 0.5))).cache(folder, compression=compression)
    return dataset.with_options(Options(block_bytes=2000))


def assert_right(dataset: Dataset[Any], rows: int = ROWS) -> None:
    elements = list(dataset)
    np.testing.assert_array_equal(np.array([x for x, _ in elements]), np.arange(rows))
    np.testing.assert_array_equal(
        np.array([y for _, y in elements]), np.repeat(np.arange(rows) * 0.5, 20).reshape(-1, 20)
    )


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(bytes(data))


def only(folder: Path, ending: str) -> Path:
    (found,) = folder.glob(f"*.{ending}")
    return found


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("complete", [True, False], ids=["complete", "part"])
@pytest.mark.parametrize("ending", ["data", "index", "data without index"])
def test_flipped_bytes_are_noticed_and_mended(tmp_path: Path, ending: str, complete: bool, compression: Any) -> None:
    draw = random.Random(f"{ending} {complete}")
    for round in range(12):
        folder = tmp_path / str(round)
        with iter(build(folder, compression=compression)) as it:
            for _ in range(ROWS if complete else 1500):
                next(it)
            if complete:
                assert next(it, None) is None
        if ending == "data without index":
            only(folder, "index").unlink()
        path = only(folder, ending.split()[0])
        size = path.stat().st_size
        for _ in range(draw.choice([1, 5])):
            flip(path, draw.choice([draw.randrange(size), draw.randrange(40), size - 1 - draw.randrange(40)]))
        assert_right(build(folder, compression=compression))
        assert_right(build(folder, compression=compression))


def test_what_was_mended_stays_mended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert_right(build(tmp_path))
    records = build(tmp_path).plan.input.content._records  # type: ignore[attr-defined]
    middle = records[len(records) // 2]
    flip(only(tmp_path, "data"), middle.end - middle.payload // 2)
    dataset = build(tmp_path)
    content = dataset.plan.input.content  # type: ignore[attr-defined]
    damaged = _damaged(content)
    assert len(damaged) == 1
    assert_right(dataset)
    (said,) = caplog.messages
    assert f"elements {middle.row:,} to {middle.stop - 1:,} in {tmp_path} do not read back as they were" in said
    assert _damaged(build(tmp_path).plan.input.content) == []  # type: ignore[attr-defined]


def refuse_writers(folder: Path) -> None:
    """As in a folder that may only be read, also for root: the lock cannot be had."""
    (folder / "lock").unlink()
    (folder / "lock").mkdir()


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_damage_is_computed_again_where_nothing_can_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, compression: Any
) -> None:
    assert_right(build(tmp_path, compression=compression))
    refuse_writers(tmp_path)
    data = only(tmp_path, "data")
    size = data.stat().st_size
    for part in (0.3, 0.6):
        flip(data, int(size * part))
    before = data.read_bytes()
    dataset = build(tmp_path, compression=compression)
    for _ in range(2):
        caplog.clear()
        assert_right(dataset)
        _, said = caplog.messages  # Of both, once each.
        assert re.search(r"stays damaged there, .* cannot be written: Is a directory \(.*/lock\)", said)
    assert data.read_bytes() == before


def test_a_damaged_index_of_rows_that_are_all_there_where_nothing_can_be_written(tmp_path: Path) -> None:
    assert_right(build(tmp_path))
    refuse_writers(tmp_path)
    flip(only(tmp_path, "index"), 100)
    for _ in range(2):
        assert_right(build(tmp_path))


def test_a_part_where_nothing_can_be_written_is_an_error(tmp_path: Path) -> None:
    """Rows that are to be kept for the first time, and cannot be: what was asked for is not there."""
    with iter(build(tmp_path)) as it:
        for _ in range(1500):
            next(it)
    refuse_writers(tmp_path)
    with iter(build(tmp_path)) as it:
        seen, error = until_error(it)
    assert 1500 <= len(seen) < ROWS
    assert isinstance(error, fb.SpillError)


def _damaged(content: Any) -> list[int]:
    from forebay.storage.checked import checksum

    def payload(record: Any) -> Any:
        return content._file.read(record.end - record.payload, record.payload)

    return [record.row for record in content._records if checksum(payload(record)) != record.checksum]


@pytest.mark.parametrize("with_index", [True, False])
def test_truncated_files(tmp_path: Path, with_index: bool) -> None:
    draw = random.Random(3)
    for round in range(12):
        folder = tmp_path / str(round)
        assert_right(build(folder))
        data = only(folder, "data")
        size = data.stat().st_size
        os.truncate(data, draw.choice([0, 1, 19, 20, 21, size - 1, draw.randrange(size), draw.randrange(size)]))
        if not with_index:
            os.truncate(only(folder, "index"), draw.randrange(100))
        assert_right(build(folder))
        assert_right(build(folder))


def test_what_the_disk_cannot_read_is_computed_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cached = Dataset.range(20_000).cache(tmp_path / "kept").with_options(fb.Options(block_bytes=4000))
    assert plain(list(cached)) == list(range(20_000))
    unreadable = os.open("/proc/self/mem", os.O_RDONLY)
    with iter(cached) as it:
        first = int(next(it))
        # Reading where a process has no memory is an I/O error, as that of a disk is.
        for number in os.listdir("/proc/self/fd"):
            if os.path.realpath(f"/proc/self/fd/{number}").startswith(str(tmp_path)) and int(number) != unreadable:
                os.dup2(unreadable, int(number), inheritable=False)
        assert [first, *plain(list(it))] == list(range(20_000))
    os.close(unreadable)
    assert "do not read back as they were written" in caplog.text
    assert plain(list(cached)) == list(range(20_000))


def test_truncated_while_it_is_read(tmp_path: Path) -> None:
    assert_right(build(tmp_path))
    dataset = build(tmp_path)
    with iter(dataset) as it:
        for i in range(100):
            assert next(it)[0] == i
        os.truncate(only(tmp_path, "data"), 50_000)
        for i in range(100, ROWS):
            x, values = next(it)
            assert x == i
            assert (values == i * 0.5).all()
    assert_right(dataset)
    assert_right(build(tmp_path))


def test_files_deleted_by_somebody(tmp_path: Path) -> None:
    for ending in ("data", "index", ""):
        assert_right(build(tmp_path))
        for path in tmp_path.iterdir():
            if path.suffix == f".{ending}" or not ending:
                path.unlink()
        assert_right(build(tmp_path))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for about 200,000 bytes: a file system of its own for root, else by a limit on files."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = (
        os.geteuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
        == 0
    )
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    try:
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_said_and_leaves_what_there_is(small_disk: Path) -> None:
    for _ in range(3):
        with iter(build(small_disk)) as it:
            seen, error = until_error(it)
        assert isinstance(error, fb.SpillError)
        assert re.search(r"(disk is full|that large there); [\d,]+ elements are in it and stay usable", str(error))
        assert [int(x) for x, _ in seen] == list(range(len(seen)))
        assert len(seen) > 500
    # It still serves as many; the next ones are computed, and there is no room to keep them.
    dataset = build(small_disk)
    kept = dataset.plan.input.content.rows  # type: ignore[attr-defined]
    assert kept >= 500
    for i, (x, _values) in zip(range(kept), dataset, strict=False):
        assert x == i


def test_every_failing_write_is_a_clear_error_and_leaves_a_usable_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = {name: getattr(os, name) for name in ("pwritev", "fsync", "replace", "ftruncate")}
    left = [0]

    def failing(name: str) -> Any:
        def call(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if name == "pwritev":
                    file, views, offset = arguments
                    real[name](file, [views[0][: len(views[0]) // 2]], offset)
                raise OSError(28, "No space left on device")
            return real[name](*arguments)

        return call

    failed = 0
    for point in range(1, 200):
        folder = tmp_path / str(point)
        left[0] = point
        with monkeypatch.context() as patched:
            for name in real:
                patched.setattr(os, name, failing(name))
            with iter(build(folder, 800)) as it:
                seen, error = until_error(it)
        assert [int(x) for x, _ in seen] == list(range(len(seen)))
        if error is not None:
            failed += 1
            assert isinstance(error, fb.SpillError)
            assert "the disk is full" in str(error)
        assert_right(build(folder, 800), 800)
        if left[0] > 0:
            break
    # Every call failed once: some with the error, those of a close quietly.
    assert failed > 10
    assert left[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("round", range(20))
def test_two_processes_race(tmp_path: Path, round: int, nursery: Nursery) -> None:
    """Both get everything, and one of them has kept it."""
    for pid in [nursery.start(CHECKED, tmp_path) for _ in range(2)]:
        done = nursery.wait(pid)
        assert done.stdout.split() == [str(ROWS - 429)] * 2, done.stderr
    assert nursery.run(CHECKED, tmp_path).stdout.split() == [str(ROWS - 429)] * 2
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".data", ".index", ".plan"]


def test_one_killed_while_another_reads(tmp_path: Path, nursery: Nursery) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", PIPELINE + WAITING, str(tmp_path)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "1000\n"
    reader = subprocess.Popen(
        [sys.executable, "-c", PIPELINE + WAITING.replace("1000:", "500:"), str(tmp_path)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "500\n"
    writer.kill()
    writer.communicate()
    out, _ = reader.communicate("go on\n", timeout=300)
    assert out == f"{ROWS - 429}\n"
    assert nursery.run(CHECKED, tmp_path).stdout.split() == [str(ROWS - 429)] * 2


WAITING = """
def stopping(dataset):
    for i, element in enumerate(dataset):
        if i == 1000:
            print(i, flush=True)
            sys.stdin.readline()
        yield element

print(check(stopping(build(sys.argv[1]))))
"""
