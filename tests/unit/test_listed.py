"""Long bytes that stay the objects they are behave as strings that lie together."""

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay as fb
from forebay import Dataset
from forebay.block.build import column_from_rows, concat_columns
from forebay.block.column import RowError
from forebay.block.listed import Listed
from forebay.block.spans import Spans
from forebay.block.strings import Strings

LONG = [bytes([i]) * (1000 + 100 * i) for i in range(6)]


def listed() -> Listed:
    column = column_from_rows(LONG)
    assert isinstance(column, Listed)
    return column


def test_the_same_rows_in_every_form() -> None:
    together = Strings.of(LONG, (), False)
    column = listed()
    for _ in range(2):
        assert len(column) == 6
        assert column.rows() == LONG
        assert column.nbytes == sum(map(len, LONG)) + 48
        assert column.slice(1, 4).rows() == LONG[1:4]
        assert column.take(np.array([3, 0, 3])).rows() == [LONG[3], LONG[0], LONG[3]]
        assert [row.tolist() for row in column.fold(3).rows()] == [LONG[:3], LONG[3:]]
        assert column.fold(3).slice(1, 2).rows()[0].tolist() == LONG[3:]
        assert column.fold(3).take(np.array([1, 0])).rows()[0].tolist() == LONG[3:]
        assert column.fold(2).unfold()[0].rows() == LONG
        assert column.spec == together.spec
        assert b"".join(buffer.tobytes() for buffer in column.buffers()) == b"".join(LONG)
        # And once more, after they have been put together.
        assert np.array_equal(column.offsets, together.offsets)
        assert np.array_equal(column.data, together.data)
    assert pickle.loads(pickle.dumps(column)).rows() == LONG
    with pytest.raises(RowError, match="is a scalar"):
        column.unfold()


def test_only_long_ones_are_kept_as_objects() -> None:
    assert type(column_from_rows([b"x" * 1023])) is Strings
    assert type(column_from_rows([b"x" * 1024])) is Listed
    assert type(column_from_rows([b"", b"x" * 2048])) is Listed
    assert type(column_from_rows(["x" * 5000])) is Strings
    pairs = column_from_rows([np.array([row, row], object) for row in LONG])
    assert type(pairs) is Listed
    assert pairs.shape == (2,)


def test_a_list_that_is_changed_later_does_not_matter() -> None:
    given_list = list(LONG)
    dataset = Dataset.from_tensor_slices(given_list)
    given_list[0] = b"other"
    given_list.clear()
    assert list(dataset) == LONG


def spans() -> Spans:
    return Spans(np.frombuffer(b"abcdef", np.uint8), np.array([0, 3]), np.array([2, 6]))


@given(st.lists(st.sampled_from([listed, spans, lambda: Strings.of([b"x", b""], (), False)]), min_size=1, max_size=5))
def test_all_kinds_join(makers: list[Any]) -> None:
    columns = [make() for make in makers]
    joined = concat_columns(columns)
    assert isinstance(joined, Strings)
    assert joined.rows() == [row for column in columns for row in column.rows()]
    assert all(make is listed for make in makers) == (type(joined) is Listed)


def test_what_does_not_join() -> None:
    assert listed().join([Strings.of(["text"], (), True)]) is None
    assert listed().join([listed().fold(2)]) is None


def test_rows_are_the_users_own_objects() -> None:
    dataset = Dataset.from_tensor_slices(LONG)
    assert all(row is LONG[row[0]] for row in dataset.shuffle(seed=1))
    assert all(row is LONG[row[0]] for batch in dataset.shuffle(3).batch(2).cache() for row in batch)


def test_the_fingerprint_tells_contents_and_not_objects() -> None:
    alike = [bytes(bytearray(row)) for row in LONG]
    other = [*LONG[:-1], LONG[-1][:-1] + b"\0"]
    moved = [LONG[0] + LONG[1][:1], LONG[1][1:], *LONG[2:]]
    prints = [Dataset.from_tensor_slices(rows).plan.signature() for rows in (LONG, alike, other, moved)]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
    shared, apart = [LONG[0]] * 4, [bytes(bytearray(LONG[0])) for _ in range(4)]
    assert Dataset.from_tensor_slices(shared).plan.signature() == Dataset.from_tensor_slices(apart).plan.signature()


def test_rows_that_are_long_and_short_in_turns(tmp_path: Any) -> None:
    """Blocks of one stream then have columns of both kinds."""
    rows = [bytes([i % 256]) * (3000 if i // 7 % 2 else 3) for i in range(200)]
    small = fb.Options(block_bytes=4000, memory="64KiB")
    for dataset in (
        Dataset.from_generator(lambda: iter(rows)),
        Dataset.from_tensor_slices(rows).map(lambda row: row, num_parallel_calls=2, executor="thread"),
        Dataset.from_tensor_slices(rows).map(lambda row: row, num_parallel_calls=2, executor="process"),
        Dataset.from_generator(lambda: iter(rows)).cache(),
        Dataset.from_generator(lambda: iter(rows)).cache(str(tmp_path / "cache")),
        Dataset.from_generator(lambda: iter(rows)).batch(9).unbatch(),
    ):
        for options in (small, fb.Options()):
            for _ in range(2):
                assert list(dataset.with_options(options)) == rows
    stream = Dataset.from_generator(lambda: iter(rows))
    for dataset in (stream.shuffle(20, seed=1), stream.shuffle(seed=1)):
        assert list(dataset.with_options(small)) == list(dataset)
        assert sorted(dataset) == sorted(rows)


def test_in_turns() -> None:
    """Rows of several inner datasets, of which some are long and some are not."""
    rows = [[bytes([i, k]) * (700 * i + 1) for k in range(40)] for i in range(4)]
    numbered = Dataset.range(4).interleave(lambda i: Dataset.range(40).map(lambda k: (i, k)), 3, 2)
    expected = [rows[i][k] for i, k in numbered]
    for threads in (None, 2):
        dataset = Dataset.range(4).interleave(
            lambda i: Dataset.from_tensor_slices(rows[i]), 3, 2, num_parallel_calls=threads
        )
        assert list(dataset) == expected
        assert list(dataset.with_options(fb.Options(block_bytes=3000))) == expected


def test_a_list_of_bytes_is_not_copied() -> None:
    rows = [b"x" * (1 << 14)] * 2000
    tracemalloc.start()
    try:
        dataset = Dataset.from_tensor_slices(rows)
        assert sum(len(row) for row in dataset.shuffle(100, seed=1)) == 2000 << 14
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
