"""Strings that lie apart behave as strings that lie together."""

import pickle

import numpy as np

from forebay.block import concat_blocks
from forebay.block.block import Block
from forebay.block.build import concat_columns
from forebay.block.spans import Spans
from forebay.block.strings import Strings
from forebay.block.structure import LEAF

WORDS = [b"one", b"", b"three", b"\0four", b"five", b"six"]


def spans() -> Spans:
    buffer = np.frombuffer(b"..".join([b"", *WORDS, b""]), np.uint8)
    lengths = np.array(list(map(len, WORDS)))
    stops = np.cumsum(lengths + 2)
    return Spans(buffer, stops - lengths, stops)


def test_the_same_rows_in_every_form() -> None:
    together = Strings.of(WORDS, (), False)
    for apart in (spans(), pickle.loads(pickle.dumps(spans()))):
        assert len(apart) == len(WORDS)
        assert apart.rows() == WORDS
        assert apart.slice(1, 4).rows() == WORDS[1:4]
        assert apart.slice(1, 4).slice(1, 2).rows() == [b"three"]
        assert apart.take(np.array([3, 0, 3])).rows() == [WORDS[3], WORDS[0], WORDS[3]]
        assert apart.take(np.arange(6)[::-1]).rows() == WORDS[::-1]
        assert apart.take(np.arange(6)[::-1]).data.tobytes() == b"".join(WORDS[::-1])
        assert [row.tolist() for row in apart.fold(3).rows()] == [WORDS[:3], WORDS[3:]]
        assert apart.fold(3).take(np.array([1])).rows()[0].tolist() == WORDS[3:]
        assert apart.fold(2).unfold()[0].rows() == WORDS
        assert apart.spec == together.spec
        assert np.array_equal(apart.offsets, together.offsets)
        assert np.array_equal(apart.data, together.data)
        # And once more, now that they have been put together.
        assert apart.rows() == WORDS
        assert apart.slice(2, 3).rows() == [b"three"]


def test_both_kinds_join() -> None:
    together = Strings.of(WORDS[:2], (), False)
    for columns in ([spans(), together], [together, spans()], [spans(), spans()]):
        joined = concat_columns(columns)
        assert isinstance(joined, Strings)
        assert joined.rows() == [row for column in columns for row in column.rows()]
    assert spans().join([Strings.of(["text"], (), True)]) is None
    block = Block(LEAF, [spans()], len(WORDS))
    assert list(concat_blocks([block, block.slice(2, 3)]).elements()) == [*WORDS, b"three"]


def test_strings_of_several_buffers() -> None:
    one, other = spans(), spans()
    joined = one.join([other.slice(2, 5), one.slice(1, 2)])
    assert isinstance(joined, Spans)
    rows = [*WORDS, *WORDS[2:5], WORDS[1]]
    order = np.array([9, 0, 6, 7, 1, 8, 2, 5, 4, 3])
    woven = joined.take(order)
    for _ in range(2):
        assert joined.rows() == rows
        assert woven.rows() == [rows[i] for i in order]
        assert woven.slice(2, 5).rows() == [rows[i] for i in order[2:5]]
        assert [row.tolist() for row in woven.fold(5).rows()] == [
            [rows[i] for i in part] for part in (order[:5], order[5:])
        ]
        again = concat_columns([woven, joined.slice(3, 8)])
        assert again.rows() == [*(rows[i] for i in order), *rows[3:8]]
        assert woven.nbytes >= sum(map(len, rows))
        # Once more after they have been put together.
        assert woven.data.tobytes() == b"".join(rows[i] for i in order)


def test_buffers_of_which_little_is_used_are_not_kept() -> None:
    large = Spans(np.zeros(1 << 16, np.uint8), np.array([5, 7]), np.array([6, 9]))
    joined = concat_columns([large, spans()])
    assert isinstance(joined, Spans)
    assert sum(buffer.nbytes for buffer in joined.apart[0]) < 1000
    assert joined.rows() == [b"\0", b"\0\0", *WORDS]


def test_a_slice_counts_only_its_own_bytes() -> None:
    assert spans().slice(0, 1).nbytes < spans().nbytes
    assert spans().slice(0, 0).nbytes == 0
