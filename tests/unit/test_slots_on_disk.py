"""What is known of a shuffle buffer's slots is the same in memory and on disk, and a changed byte of it is noticed."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._native import keep_last, read_rows, write_rows
from forebay.block import Block, RowBuilder
from forebay.errors import DataError
from forebay.run.ages import Ages
from forebay.run.look_back import LookBack
from forebay.run.slot_numbers import SlotNumbers
from forebay.run.slot_table import SlotTable
from forebay.run.spill import SpillFile
from forebay.run.spill_room import SpillStore
from forebay.run.spilled_rows import SpilledRows
from forebay.run.steps import Steps
from unit.support import fixed


def records(table: SlotTable, values: list[int]) -> Any:
    made = table.blank(len(values))
    made[:, 0] = values
    return made


@pytest.mark.parametrize("width", [1, 8, 13])
def test_a_table_tells_what_was_put_and_where_nothing_was(width: int) -> None:
    store = SpillStore()
    table = SlotTable(store, width)
    table.put(np.array([7, 2]), records(table, [70, 20]))
    table.put(np.array([2, 4]), records(table, [21, 40]))
    found, written = table.look(np.array([4, 3, 2, 7, 0]))
    assert found[:, 0].tolist() == [40, 0, 21, 70, 0]
    assert written.tolist() == [True, False, True, True, False]
    assert store.used == table.filled * table.record_bytes == 8 * table.record_bytes
    with pytest.raises(DataError, match="has come back changed"):
        table.take(np.array([3]))
    os.ftruncate(table._file.fileno, 7 * table.record_bytes)
    with pytest.raises(DataError, match="has come back changed"):
        table.take(np.array([7]))
    table.close()
    assert store.used == 0


@fixed
@given(st.sampled_from([1, 16, 700, 1500, 40_000]), st.lists(st.lists(st.integers(0, 90), min_size=1), max_size=6))
def test_rows_that_are_near_each_other_come_and_go_as_single_ones_do(width: int, groups: list[list[int]]) -> None:
    file, model, draw = os.memfd_create("rows"), np.zeros((91, width), np.uint8), np.random.default_rng(width)
    for group in groups:
        for rows in (np.array(group), np.unique(group)):
            values = draw.integers(0, 256, (len(rows), width), np.uint8)
            write_rows(file, rows, values.reshape(-1))
            for row, value in zip(rows, values, strict=True):
                model[row] = value
            assert os.fstat(file).st_size % width == 0
            for read in (rows, rows[::-1].copy(), np.arange(rows.max() + 1)):
                found = np.empty((len(read), width), np.uint8)
                read_rows(file, 0, width, read, found.reshape(-1))
                assert np.array_equal(found, model[read])
                # Of each row a part.
                part = np.empty((len(read), -(-width // 2)), np.uint8)
                read_rows(file, 0, width, read, part.reshape(-1))
                assert np.array_equal(part, model[read, : part.shape[1]])
    os.close(file)


@fixed
@given(st.integers(1, 60), st.lists(st.integers(1, 30), max_size=8), st.data())
def test_numbers_on_disk_are_those_in_memory(live: int, groups: list[int], data: st.DataObject) -> None:
    memory, disk = SlotNumbers(live), SlotNumbers(live, SpillStore())
    for i, count in enumerate(groups):
        slots = np.array(data.draw(st.lists(st.integers(0, live - 1), min_size=count, max_size=count)))
        incoming = np.arange(count) + 1000 * i
        np.testing.assert_array_equal(disk.exchange(slots, incoming), memory.exchange(slots, incoming))
    while memory.live:
        count = data.draw(st.integers(1, memory.live))
        slots = np.array([data.draw(st.integers(0, memory.live - 1 - i)) for i in range(count)])
        np.testing.assert_array_equal(disk.drain(slots), memory.drain(slots))
        left = np.arange(memory.live)
        np.testing.assert_array_equal(disk.get(left), memory.get(left))
    assert (memory.nbytes, disk.nbytes, disk.live) == (0, 0, 0)
    disk.close()


@fixed
@given(st.lists(st.integers(0, 40), max_size=70), st.integers(0, 30), st.integers(0, 3))
def test_keep_last_finds_the_last_of_each_slot(slots: list[int], low: int, size: int) -> None:
    seen, kept = np.zeros(size, np.uint8), np.zeros(-(-len(slots) // 8), np.uint8)
    known = {low + 3} if size else set()
    if size:
        seen[0] = 8
    expected = []
    for i in reversed(range(len(slots))):
        if low <= slots[i] < low + 8 * size and slots[i] not in known:
            known.add(slots[i])
            expected.append(i)
    assert keep_last(seen, low, np.array(slots, np.int64), kept) == len(expected)
    assert np.flatnonzero(np.unpackbits(kept, bitorder="little")).tolist() == expected[::-1]
    assert (np.flatnonzero(np.unpackbits(seen, bitorder="little")) + low).tolist() == sorted(known)


def test_keep_last_refuses_bits_that_are_too_few() -> None:
    with pytest.raises(ValueError, match="a bit for every slot"):
        keep_last(np.zeros(1, np.uint8), 0, np.arange(9), np.zeros(1, np.uint8))


@fixed
@given(st.integers(1, 60), st.integers(0, 400), st.integers(0, 100), st.sampled_from([1, 3, 1000]), st.integers(1, 90))
def test_looking_back_finds_what_is_in_the_slots(size: int, step: int, late: int, room: int, at_once: int) -> None:
    steps = Steps(size, 5, 0)
    slots = list(range(size))
    for row in range(size, size + step):
        slots[int(steps.entered(row, row + 1)[0])] = row
    first = min(min(slots), late)
    look = LookBack(steps, first, size + step, SpillStore(), room, 8 * at_once)
    found: dict[int, int] = {}
    for low in range(first, size + step, 37):
        some, rows = look.between(low, min(low + 37, size + step))
        assert (np.diff(rows) > 0).all()
        found |= dict(zip(some.tolist(), rows.tolist(), strict=True))
    assert found == dict(enumerate(slots))
    assert first <= look.first <= min(slots)
    assert look.nbytes <= room
    look.close()


@fixed
@given(st.integers(1, 20), st.lists(st.integers(1, 9), max_size=20), st.data())
def test_ages_tell_the_oldest_group(width: int, groups: list[int], data: st.DataObject) -> None:
    ages, live, come = Ages(width), [], 1000
    for count in groups:
        ages.add(np.arange(come, come + count))
        live += range(come, come + count)
        come += count
        gone = data.draw(st.lists(st.sampled_from(live), unique=True)) if live else []
        ages.remove(np.array(gone, np.int64))
        live = [row for row in live if row not in gone]
        if live:
            assert ages.oldest == min(live) // width * width


def uneven(count: int) -> Block:
    block, fault = RowBuilder().build([("x" * (i % 7), i, np.arange(i % 3)) for i in range(count)])
    assert fault is None
    assert block is not None
    return block


def rows_and_heap() -> tuple[SpilledRows, list[SpillFile]]:
    rows = SpilledRows(SpillStore())
    rows.put(np.arange(50), uneven(50))
    assert rows._records is not None
    assert rows._records._heap is not None
    return rows, [rows._records._table._file, rows._records._heap._file]


def numbers_and_bits() -> tuple[Callable[[], object], Callable[[], object], list[SpillFile]]:
    numbers = SlotNumbers(50, SpillStore())
    numbers.put(np.arange(50), np.arange(50)[::-1])
    look = LookBack(Steps(100, 5, 0), 0, 300, SpillStore(), 1, 64)
    assert numbers._table is not None
    assert look._table is not None
    return (
        lambda: numbers.get(np.arange(50)),
        lambda: look.between(0, 300),
        [numbers._table._file, look._table._file],
    )


def test_a_flipped_bit_in_any_kind_of_file_is_noticed() -> None:
    rows, (table, heap) = rows_and_heap()
    get, between, (numbers, bits) = numbers_and_bits()
    take = lambda: rows.take(np.arange(50))  # noqa: E731
    for read, file in ((take, table), (take, heap), (get, numbers), (between, bits)):
        whole = os.pread(file.fileno, 1 << 20, 0)
        size = len(whole)
        assert size
        for at in range(0, size, max(1, size // 40)):
            os.pwrite(file.fileno, bytes([whole[at] ^ 1 << at % 8]), at)
            with pytest.raises(DataError, match="has come back changed"):
                read()
            os.pwrite(file.fileno, whole[at : at + 1], at)
        read()
        for damaged in (bytes(size), whole[:-1]):
            os.ftruncate(file.fileno, 0)
            os.pwrite(file.fileno, damaged, 0)
            with pytest.raises(DataError, match="has come back changed"):
                read()
        os.pwrite(file.fileno, whole, 0)
        read()
