"""Rows that are scattered to a file: every row once, in the bucket of its word, as it came, wherever pieces end."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import forebay as fb
from forebay._native import Errands, Scattering, crc32c
from forebay.block.pages import own_pages
from forebay.ops import external_shuffle
from forebay.run.spill import SpillFile
from forebay.run.spill_room import SpillStore

PAGE = 4096


def fields_of(words: NDArray[np.uint64], widths: list[int]) -> list[NDArray[np.uint8]]:
    """Values that tell which row they belong to."""
    numbers = np.arange(len(words))
    made = [((numbers[:, None] * 7 + column * 31 + np.arange(width)) % 256) for column, width in enumerate(widths)]
    return [words.view(np.uint8), *(np.ascontiguousarray(each, np.uint8).reshape(-1) for each in made)]


def scattered(
    file: SpillFile, words: NDArray[np.uint64], widths: list[int], *, stride: int, spare: int, step: int, start: int = 0
) -> list[list[bytes]]:
    """The rows of 8 buckets, read back piece by piece."""
    errands = Errands()
    errands.allow(3)
    all_widths = np.array([8, *widths], np.int64)
    slots = own_pages((8 + spare) * stride)
    work = Scattering(errands, file.fileno, file.far, start, all_widths, 61, 8, stride, slots)
    work.begin_far(file.direct)
    fields = fields_of(words, widths)
    for at in range(0, len(words), step):
        some = len(words[at : at + step])
        end = work.end_with(some)
        work.add([field[at * width : (at + some) * width] for field, width in zip(fields, all_widths.tolist())])
        assert file_end(work) <= end
    end = work.end_at_last()
    work.finish()
    pieces = np.empty((work.untaken, 4), np.int64)
    work.take(pieces.reshape(-1))
    errands.stop()
    assert work.untaken == 0
    buckets: list[list[bytes]] = [[] for _ in range(8)]
    for bucket, offset, rows, checksum in pieces.tolist():
        piece = os.pread(file.fileno, rows * int(all_widths.sum()), offset)
        assert crc32c(piece) == checksum
        assert offset + len(piece) <= end
        columns, before = [], 0
        for width in all_widths.tolist():
            columns.append([piece[before + i * width : before + (i + 1) * width] for i in range(rows)])
            before += rows * width
        buckets[bucket] += [b"".join(parts) for parts in zip(*columns)]
    return buckets


def file_end(work: Scattering) -> int:
    """Where what has been handed over so far ends at most."""
    return work.end_with(0)


def expected(words: NDArray[np.uint64], widths: list[int]) -> list[list[bytes]]:
    columns = [
        field.reshape(len(words), -1)
        for field, width in zip(fields_of(words, widths), [8, *widths])
        if width and len(words)
    ]
    buckets: list[list[bytes]] = [[] for _ in range(8)]
    for i, word in enumerate(words.tolist()):
        buckets[word >> 61].append(b"".join(column[i].tobytes() for column in columns))
    return buckets


@given(
    words=st.lists(st.integers(0, 2**64 - 1), max_size=80),
    widths=st.lists(st.sampled_from([0, 1, 3, 8, 16, 260]), max_size=3),
    room=st.integers(1, 5),
    spare=st.integers(1, 4),
    step=st.integers(1, 90),
)
def test_every_row_is_in_the_bucket_of_its_word(
    words: list[int], widths: list[int], room: int, spare: int, step: int
) -> None:
    file = SpillFile(SpillStore())
    made = np.array(words, np.uint64)
    stride = (8 + sum(widths)) * room + 5
    found = scattered(file, made, widths, stride=stride, spare=spare, step=step)
    file.close()
    assert found == expected(made, widths)


@pytest.mark.parametrize("far", [0, 5 * PAGE, 1 << 40])
def test_what_is_far_comes_back_too(tmp_path: Path, far: int) -> None:
    file = SpillFile(SpillStore(tmp_path))
    file.far = far
    assert file.open_far() >= 0
    words = np.random.default_rng(1).integers(0, 2**64, 3000, np.uint64)
    found = scattered(file, words, [100, 8], stride=2 * PAGE, spare=3, step=500, start=PAGE)
    file.close()
    assert found == expected(words, [100, 8])


def test_what_cannot_be_written_is_an_error() -> None:
    file = os.open(os.devnull, os.O_RDONLY)
    work = Scattering(Errands(), file, 0, 0, np.array([8]), 0, 1, 64, own_pages(128))
    work.add([np.zeros(8 * 8, np.uint8)])
    with pytest.raises(OSError, match="Bad file"):
        work.finish()
    del work
    os.close(file)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"buckets": 3}, "power of two"),
        ({"buckets": 0}, "power of two"),
        ({"shift": 64}, "64 bits"),
        ({"stride": 15}, "at least one row"),
        ({"stride": 0}, "at least one row"),
        ({"widths": np.array([8, -1])}, "at least one row"),
        ({"widths": np.array([4, 8])}, "words"),
        ({"widths": np.empty(0, np.int64)}, "words"),
        ({"memory": np.zeros(32, np.uint8)}, "more slots than buckets"),
        ({"offset": -1}, "no such place"),
    ],
)
def test_shapes_that_cannot_be_are_refused(other: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "errands": Errands(),
        "file": 0,
        "far": 0,
        "offset": 0,
        "widths": np.array([8, 8]),
        "shift": 0,
        "buckets": 2,
        "stride": 16,
        "memory": np.zeros(64, np.uint8),
    }
    with pytest.raises(ValueError, match=message):
        Scattering(**(arguments | other))


def test_fields_that_do_not_belong_together_are_refused() -> None:
    work = Scattering(Errands(), 0, 0, 0, np.array([8, 4]), 0, 1, 64, np.zeros(128, np.uint8))
    with pytest.raises(ValueError, match="field for every column"):
        work.add([np.zeros(8, np.uint8)])
    with pytest.raises(ValueError, match="numbers of rows"):
        work.add([np.zeros(8, np.uint8), np.zeros(5, np.uint8)])
    with pytest.raises(ValueError, match="room for every piece"):
        work.take(np.zeros(4, np.int64))


def shuffled(monkeypatch: pytest.MonkeyPatch, left: int) -> list[tuple[int, int]]:
    monkeypatch.setattr(external_shuffle, "system_left", lambda: left)
    rows = fb.Dataset.from_generator(lambda: ((np.full(1000, i), i) for i in range(6000)))
    options = fb.Options(memory="16MiB")
    return [(int(row.sum()), int(i)) for row, i in rows.shuffle(seed=3).with_options(options)]


@pytest.mark.slow
def test_order_is_the_same_where_the_system_has_no_memory_to_keep_rows_in(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    open_far = SpillFile.open_far
    monkeypatch.setattr(SpillFile, "open_far", lambda file: (opened.append(file.far), open_far(file))[1])
    near = shuffled(monkeypatch, 1 << 40)
    assert opened == []
    assert sorted(near) == [(1000 * i, i) for i in range(6000)]
    # All of it far, and about half.
    for left in (0, (16 << 20) + (48 << 20)):
        assert shuffled(monkeypatch, left) == near
    assert opened == [0, 24 << 20]
