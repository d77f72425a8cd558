"""Rows that were written in pieces come into blocks in the order of their words, and what cannot be is refused."""

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._native import Errands, crc32c
from forebay.block.pages import PagePool


@pytest.fixture
def errands() -> Iterator[Errands]:
    made = Errands()
    yield made
    made.stop()


Asked = dict[str, Any]


def written(file: Any, pieces: list[tuple[np.ndarray, list[np.ndarray]]], widths: list[int]) -> Asked:
    """Pieces in a file, and what is asked of it; `pieces` have words and the rows of every column."""
    starts, sums = [], []
    for words, columns in pieces:
        file.write(b"x" * 5)
        starts.append(file.tell())
        data = words.tobytes() + b"".join(each.tobytes() for each in columns)
        sums.append(crc32c(data))
        file.write(data)
    file.flush()
    return {
        "file": file.fileno(),
        "starts": np.array(starts),
        "rows": np.array([len(words) for words, _ in pieces]),
        "widths": np.array(widths, np.int64),
        "sums": sums,
    }


def blocks_for(asked: Asked, rows: int, block_rows: int) -> tuple[np.ndarray, list[np.ndarray]]:
    offsets = np.cumsum([0, *asked["widths"] * block_rows])
    return offsets[:-1].copy(), [np.zeros(offsets[-1], np.uint8) for _ in range(-(-rows // block_rows))]


@given(
    counts=st.lists(st.integers(1, 400), min_size=1, max_size=4),
    widths=st.lists(st.sampled_from([0, 1, 3, 8, 16, 260, 1024]), min_size=1, max_size=3),
    known=st.sampled_from([0, 4, 60, 64]),
    block_rows=st.integers(1, 500),
    skipped=st.integers(0, 1500),
    seed=st.integers(0, 9),
    far=st.sampled_from([None, 0, 4096, 1 << 18]),
)
def test_rows_come_in_the_order_of_their_words(
    counts: list[int], widths: list[int], known: int, block_rows: int, skipped: int, seed: int, far: int | None
) -> None:
    rng = np.random.default_rng(seed)
    total = sum(counts)
    skipped = min(skipped, total - 1)
    words = rng.integers(0, 2**64, total, np.uint64)
    # Of the bits that are not known there are few, so that there are equal words too.
    words = words >> np.uint64(known) if known < 64 else np.zeros(total, np.uint64)
    columns = [rng.integers(0, 256, (total, width), np.uint8) for width in widths]
    ends = np.cumsum(counts)
    pieces = [
        (words[end - count : end], [each[end - count : end] for each in columns]) for end, count in zip(ends, counts)
    ]
    errands = Errands()
    with tempfile.TemporaryFile() as file:
        asked = written(file, pieces, widths)
        offsets, blocks = blocks_for(asked, total - skipped, block_rows)
        found = np.zeros(len(counts), np.int64)
        direct = -1 if far is None else os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY | os.O_DIRECT)
        # What is far is read by several threads.
        errands.allow(3)
        errands.read_arranged(
            asked["file"],
            direct,
            far or 0,
            asked["starts"],
            asked["rows"],
            asked["widths"],
            offsets,
            known,
            skipped,
            blocks,
            block_rows,
            found,
        ).wait()
    errands.stop()
    if direct >= 0:
        os.close(direct)
    assert found.tolist() == asked["sums"]
    order = np.argsort(words, kind="stable")[skipped:]
    for number, block in enumerate(blocks):
        wanted = order[number * block_rows : (number + 1) * block_rows]
        for start, width, column in zip(offsets, widths, columns):
            rows = block[start : start + len(wanted) * width].reshape(len(wanted), width)
            assert np.array_equal(rows, column[wanted])


def _asked(errands: Errands, file: Any, **other: Any) -> Any:
    asked = written(file, [(np.arange(4, dtype=np.uint64), [np.zeros((4, 8), np.uint8)])], [8])
    arguments = {
        "file": asked["file"],
        "direct": -1,
        "far": 0,
        "starts": asked["starts"],
        "rows": asked["rows"],
        "widths": asked["widths"],
        "offsets": np.array([0]),
        "known": 0,
        "skipped": 0,
        "blocks": [np.zeros(32, np.uint8)],
        "block_rows": 4,
        "checksums": np.zeros(1, np.int64),
    }
    return errands.read_arranged(**(arguments | other))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"starts": np.array([0, 0])}, "differ in length"),
        ({"starts": np.array([-1])}, "no such place"),
        ({"starts": np.array([2**63 - 5])}, "no such place"),
        ({"rows": np.array([-1])}, "rows in a piece"),
        ({"rows": np.array([2**40])}, "rows in a piece"),
        ({"widths": np.array([-8])}, "no such width"),
        ({"widths": np.array([2**31 - 1])}, "too wide"),
        ({"widths": np.array([8, 8])}, "differ in length"),
        ({"offsets": np.array([1])}, "within its block"),
        ({"offsets": np.array([-1])}, "within its block"),
        ({"known": 65}, "64 bits"),
        ({"skipped": 4}, "no such rows"),
        ({"block_rows": 0}, "at least one row"),
        ({"blocks": []}, "not a block for all rows"),
        ({"blocks": [np.zeros(31, np.uint8)]}, "within its block"),
        ({"checksums": np.zeros(2, np.int64)}, "differ in length"),
    ],
)
def test_what_cannot_be_is_refused(errands: Errands, other: dict[str, Any], message: str) -> None:
    with tempfile.TemporaryFile() as file, pytest.raises(ValueError, match=message):
        _asked(errands, file, **other)


def test_memory_of_another_kind_is_refused_and_not_copied(errands: Errands) -> None:
    with tempfile.TemporaryFile() as file:
        with pytest.raises((TypeError, RuntimeError)):
            _asked(errands, file, blocks=[np.zeros(4)])
        memory = np.zeros(32, np.uint8)
        memory.flags.writeable = False
        with pytest.raises((TypeError, RuntimeError)):
            _asked(errands, file, blocks=[memory])


def test_a_file_that_is_too_short_is_told(errands: Errands) -> None:
    with tempfile.TemporaryFile() as file:
        arranging = _asked(errands, file, starts=np.array([20]))
        with pytest.raises(EOFError):
            arranging.wait()


def test_memory_is_used_again_once_nobody_refers_to_it() -> None:
    pool = PagePool()
    first = pool.take(3, 4096)
    addresses = [each.ctypes.data for each in first]
    view = np.ndarray((4,), np.int64, first[1], 64)[1:].reshape(3, 1)
    del first
    second = pool.take(3, 4096)
    again = [each.ctypes.data for each in second]
    assert sorted(again)[:] != sorted(addresses)
    assert set(again) & set(addresses) == {addresses[0], addresses[2]}
    view[:] = 7
    assert not any(each.any() for each in second)
    del view, second
    assert addresses[1] in [each.ctypes.data for each in pool.take(4, 4096)]


def test_memory_of_another_size_is_not_kept() -> None:
    pool = PagePool()
    pool.take(5, 1 << 16)
    pool.take(2, 4096)
    assert pool.nbytes == 2 * 4096
