"""Blocks and arrays on their way to workers and back."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forebay.block import LEAF, Block, Cursor, Structure, column_from_rows
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.strings import Strings
from forebay.run.process.segment import LARGE, PATIENCE, SMALLEST, Segment
from forebay.run.process.wire import Types, encode


def block_of(*columns: list[Any]) -> Block:
    structure = LEAF if len(columns) == 1 else Structure(tuple, (), (LEAF,) * len(columns))
    return Block(structure, [column_from_rows(column) for column in columns], len(columns[0]), Cursor({"at": 7}, 3))


def assert_same(got: Block, wanted: Block) -> None:
    assert got.structure == wanted.structure
    assert (got.rows, got.cursor) == (wanted.rows, wanted.cursor)
    assert [type(column) for column in got.columns] == [type(column) for column in wanted.columns]
    for mine, theirs in zip(got.columns, wanted.columns):
        for a, b in zip(mine.rows(), theirs.rows(), strict=True):
            assert type(a) is type(b)
            assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rows", [1, 3, 5000])
@pytest.mark.parametrize(
    "value",
    [
        lambda i: i,
        lambda i: np.float32(i),
        lambda i: np.full((7, 3), i % 256, np.uint8),
        lambda i: np.full((i % 5, 2), i, np.int16),
        lambda i: b"%d" % i * (i % 7),
        lambda i: f"ä{i}\udcff",
        lambda i: np.array([f"{i}", "x"], object),
        lambda i: None if i % 2 else np.arange(i % 4),
        lambda i: np.ones((1,) * (i % 3)),
        lambda i: {i, "any object"},
        lambda i: np.datetime64(i, "s"),
    ],
)
def test_every_kind_of_column_crosses(call: Any, value: Callable[[int], Any], rows: int) -> None:
    block = block_of([value(i) for i in range(rows)], list(range(rows)))
    assert_same(call(lambda block: block, block), block)


def test_kinds_are_those_meant() -> None:
    columns = [column_from_rows(x) for x in ([1], [np.ones(1), np.ones(2)], ["a"], [None, 1])]
    assert [type(column) for column in columns] == [Dense, Ragged, Strings, Objects]


def test_slices_send_what_they_show() -> None:
    rows = 10_000
    block = block_of(
        [np.full(i % 9, i) for i in range(rows)], [b"%d" % i * 20 for i in range(rows)], list(range(rows))
    ).slice(500, 510)
    assert sum(map(len, encode(block, Types()))) < 4000


def test_slices_cross(call: Any) -> None:
    block = block_of([np.full(i % 9, i) for i in range(100)], [b"%d" % i * 20 for i in range(100)])
    assert_same(call(lambda block: block.slice(5, 17), block.slice(30, 60)), block.slice(35, 47))


def test_arrays_are_not_in_the_pickle() -> None:
    array = np.zeros((1000, 1000))
    for value in (array, array[::2], array[:, ::3], array.T, Dense(array, owned=False)):
        parts = encode(value, Types())
        assert len(parts[0]) < 1000
        assert len(parts) == 2


def test_arrays_of_all_sorts(call: Any) -> None:
    base = np.arange(60_000).reshape(200, 300)
    locked = base.copy()
    locked.flags.writeable = False
    broadcast = np.broadcast_to(np.arange(5000), (3, 5000))
    record = np.zeros(3000, [("a", "i4"), ("b", "f8")])
    empty = np.empty((0, 5), np.float16)
    scalar = np.array(3)
    swapped = base.astype(">i8")
    noted = np.zeros(5, np.dtype("i8", metadata={"unit": "m"}))
    plain = [np.ones((2, 3), char) for char in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"]
    dates = np.array(["2001-01-01", "NaT"], "M8[D]")
    sent = (base, base.T, base[::3, ::-1], locked, broadcast, record, empty, scalar, swapped, noted, dates, *plain)
    for got, wanted in zip(call(lambda *arrays: arrays, *sent), sent, strict=True):
        assert got.dtype == wanted.dtype
        assert got.dtype.metadata == wanted.dtype.metadata
        assert got.flags.writeable or not wanted.flags.writeable
        np.testing.assert_array_equal(got, wanted)


def test_what_comes_back_belongs_to_the_receiver(call: Any) -> None:
    array = np.zeros(100_000)
    first = call(lambda x: x, array)
    first[:] = 1
    second = call(lambda x: x, array)
    assert (first == 1).all()
    assert (second == 0).all()
    assert (array == 0).all()


def test_columns_that_share_an_array_do_not_share_it_afterwards(call: Any) -> None:
    values = np.zeros(10_000)
    twins = [Dense(values, owned=False) for _ in range(2)]
    block = Block(Structure(tuple, (), (LEAF, LEAF)), twins, 10_000)
    for a, b in (call(lambda columns: columns, twins), call(lambda block: block, block).columns):
        check_apart(a, b)


def check_apart(a: Dense, b: Dense) -> None:
    assert a.owned
    assert b.owned
    a.private().values[:] = 1
    assert (b.values == 0).all()


def test_locked_arrays_are_not_called_owned(call: Any) -> None:
    values = np.zeros(10_000)
    values.flags.writeable = False
    column = call(lambda column: column, Dense(values, owned=False))
    column.private().values[:] = 1


def test_memory_is_anonymous(call: Any) -> None:
    maps = call(lambda _: Path("/proc/self/maps").read_text(), np.zeros(1 << 20))
    assert "memfd:forebay" in maps
    assert "/dev/shm" not in maps


def test_messages_of_any_size(call: Any) -> None:
    for size in (0, 1, 1 << 20, 40 << 20, 5, 3 << 20):
        value = np.arange(size, dtype=np.uint8)
        np.testing.assert_array_equal(call(lambda x: x + np.uint8(1), value), value + np.uint8(1))
    text = "x" * (5 << 20)
    assert call(lambda x: x, text) == text


def test_grows_and_shrinks_on_both_sides() -> None:
    ours, fd = Segment.create()
    theirs = Segment(fd)
    large = bytes(2 * LARGE)
    (part,) = theirs.read(ours.write([large]))
    assert len(part) == len(large)
    assert len(ours) == len(theirs) > len(large)
    for _ in range(PATIENCE + 1):
        (part,) = theirs.read(ours.write([b"small"]))
        assert bytes(part) == b"small"
    assert len(ours) == len(theirs) == os.fstat(fd).st_size == SMALLEST
    ours.close()
    theirs.close()
    os.close(fd)


def test_a_large_question_with_a_small_answer_keeps_its_memory() -> None:
    ours, fd = Segment.create()
    theirs = Segment(fd)
    os.close(fd)
    large = bytes(2 * LARGE)
    sizes = set()
    for _ in range(PATIENCE):
        theirs.read(ours.write([large]))
        ours.read(theirs.write([b"small"]))
        sizes.add(len(ours))
    assert len(sizes) == 1
    ours.close()
    theirs.close()


def test_parts_stay_apart() -> None:
    ours, fd = Segment.create()
    os.close(fd)
    parts = [bytes([i]) * length for i, length in enumerate((1, 63, 64, 65, 5000, 7))]
    assert [bytes(part) for part in ours.read(ours.write(parts))] == parts
    ours.close()
