"""Large results are copied once, next to one another, and nothing else changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.block import RowBuilder
from forebay.block.dense import Dense
from forebay.block.shelf import Shelf, keeper

LARGE = 1000  # Numbers of 8 bytes: beyond what is copied twice.


def large(i: int, size: int = LARGE, dtype: Any = np.int64) -> np.ndarray:
    return np.full(size, i, dtype)


def column_of(elements: list[Any], rows: int = 8, most_bytes: int = 1 << 30) -> tuple[Any, Shelf | None]:
    keep, shelf = keeper(elements[0], rows, most_bytes)
    block, fault = RowBuilder().build([keep(element) for element in elements], shelf)
    assert fault is None
    assert block is not None
    return block.columns[0], shelf


def test_rows_of_one_shape_are_a_column_already() -> None:
    elements = [large(i) for i in range(5)]
    keep, shelf = keeper(elements[0], 8, 1 << 30)
    kept = [keep(element) for element in elements]
    assert shelf is not None
    column = shelf.column(kept)
    assert isinstance(column, Dense)
    assert np.shares_memory(column.values, kept[0])
    assert np.array_equal(column.values, np.stack(elements))


def test_a_buffer_that_is_filled_again_is_kept_as_it_was() -> None:
    buffer = np.zeros(LARGE)

    def fill(i: int) -> np.ndarray:
        buffer[:] = i
        return buffer

    got = list(fb.Dataset.range(50).map(fill))
    assert [row[0] for row in got] == list(range(50))
    assert all(row.flags.writeable for row in got)


@pytest.mark.parametrize(
    "function",
    [
        lambda i: large(i, LARGE + int(i)),
        lambda i: large(i, 3 if i < 20 else LARGE),
        lambda i: large(i, LARGE if i < 20 else 3),
        lambda i: large(i).reshape(10, 100) if i % 2 else large(i).reshape(10, 100, order="F"),
        lambda i: large(i)[::-1],
        lambda i: large(i, 2 * LARGE)[::2],
        lambda i: large(i, dtype=">i8"),
        lambda i: np.full(LARGE, str(i)),
        lambda i: np.full(LARGE, np.datetime64("2026-01-01") + i),
        lambda i: np.frombuffer(bytes([i % 256]) * 9000, np.uint8),
        lambda i: np.broadcast_to(i, LARGE),
    ],
    ids=[
        "lengths",
        "grows",
        "shrinks",
        "orders",
        "reversed",
        "strided",
        "endian",
        "text",
        "times",
        "bytes",
        "broadcast",
    ],
)
def test_other_arrays_come_out_as_they_do_row_by_row(function: Callable[[Any], Any]) -> None:
    dataset = fb.Dataset.range(60).map(function)
    expected = list(dataset.with_options(fb.Options(block_bytes=1)))
    got = list(dataset)
    for one, other, i in zip(expected, got, range(60), strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
        assert np.array_equal(np.asarray(other), np.asarray(function(np.int64(i))).astype(other.dtype))
        other[...] = other[::-1].copy()  # What is handed out is the user's.


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_leaves_of_equal_shape_stay_apart(executor: str) -> None:
    def pair(i: int) -> dict[str, Any]:
        return {"a": (large(i), large(-i)), "b": large(2 * i), "c": i}

    calls = None if executor == "inline" else 2
    dataset = fb.Dataset.range(40).map(pair, num_parallel_calls=calls, executor=executor)
    for i, element in enumerate(dataset):
        assert element["a"][0][0] == i == element["c"]
        assert element["a"][1][-1] == -i
        assert element["b"][5] == 2 * i


def test_one_element_in_two_places_is_not_mixed_up() -> None:
    def twice(i: int) -> tuple[np.ndarray, np.ndarray]:
        same = large(i)
        return same, same

    for i, (one, other) in enumerate(fb.Dataset.range(30).map(twice)):
        one[:] = -1
        assert (other == i).all()


def test_rows_that_become_large_take_no_more_than_is_enough() -> None:
    keep, shelf = keeper(large(0), 1 << 40, 10 * 8 * LARGE)
    assert shelf is not None
    kept = [keep(large(i)) for i in range(30)]
    assert [row[0] for row in kept] == list(range(30))
    assert shelf.column(kept) is None
    column, _ = column_of([large(i) for i in range(30)], most_bytes=10 * 8 * LARGE)
    assert len(column) == 30


def test_a_dtype_that_changes_is_still_an_error() -> None:
    dataset = fb.Dataset.range(40).map(lambda i: large(i, dtype=np.int64 if i < 30 else np.float32))
    with pytest.raises(fb.DataError, match=r"element 30.*float32"):
        list(dataset)


@pytest.mark.parametrize(("first", "second"), [("f8", "f4"), ("f8", "i8"), ("f4", "f8"), ("f8", "M8[s]")])
def test_one_that_changes_where_a_block_begins_is_too(first: str, second: str) -> None:
    builder = RowBuilder()
    for dtype, fits in ((first, True), (first, True), (second, False)):
        rows = [np.zeros(LARGE, dtype) for _ in range(3)]
        keep, shelf = keeper(rows[0], 3, 1 << 30)
        block, fault = builder.build([keep(row) for row in rows], shelf)
        assert (fault is None) == (block is not None) == fits


def test_small_pieces_of_large_bytes_do_not_keep_these() -> None:
    def header(i: int) -> np.ndarray | None:
        return None if i % 10 == 9 else np.frombuffer(bytes(100_000), np.uint8, count=80)

    for row in fb.Dataset.range(40).map(header):
        assert row is None or not isinstance(row.base, bytes)


def test_with_a_generator_of_random_numbers_and_from_a_generator() -> None:
    def noisy(i: int, rng: np.random.Generator) -> np.ndarray:
        return rng.random(LARGE) + i

    dataset = fb.Dataset.range(40).map(noisy, rng=True, seed=3)
    rows = list(dataset)
    assert [int(row[0]) for row in rows] == list(range(40))
    again = list(dataset.with_options(fb.Options(block_bytes=1)))
    assert [int(row[0]) for row in again] == list(range(40))

    buffer = np.zeros(LARGE)

    def filled() -> Any:
        for i in range(40):
            buffer[:] = i
            yield buffer, i

    for i, (row, number) in enumerate(fb.Dataset.from_generator(filled)):
        assert (row == i).all()
        assert number == i
