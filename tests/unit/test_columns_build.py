"""What becomes of values: the column kind they make, and the values that come back."""

import datetime
import enum
import fractions
from typing import Any, NamedTuple

import numpy as np
import pytest

from forebay import Dataset
from forebay.block import RowError, column_from_array, column_from_rows
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.strings import Strings
from unit.support import assert_same

PAIR = np.dtype([("x", "<i4"), ("y", "<f8", (2,))])
TRICKY = ["", "a", "a\0", "\0", "\0a\0\0", "é", "\U0001f600", "\ud800", "\udfff\ud800", "\ud83d\ude00", "a" * 1000]


class Odd:
    """An object that is nothing but itself."""


class Level(enum.IntEnum):
    LOW = 1


class Like:
    """Something that NumPy can turn into an array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.value, dtype)


def objects(*values: Any) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


ONE, TWO = Odd(), Odd()

SCALARS = [
    *(np.dtype(code).type for code in "?bBhHiIlLqQefdgFDG"),
]


@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: kind.__name__)
def test_numpy_scalars_keep_their_type(kind: type[Any]) -> None:
    rows = [kind(0), kind(1), kind(1)]
    column = column_from_rows(rows)
    assert isinstance(column, Dense)
    assert column.dtype == np.dtype(kind)
    assert_same([row.dtype for row in column.rows()], [np.dtype(kind)] * 3)
    assert column.rows() == rows


def test_extremes_survive() -> None:
    for kind in (np.int8, np.uint8, np.int64, np.uint64):
        info = np.iinfo(kind)
        assert_same(column_from_rows([kind(info.min), kind(info.max)]).rows(), [kind(info.min), kind(info.max)])
    for kind in (np.float16, np.float32, np.float64, np.longdouble):
        info = np.finfo(kind)
        rows = [info.max, info.smallest_subnormal, kind("nan"), kind("-inf"), kind("-0.0"), kind(1) + info.eps]
        # Not by bytes: a longdouble has some that mean nothing.
        assert [repr(row) for row in column_from_rows(rows).rows()] == [repr(row) for row in rows]


def test_longdouble_keeps_all_its_bits() -> None:
    third = np.longdouble(1) / 3
    assert column_from_rows([third, third]).rows()[0] == third
    assert column_from_rows([np.full(2, third)]).rows()[0][1] == third


@pytest.mark.parametrize("unit", ["Y", "D", "s", "ns"])
@pytest.mark.parametrize("kind", [np.datetime64, np.timedelta64])
def test_times_keep_their_unit(kind: type[Any], unit: str) -> None:
    rows = [kind(0, unit), kind(50, unit), kind("NaT", unit)]
    column = column_from_rows(rows)
    assert isinstance(column, Dense)
    assert_same(column.rows(), rows)


def test_structured_scalars() -> None:
    rows = [np.array((i, [i, 0.5]), PAIR)[()] for i in range(3)]
    column = column_from_rows(rows)
    assert isinstance(column, Dense)
    assert column.dtype == PAIR
    assert [row.tolist()[0] for row in column.rows()] == [0, 1, 2]
    assert [row["y"].tolist() for row in column.rows()] == [[0, 0.5], [1, 0.5], [2, 0.5]]


@pytest.mark.parametrize(
    ("rows", "kind"),
    [([True, False], np.bool_), ([1, -(2**63)], np.int64), ([0.5, -0.0], np.float64), ([1j, 2], np.complex128)],
)
def test_python_numbers_become_numpys_widest(rows: list[Any], kind: type[Any]) -> None:
    if kind is np.complex128:
        rows = [complex(row) for row in rows]
    column = column_from_rows(rows)
    assert isinstance(column, Dense)
    assert_same(column.rows(), [kind(row) for row in rows])


@pytest.mark.parametrize("rows", [[1, 2**63], [2**63], [1, None, -(2**63) - 1]])
def test_an_int_beyond_int64_is_named(rows: list[Any]) -> None:
    with pytest.raises(RowError, match="int64") as caught:
        column_from_rows(rows)
    assert caught.value.row == len(rows) - 1


@pytest.mark.parametrize("text", [True, False], ids=["str", "bytes"])
def test_strings_of_any_content(text: bool) -> None:
    rows = [s if text else s.encode("utf-8", "surrogatepass") for s in TRICKY]
    column = column_from_rows(rows)
    assert isinstance(column, Strings)
    assert_same(column.rows(), rows)
    assert_same(column_from_rows([objects(*rows), objects(*rows)]).rows(), [objects(*rows), objects(*rows)])
    assert_same(column_from_rows([rows, rows]).rows(), [objects(*rows), objects(*rows)])


def test_numpys_own_strings_become_pythons() -> None:
    assert_same(column_from_rows([np.str_("a\0"), np.str_("b")]).rows(), ["a\0", "b"])
    assert_same(column_from_rows([np.bytes_(b"a\0"), b"c"]).rows(), [b"a\0", b"c"])
    assert_same(column_from_rows([np.array(["a", "bc"])]).rows(), [objects("a", "bc")])
    assert_same(column_from_rows([np.array([b"a", b"bc"])]).rows(), [objects(b"a", b"bc")])
    assert_same(column_from_rows([bytearray(b"x"), memoryview(b"y")]).rows(), [b"x", b"y"])
    variable = np.array(["a\0", "long" * 10], np.dtypes.StringDType())
    assert_same(column_from_rows([variable]).rows(), [objects("a\0", "long" * 10)])


@pytest.mark.parametrize(
    "rows",
    [
        [None, None],
        [None, 1, 2],
        [1, None],
        [None, "a", ""],
        [b"x", None, b""],
        [None, np.zeros(2), np.zeros(3)],
        [np.datetime64("NaT"), None],
        [ONE, None, TWO],
    ],
)
def test_none_stands_beside_anything(rows: list[Any]) -> None:
    column = column_from_rows(rows)
    assert isinstance(column, Objects)
    expected = [np.int64(row) if type(row) is int else row for row in rows]
    assert_same(column.rows(), expected)


def test_arrays_of_one_shape_are_dense() -> None:
    for rows in (
        [np.arange(3), np.arange(3) + 1],
        [np.zeros((0,)), np.zeros((0,))],
        [np.zeros((2, 0, 3)), np.ones((2, 0, 3))],
        [np.asfortranarray(np.arange(6).reshape(2, 3)), np.arange(6).reshape(2, 3) * 2],
        [np.arange(12)[::2], np.arange(12)[::-2]],
        [np.zeros(2, PAIR), np.ones(2, PAIR)],
        [np.array(["2020-01-01"], "M8[D]"), np.array(["NaT"], "M8[D]")],
    ):
        column = column_from_rows(rows)
        assert isinstance(column, Dense)
        assert_same(column.rows(), [np.ascontiguousarray(row) for row in rows])


def test_arrays_of_differing_shape_are_ragged() -> None:
    rows = [np.zeros((2, 3), np.int16), np.ones((0, 3), np.int16), np.ones((1, 5), np.int16)]
    column = column_from_rows(rows)
    assert isinstance(column, Ragged)
    assert_same(column.rows(), rows)


def test_arrays_of_differing_rank_are_objects() -> None:
    rows = [np.zeros(2), np.zeros((2, 2)), np.float64(1)]
    column = column_from_rows(rows)
    assert isinstance(column, Objects)
    assert_same(column.rows(), rows)


def test_zero_dimensional_arrays_are_scalars() -> None:
    assert_same(column_from_rows([np.array(1), np.array(2)]).rows(), [np.int64(1), np.int64(2)])
    assert_same(column_from_rows([np.array(1), 2, np.int64(3)]).rows(), [np.int64(1), np.int64(2), np.int64(3)])
    assert_same(column_from_rows([np.array("a"), "b"]).rows(), ["a", "b"])
    assert_same(column_from_rows([np.array(b"a"), np.array(b"b")]).rows(), [b"a", b"b"])
    assert_same(column_from_rows([np.array(ONE), TWO]).rows(), [ONE, TWO])
    assert_same(column_from_rows([np.array(None), 1]).rows(), [None, np.int64(1)])


def test_byte_order_is_made_native() -> None:
    rows = [np.arange(3, dtype=">i4"), np.arange(3, dtype="<i4")]
    assert_same(column_from_rows(rows).rows(), [np.arange(3, dtype="=i4")] * 2)
    assert_same(column_from_rows([rows[0], rows[0]]).rows(), [np.arange(3, dtype="=i4")] * 2)
    assert_same(column_from_array(np.arange(3, dtype=">f8"), owned=False).rows(), list(np.arange(3.0)))
    swapped = np.zeros(1, PAIR.newbyteorder(">"))
    assert column_from_rows([swapped]).dtype == PAIR


def test_lists_are_arrays() -> None:
    assert_same(column_from_rows([[1, 2], [3, 4]]).rows(), [np.array([1, 2]), np.array([3, 4])])
    assert_same(column_from_rows([[[1.5]], [[2.5]]]).rows(), [np.array([[1.5]]), np.array([[2.5]])])
    assert_same(column_from_rows([[1], [1, 2]]).rows(), [np.array([1]), np.array([1, 2])])
    assert_same(column_from_rows([range(2), [5, 6]]).rows(), [np.array([0, 1]), np.array([5, 6])])
    assert_same(column_from_rows([[1, None], [2, None]]).rows(), [objects(1, None), objects(2, None)])


def test_a_list_that_is_no_array_is_named() -> None:
    with pytest.raises(RowError, match="list") as caught:
        column_from_rows([[1, 2], [[1], [1, 2]]])
    assert caught.value.row == 1


def test_subclasses_of_arrays_travel_as_plain_arrays() -> None:
    column = column_from_rows([np.ma.masked_array([1, 2]), np.array([3, 4]).view(np.recarray)])
    assert_same(column.rows(), [np.array([1, 2]), np.array([3, 4])])


def test_things_that_turn_into_arrays() -> None:
    assert_same(column_from_rows([Like([1, 2]), Like([3, 4])]).rows(), [np.array([1, 2]), np.array([3, 4])])
    assert_same(column_from_rows([Like(1.5)]).rows(), [np.float64(1.5)])


def test_other_objects_are_themselves() -> None:
    rows = [ONE, TWO, Level.LOW, datetime.date(2020, 1, 1), fractions.Fraction(1, 3), {1, 2}]
    column = column_from_rows(rows)
    assert isinstance(column, Objects)
    assert all(a is b for a, b in zip(column.rows(), rows))


def test_arrays_of_objects_stack_only_when_shapes_agree() -> None:
    same = column_from_rows([objects(ONE, TWO), objects(TWO, ONE)])
    assert isinstance(same, Objects)
    assert same.spec.shape == (2,)
    assert_same(same.rows(), [objects(ONE, TWO), objects(TWO, ONE)])
    mixed = column_from_rows([objects(ONE, TWO), objects(ONE)])
    assert_same(mixed.rows(), [objects(ONE, TWO), objects(ONE)])


def test_empty_arrays_of_strings() -> None:
    rows = [objects(), objects("a"), objects("a", "b")]
    assert_same(column_from_rows(rows).rows(), rows)
    assert_same(column_from_rows([objects(), objects()]).rows(), [objects(), objects()])


def test_no_rows_at_all() -> None:
    assert len(column_from_rows([])) == 0
    assert column_from_rows([]).rows() == []


class Point(NamedTuple):
    x: int


@pytest.mark.parametrize("value", [(1, 2), {"a": 1}, Point(1)], ids=["tuple", "dict", "namedtuple"])
def test_structure_where_a_leaf_belongs_is_named(value: Any) -> None:
    with pytest.raises(RowError, match=type(value).__name__) as caught:
        column_from_rows([1, 2, value])
    assert caught.value.row == 2


@pytest.mark.parametrize(
    ("rows", "row", "text"),
    [
        ([1, 2, 2.5], 2, "is float64, earlier int64"),
        ([1, True], 1, "is bool, earlier int64"),
        ([np.float32(1), np.float64(1)], 1, "is float64, earlier float32"),
        (["a", b"a"], 1, "is bytes, earlier str"),
        ([b"a", b"b", "a"], 2, "is str, earlier bytes"),
        (["a", 1], 1, "is int64, earlier str"),
        ([np.zeros(2), np.zeros(2, np.float32)], 1, "is float32, earlier float64"),
        ([np.zeros(2), np.float32(1)], 1, "is float32, earlier float64"),
        ([None, 1, None, 1.5], 3, "is float64, earlier int64"),
        ([ONE, 1, ONE, "a"], 3, "is str, earlier int64"),
        ([np.datetime64(1, "s"), np.datetime64(1, "D")], 1, r"is datetime64\[D\], earlier datetime64\[s\]"),
        ([objects("a"), objects(b"a", b"b")], 1, "is bytes, earlier str"),
        ([[1, 2], [1, 2.5]], 1, "is float64, earlier int64"),
        ([np.zeros(1, PAIR), np.zeros(1, [("x", "i4")])], 1, "earlier"),
    ],
)
def test_a_change_of_dtype_names_the_row(rows: list[Any], row: int, text: str) -> None:
    with pytest.raises(RowError, match=text) as caught:
        column_from_rows(rows)
    assert caught.value.row == row


@pytest.mark.parametrize("rows", [[2.5, 1], [None, 2.5], [np.zeros(2)], ["a"], [ONE, None, 2.5]])
def test_a_change_from_the_dtype_of_earlier_blocks_names_the_row(rows: list[Any]) -> None:
    with pytest.raises(RowError, match="earlier int64") as caught:
        column_from_rows(rows, np.dtype(np.int64))
    assert caught.value.row == next(i for i, row in enumerate(rows) if row is not None and row is not ONE)


def test_platform_names_of_one_type_are_one_type() -> None:
    assert column_from_rows([np.longlong(1), np.int64(2)]).dtype == np.int64
    assert column_from_rows([np.zeros(1, "q"), np.zeros(1, "l")]).rows() == [0, 0]


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_records_that_are_part_of_an_element(rows: int) -> None:
    kind = np.dtype([("a", "<i4"), ("b", "<f8")])
    elements = [(i, np.array((i, i / 2), kind)) for i in range(rows)]
    dataset = Dataset.from_generator(lambda: iter(elements))
    assert [(int(i), record.item()) for i, record in dataset] == [(i, (i, i / 2)) for i in range(rows)]
    (batch,) = dataset.batch(rows)
    assert batch[1].dtype == kind
    assert batch[1].tolist() == [(i, i / 2) for i in range(rows)]
