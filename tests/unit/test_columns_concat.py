"""Columns of several kinds in one, columns from arrays, and blocks of columns."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from forebay.block import (
    LEAF,
    Block,
    Cursor,
    RowError,
    Structure,
    array_of,
    column_from_array,
    column_from_rows,
    concat_blocks,
)
from forebay.block.build import concat_columns
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.strings import Strings
from unit.support import assert_same

PAIR = Structure(tuple, (), (LEAF, LEAF))


def objects(*values: Any) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


VECTORS = {
    "dense (2,)": [np.array([1, 2]), np.array([3, 4])],
    "dense (3,)": [np.array([1, 2, 3])],
    "dense (0,)": [np.array([], np.int64)],
    "ragged": [np.array([1]), np.array([], np.int64)],
    "with none": [None, np.array([7, 8])],
    "matrix": [np.array([[1, 2]])],
    "scalar": [np.int64(5), np.int64(6)],
}
TEXTS = {
    "scalars": ["a", "b\0"],
    "pairs": [objects("a", "b"), objects("c", "")],
    "one": [objects("x")],
    "empty": [objects()],
    "with none": [None, "z"],
}


@pytest.mark.parametrize("table", [VECTORS, TEXTS], ids=["vectors", "texts"])
@pytest.mark.parametrize("count", [2, 3])
def test_any_mixture_of_kinds_joins_in_order(table: dict[str, list[Any]], count: int) -> None:
    for names in permutations(table, count):
        columns = [column_from_rows(table[name]) for name in names]
        joined = concat_columns(columns)
        rows = [row for name in names for row in table[name]]
        assert len(joined) == len(rows)
        assert_same(joined.rows(), rows, str(names))


def test_dense_columns_of_two_shapes_become_ragged() -> None:
    joined = concat_columns([Dense(np.zeros((2, 3))), Dense(np.ones((2, 4)))])
    assert isinstance(joined, Ragged)
    assert_same(joined.rows(), [np.zeros(3)] * 2 + [np.ones(4)] * 2)


def test_the_only_column_is_itself() -> None:
    column = Dense(np.zeros(3))
    assert concat_columns([column]) is column


@pytest.mark.parametrize(
    ("parts", "row", "text"),
    [
        ([[1, 2], [1.5]], 2, "is float64, earlier int64"),
        ([["a"], ["b", "c"], [b"d"]], 3, "is bytes, earlier str"),
        ([[np.zeros(2)], [np.zeros(3, np.float32)]], 1, "is float32, earlier float64"),
    ],
)
def test_dtypes_that_differ_are_named(parts: list[list[Any]], row: int, text: str) -> None:
    with pytest.raises(RowError, match=text) as caught:
        concat_columns([column_from_rows(part) for part in parts])
    assert caught.value.row == row


# Columns from whole arrays


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (np.arange(3), [np.int64(0), np.int64(1), np.int64(2)]),
        ([[1, 2], [3, 4]], [np.array([1, 2]), np.array([3, 4])]),
        ([[1, 2], [3]], [np.array([1, 2]), np.array([3])]),
        ([np.zeros(1), np.zeros((2,))], [np.zeros(1), np.zeros(2)]),
        (["a", "b\0"], ["a", "b\0"]),
        ([b"a\0", b""], [b"a\0", b""]),
        (np.array(["a", "bcd"]), ["a", "bcd"]),
        (np.array([["a"], ["b"]]), [objects("a"), objects("b")]),
        ([None, 1], [None, np.int64(1)]),
        (np.arange(4.0).reshape(2, 2).T, [np.array([0.0, 2.0]), np.array([1.0, 3.0])]),
        (np.zeros((2, 0)), [np.zeros(0), np.zeros(0)]),
        (np.array(["2020"], "M8[Y]"), [np.datetime64("2020")]),
        (range(3), [np.int64(0), np.int64(1), np.int64(2)]),
    ],
)
def test_the_first_axis_gives_the_rows(values: Any, rows: list[Any]) -> None:
    column = column_from_array(values, owned=False)
    assert len(column) == len(rows)
    assert_same([np.ascontiguousarray(r) if isinstance(r, np.ndarray) else r for r in column.rows()], rows)


def test_an_array_is_not_copied() -> None:
    array = np.arange(6).reshape(3, 2)
    column = column_from_array(array, owned=False)
    assert isinstance(column, Dense)
    assert np.shares_memory(column.values, array)
    assert not column.owned


@pytest.mark.parametrize("value", [5, 1.5, "text", b"bytes", None, np.array(1), np.float32(2)])
def test_a_scalar_has_no_rows(value: Any) -> None:
    with pytest.raises(RowError, match="None" if value is None else "scalar"):
        column_from_array(value, owned=False)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (0, 2, 2)])
@pytest.mark.parametrize("dtype", ["i8", "S3", "U3", "O"])
def test_no_rows_keep_their_shape(shape: tuple[int, ...], dtype: str) -> None:
    column = column_from_array(np.empty(shape, dtype), owned=False)
    assert len(column) == 0
    assert column.spec.shape == shape[1:]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([1, 2], np.array([1, 2])),
        ([np.zeros(2), np.ones(2)], np.array([[0.0, 0.0], [1.0, 1.0]])),
        (["a", "b"], objects("a", "b")),
        ([objects("a", "b"), objects("c", "d")], np.array([["a", "b"], ["c", "d"]], object)),
        ([np.zeros(1), np.ones(2)], objects(np.zeros(1), np.ones(2))),
        ([None, 1], objects(None, np.int64(1))),
    ],
)
def test_a_whole_column_as_an_array(rows: list[Any], expected: np.ndarray) -> None:
    assert_same(array_of(column_from_rows(rows)), expected)


# Blocks


def block() -> Block:
    columns = [column_from_rows([1, 2, 3, 4]), column_from_rows(["a", "b", "c", "d"])]
    return Block(PAIR, columns, 4, Cursor({"row": 10}, 5))


def test_a_slice_of_a_block_is_where_its_first_row_is() -> None:
    part = block().slice(1, 3)
    assert part.rows == 2
    assert part.cursor == Cursor({"row": 10}, 6)
    assert_same(list(part.elements()), [(np.int64(2), "b"), (np.int64(3), "c")])
    whole = block()
    assert whole.slice(0, 4) is whole


def test_take_keeps_the_cursor() -> None:
    taken = block().take(np.array([3, 0, 0]))
    assert taken.rows == 3
    assert taken.cursor == block().cursor
    assert_same(list(taken.elements()), [(np.int64(4), "d"), (np.int64(1), "a"), (np.int64(1), "a")])


def test_blocks_join_under_the_first_cursor() -> None:
    joined = concat_blocks([block().slice(2, 4), block().slice(0, 1)])
    assert joined.cursor == Cursor({"row": 10}, 7)
    assert_same(list(joined.elements()), [(np.int64(3), "c"), (np.int64(4), "d"), (np.int64(1), "a")])


def test_blocks_of_other_structure_do_not_join() -> None:
    single = Block(LEAF, [column_from_rows([1])], 1)
    with pytest.raises(RowError, match="structure") as caught:
        concat_blocks([block(), single])
    assert caught.value.row == 4


def test_tuples_are_unpacked_and_nothing_else_is() -> None:
    assert list(block().calls(lambda n, s: f"{n}{s}")) == ["1a", "2b", "3c", "4d"]
    one = Block(LEAF, [column_from_rows([1, 2])], 2)
    assert list(one.calls(lambda x: int(x) * 2)) == [2, 4]
    named = Block(Structure(dict, ("a",), (LEAF,)), [column_from_rows([1, 2])], 2)
    assert list(named.calls(lambda d: int(d["a"]))) == [1, 2]
    nested = Block(Structure(tuple, (), (PAIR, LEAF)), [*block().columns, column_from_rows([5, 6, 7, 8])], 4)
    assert list(nested.calls(lambda pair, x: (pair[1], int(x)))) == [("a", 5), ("b", 6), ("c", 7), ("d", 8)]


def test_a_block_without_leaves_still_counts_its_rows() -> None:
    empty = Block(Structure(tuple), [], 3)
    assert list(empty.elements()) == [(), (), ()]
    assert list(empty.calls(lambda: 1)) == [1, 1, 1]
    assert empty.nbytes == 0


def test_scratch_survives_a_function_that_writes() -> None:
    for column in (Dense(np.zeros((2, 2))), Ragged.of([np.zeros(1), np.zeros(2)]), Objects(objects(np.zeros(1)))):
        kept = Block(LEAF, [column], len(column))
        for row in kept.scratch().elements():
            row += 1
        assert all((row == 0).all() for row in column.rows())
    numbers = Block(LEAF, [Dense(np.zeros(3))], 3)
    array_of(numbers.scratch(whole=True).columns[0])[:] = 1
    assert array_of(numbers.columns[0]).tolist() == [0, 0, 0]


def test_a_strings_column_of_a_slice_copies_only_its_own_bytes() -> None:
    column = Strings.of(["x" * 1000, "ab", "c"], (), True)
    taken = column.slice(1, 3).take(np.array([1, 0]))
    assert len(taken.data) == 3
    joined = concat_columns([column.slice(1, 2), column.slice(2, 3)])
    assert len(joined.data) == 3
