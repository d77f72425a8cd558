"""Rows in turns: the order, and rows that are put in order ahead of need where they lie."""

from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay as fb
from forebay._native import weave_ranges
from forebay.block import LEAF, Block
from forebay.block.spans import Spans
from forebay.block.strings import Strings
from forebay.errors import FileError, FunctionError
from forebay.ledger import Ledger
from forebay.ops.interleave_rows import InterleavedRows
from forebay.ops.interleave_schedule import ENDLESS, Cycle
from forebay.ops.interleave_woven import Woven
from forebay.run.weave import shares, woven

SIZES = (700, 900, 300, 0, 1_100, 500, 800)


def spans(words: list[bytes]) -> Spans:
    buffer = np.frombuffer(b"..".join([b"", *words, b""]), np.uint8)
    lengths = np.array(list(map(len, words)), np.int64)
    stops = np.cumsum(lengths + 2)
    return Spans(buffer, stops - lengths, stops)


@given(
    rows=st.integers(1, 60),
    sources=st.integers(1, 5),
    length=st.integers(1, 4),
    done=st.integers(0, 3),
    cuts=st.lists(st.integers(1, 7), min_size=5, max_size=5),
    apart=st.booleans(),
)
def test_any_turns(rows: int, sources: int, length: int, done: int, cuts: list[int], apart: bool) -> None:
    done %= length
    counts = [count for count in shares(rows, done, length, sources)[0] if count]
    words = [[b"%d-%d" % (source, row) for row in range(count)] for source, count in enumerate(counts)]
    expected, left = [], [list(each) for each in words]
    source, turn = 0, length - done
    while len(expected) < rows:
        expected += [left[source].pop(0) for _ in range(min(turn, len(left[source])))]
        source, turn = (source + 1) % len(left), length
    parts = []
    for each, cut in zip(words, cuts):
        pieces = [each[:cut], each[cut:]]
        columns = [spans(piece) if apart else Strings.of(piece, (), False) for piece in pieces if piece]
        parts.append([Block(LEAF, [column], len(column)) for column in columns])
    made = woven(parts, done, length)
    assert made.rows == rows
    assert list(made.elements()) == expected


def test_the_kernel_takes_no_more_than_there_is() -> None:
    part = (np.arange(3), np.arange(3))
    assert weave_ranges([[part], [part]], 0, 1)[0].tolist() == [0, 1, 0, 1, 0, 1]
    with pytest.raises(ValueError, match="too few rows"):
        weave_ranges([[part, part], [part]], 0, 1)
    for sources, done, length in [([], 0, 1), ([[part]], 1, 1), ([[part]], 0, 0)]:
        with pytest.raises(ValueError, match="nobody whose turn"):
            weave_ranges(sources, done, length)
    with pytest.raises(ValueError, match="differ in length"):
        weave_ranges([[(np.arange(3), np.arange(2))]], 0, 1)


def files(folder: Path) -> tuple[list[str], list[bytes]]:
    """Files of different lengths, and their records in turns."""
    names, records = [], []
    for i, size in enumerate(SIZES):
        records.append([b"%d-%d " % (i, k) * 30 for k in range(size)])
        names.append(str(folder / f"{i}.tfrecord"))
        with fb.io.TFRecordWriter(names[-1]) as writer:
            for record in records[-1]:
                writer.write(record)
    return names, [record for turn in zip_longest(*records) for record in turn if record is not None]


def interleaved(names: list[str], block_bytes: int = 1 << 14, **how: Any) -> fb.Dataset[Any]:
    paths = fb.Dataset.from_tensor_slices(names)
    dataset = paths.interleave(lambda name: fb.TFRecordDataset(name, **how), cycle_length=len(names))
    return dataset.with_options(fb.Options(block_bytes=block_bytes))


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows that had been put in order before they were asked for."""
    seen: list[int] = []
    ask = Woven.next

    def told(self: Woven, rows: int) -> Block | None:
        block = ask(self, rows)
        seen.extend([] if block is None else [block.rows])
        return block

    monkeypatch.setattr(Woven, "next", told)
    return seen


@pytest.mark.parametrize("block_bytes", [1 << 13, 1 << 14])
def test_records_woven_ahead_resume_anywhere(tmp_path: Path, waited: list[int], block_bytes: int) -> None:
    names, expected = files(tmp_path)
    dataset = interleaved(names, block_bytes).batch(16).unbatch()
    assert list(dataset) == expected
    assert waited
    it = iter(dataset)
    states = []
    for row in range(0, len(expected), 331):
        states.append((row, it.state_dict()))
        for _ in range(331):
            next(it, None)
    for row, state in states:
        again = iter(dataset)
        again.load_state_dict(state)
        assert list(again) == expected[row:]


def test_a_damaged_record_fails_in_its_turn(tmp_path: Path, waited: list[int]) -> None:
    names, expected = files(tmp_path)
    bad = next(row for row, record in enumerate(expected) if record.startswith(b"4-450 "))
    path = Path(names[4])
    data = bytearray(path.read_bytes())
    place = data.index(expected[bad])
    data[place] ^= 1
    path.write_bytes(data)
    it = iter(interleaved(names))
    assert [next(it) for _ in range(bad)] == expected[:bad]
    assert waited
    for _ in range(2):
        with pytest.raises(FileError, match=f"4.tfrecord, byte {place - 12:,}"):
            next(it)
    skipping = interleaved(names, on_error="skip")
    rows = list(skipping)
    # The turns of that file's later records come one round earlier.
    assert sorted(rows) == sorted(expected[:bad] + expected[bad + 1 :])
    assert rows[:bad] == expected[:bad]
    again = iter(skipping)
    for _ in range(bad + 5):
        next(again)
    resumed = iter(skipping)
    resumed.load_state_dict(again.state_dict())
    assert list(resumed) == rows[bad + 5 :]


def test_what_waits_is_let_go_of(tmp_path: Path, waited: list[int]) -> None:
    names, _ = files(tmp_path)
    it = iter(interleaved(names))
    for _ in range(600):
        next(it)
    assert it.ledger.held > 0
    it.close()
    assert it.ledger.held == 0


@given(rows=st.integers(1, 500), limit=st.integers(1, 60), unit=st.integers(1, 7))
def test_what_was_woven_comes_in_blocks_that_are_alike(rows: int, limit: int, unit: int) -> None:
    limit = -(-limit // unit) * unit
    ledger = Ledger(1 << 20)
    waiting = Woven(ledger.lease("woven"), unit)
    words = [b"%d" % row for row in range(rows)]
    blocks = [waiting.first(Block(LEAF, [spans(words)], rows), limit)]
    while (block := waiting.next(limit)) is not None:
        blocks.append(block)
    assert [word for block in blocks for word in block.elements()] == words
    sizes = [block.rows for block in blocks]
    assert all(size % unit == 0 for size in sizes[:-1])
    assert max(sizes) <= limit + limit // 8 + unit
    assert all(size >= sizes[0] - unit for size in sizes[:-1])
    assert ledger.held == 0


@pytest.mark.parametrize(
    ("slots", "turn", "unit", "even"),
    [(10, 1, 256, 128), (16, 1, 32, 2), (3, 4, 6, 4), (5, 2, 1, 2), (1, ENDLESS, 8, 1)],
)
def test_even_blocks_of_all_slots_are_whole_batches(slots: int, turn: int, unit: int, even: int) -> None:
    assert Cycle(slots, turn, 0, False).even(unit) == even
    assert turn == ENDLESS or even * slots % unit == even % turn == 0


def test_no_buffer_is_kept_for_a_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files give as many rows each as make whole batches together, so that all of them are put in order at once."""
    names = [str(tmp_path / f"{i}.tfrecord") for i in range(4)]
    for i, name in enumerate(names):
        with fb.io.TFRecordWriter(name) as writer:
            for k in range(8000):
                # Not all of one length, but about as long in all files.
                writer.write(b"%d-%d " % (i, k) * (20 + k % 5))
    left: list[int] = []
    weave = InterleavedRows._weave

    def told(self: InterleavedRows) -> Block | None:
        block = weave(self)
        left.append(sum(slot.rows for slot in self._slots if slot is not None))
        return block

    monkeypatch.setattr(InterleavedRows, "_weave", told)
    paths = fb.Dataset.from_tensor_slices(names)
    dataset = paths.interleave(fb.TFRecordDataset, cycle_length=4).batch(64)
    rows = sum(len(batch) for batch in dataset.with_options(fb.Options(block_bytes=1 << 18)))
    assert rows == 32_000
    assert left.count(0) > len(left) // 2


@pytest.mark.parametrize("fails", ["input", "function"])
def test_what_cannot_be_opened_fails_in_its_turn(tmp_path: Path, fails: str) -> None:
    names, _ = files(tmp_path)

    def paths() -> Any:
        yield from names[:2]
        if fails == "input":
            raise ValueError("no more")
        yield ""

    def read(name: Any) -> Any:
        if not name:
            raise ValueError("no more")
        return fb.TFRecordDataset(name)

    it = iter(fb.Dataset.from_generator(paths).interleave(read, cycle_length=3))
    assert [next(it)[:4] for _ in range(2)] == [b"0-0 ", b"1-0 "]
    with pytest.raises(FunctionError, match="no more"):
        next(it)


def test_all_files_are_opened_for_the_first_batch(tmp_path: Path, waited: list[int]) -> None:
    names, expected = files(tmp_path)
    blocks: list[int] = []
    weave = InterleavedRows._weave

    dataset = interleaved([name for name, size in zip(names, SIZES) if size], 1 << 20).batch(60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InterleavedRows, "_weave", lambda self: blocks.append(0) or weave(self))
        it = iter(dataset)
        assert list(next(it)) == expected[:60]
    assert len(blocks) == 1
    state = it.state_dict()
    again = iter(dataset)
    again.load_state_dict(state)
    assert [list(batch) for batch in again] == [list(batch) for batch in it]
