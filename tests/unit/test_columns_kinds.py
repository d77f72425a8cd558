"""Every operation of every column kind against a plain list of rows."""

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from forebay.block import Column, RowError, column_from_rows, fold, unfold
from forebay.block.build import concat_columns
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.strings import Strings
from unit.support import assert_same, few

DTYPES = st.sampled_from(["?", "i1", "u2", "i8", "f2", "f4", "f8", "c16", "M8[s]", "m8[D]"]).map(np.dtype)
BYTES = st.binary(max_size=6)
TEXT = st.text(st.characters(codec=None), max_size=6)


def strings(shape: tuple[int, ...], items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    if not shape:
        return items
    count = int(np.prod(shape))
    return st.lists(items, min_size=count, max_size=count).map(lambda flat: filled(flat).reshape(shape))


def filled(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


@st.composite
def dense_rows(draw: st.DrawFn) -> list[Any]:
    dtype, shape = draw(DTYPES), draw(npst.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    rows = draw(st.integers(1, 12))
    return list(draw(npst.arrays(dtype, (rows, *shape))))


@st.composite
def ragged_rows(draw: st.DrawFn) -> list[Any]:
    dtype, rank = draw(DTYPES), draw(st.integers(1, 3))
    shapes = draw(st.lists(st.tuples(*[st.integers(0, 3)] * rank), min_size=2, max_size=8, unique=True))
    shapes = draw(st.lists(st.sampled_from(shapes), max_size=6)) + shapes
    return [draw(npst.arrays(dtype, shape)) for shape in shapes]


@st.composite
def string_rows(draw: st.DrawFn) -> list[Any]:
    shape = draw(st.sampled_from([(), (1,), (2,), (2, 2)]))
    return draw(st.lists(strings(shape, draw(st.sampled_from([BYTES, TEXT]))), min_size=1, max_size=8))


@st.composite
def object_rows(draw: st.DrawFn) -> list[Any]:
    item = draw(
        st.sampled_from(
            [
                st.integers(-5, 5).map(np.int64),
                npst.arrays("f4", (2,)),
                st.tuples(st.integers(0, 3)).flatmap(lambda shape: npst.arrays("i8", shape)),
                BYTES,
                TEXT,
                st.integers(0, 3).flatmap(lambda n: strings((n,), TEXT)),
                st.builds(frozenset, st.lists(st.integers(0, 9))),
            ]
        )
    )
    rows = draw(st.lists(st.none() | item, min_size=1, max_size=8))
    return [None, *rows] if all(row is not None for row in rows) else rows


KINDS = {Dense: dense_rows(), Ragged: ragged_rows(), Strings: string_rows(), Objects: object_rows()}
everykind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def drawn(kind: type[Column], data: st.DataObject) -> tuple[Column, list[Any]]:
    rows = data.draw(KINDS[kind], "rows")
    column = column_from_rows(rows)
    assert type(column) is kind
    return column, rows


def window(rows: list[Any], data: st.DataObject) -> tuple[int, int]:
    start = data.draw(st.integers(0, len(rows) - 1), "start")
    return start, data.draw(st.integers(start + 1, len(rows)), "stop")


@everykind
@few
@given(data=st.data())
def test_rows_come_back_as_they_went_in(kind: type[Column], data: st.DataObject) -> None:
    column, rows = drawn(kind, data)
    assert len(column) == len(rows)
    assert_same(column.rows(), rows)


@everykind
@few
@given(data=st.data())
def test_slice_of_a_slice(kind: type[Column], data: st.DataObject) -> None:
    column, rows = drawn(kind, data)
    for _ in range(2):
        start, stop = window(rows, data)
        column, rows = column.slice(start, stop), rows[start:stop]
        assert len(column) == len(rows)
        assert_same(column.rows(), rows)


@everykind
@few
@given(data=st.data())
def test_take_repeats_and_reorders(kind: type[Column], data: st.DataObject) -> None:
    column, rows = drawn(kind, data)
    start, stop = window(rows, data)
    column, rows = column.slice(start, stop), rows[start:stop]
    picks = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=12), "picks")
    taken = column.take(np.array(picks, np.int64))
    assert type(taken) is kind
    assert_same(taken.rows(), [rows[i] for i in picks])
    assert_same(column.rows(), rows)


@everykind
@few
@given(data=st.data())
def test_a_private_column_is_nobody_elses(kind: type[Column], data: st.DataObject) -> None:
    column, rows = drawn(kind, data)
    if isinstance(column, (Dense, Ragged)):
        column.owned = False
    start, stop = window(rows, data)
    view, expected = column.slice(start, stop), rows[start:stop]
    mine = view.private()
    assert_same(mine.rows(), expected)
    for row in mine.rows():
        if isinstance(row, np.ndarray):
            row[...] = b"!" if row.dtype == object else np.zeros((), row.dtype)
    assert_same(view.rows(), expected)
    assert_same(column.rows(), rows)


@everykind
@few
@given(data=st.data())
def test_fold_stacks_and_unfold_takes_apart(kind: type[Column], data: st.DataObject) -> None:
    column, rows = drawn(kind, data)
    size = data.draw(st.integers(1, 4), "size")
    # Groups of equal rows stack whatever the kind is.
    groups = [rows[i : i + 1] * size for i in range(len(rows))]
    column = column_from_rows([row for group in groups for row in group])
    folded = fold(column, size)
    assert len(folded) == len(rows)
    for batch, row in zip(folded.rows(), rows):
        assert_same(batch, stacked([row] * size))
    if all(row is not None and getattr(row, "shape", ()) is not None for row in rows):
        items, counts = unfold(folded)
        assert counts.tolist() == [size] * len(rows)
        assert_same(items.rows(), column.rows())


def stacked(rows: list[Any]) -> Any:
    """What a batch of these equal rows is, in plain NumPy."""
    if rows[0] is None:
        return None
    if isinstance(rows[0], (np.ndarray, np.generic)):
        return np.stack(rows)
    return filled(rows)


@everykind
@few
@given(data=st.data())
def test_pieces_join_to_the_whole(kind: type[Column], data: st.DataObject) -> None:
    column, rows = drawn(kind, data)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4), "cuts"))
    bounds = [0, *cuts, len(rows)]
    pieces = [column.slice(a, b) for a, b in pairwise(bounds) if a < b]
    joined = concat_columns(pieces)
    assert type(joined) is kind
    assert_same(joined.rows(), rows)


@everykind
@few
@given(data=st.data())
def test_the_spec_accepts_every_row(kind: type[Column], data: st.DataObject) -> None:
    column, rows = drawn(kind, data)
    spec = column.spec
    assert spec.dtype == column.dtype
    for row in rows:
        if kind is Strings:
            assert spec.shape == getattr(row, "shape", ())
            assert spec.dtype == np.dtype("U" if isinstance(np.atleast_1d(row).flat[0], str) else "S")
        elif kind is not Objects:
            assert spec.accepts(row.shape, row.dtype)


@everykind
@few
@given(data=st.data())
def test_bytes_are_those_of_the_rows_alone(kind: type[Column], data: st.DataObject) -> None:
    column, rows = drawn(kind, data)
    start, stop = window(rows, data)
    view = column.slice(start, stop)
    # A copy of the same rows, which shares memory with nothing else, takes as much.
    assert (
        view.nbytes == column_from_rows(rows[start:stop]).nbytes or type(column_from_rows(rows[start:stop])) is not kind
    )
    assert view.nbytes <= column.nbytes


def test_exact_sizes() -> None:
    assert Dense(np.zeros((3, 4), np.float32)).nbytes == 48
    assert Dense(np.zeros((30, 4), np.float32)).slice(2, 5).nbytes == 48
    ragged = Ragged.of([np.zeros(2, np.int16), np.zeros(5, np.int16)])
    assert ragged.nbytes == 2 * 7 + 8 * 3 + 8 * 2
    assert ragged.slice(0, 1).nbytes == 2 * 2 + 8 * 2 + 8
    text = Strings.of(["a", "é", ""], (), True)
    assert text.nbytes == 3 + 8 * 4
    array = np.zeros(100, np.uint8)
    assert Objects(filled([array])).nbytes == 8 + sys.getsizeof(array)


def test_private_keeps_what_is_owned() -> None:
    owned, lent = Dense(np.zeros(3)), Dense(np.zeros(3), owned=False)
    assert owned.private() is owned
    assert not np.shares_memory(lent.private().values, lent.values)
    assert owned.slice(0, 2).owned
    assert not lent.slice(0, 2).owned
    assert lent.take(np.array([0])).owned


def test_scalars_do_not_unfold() -> None:
    for rows in ([1, 2], ["a", "b"], [b"", b"x"], [np.datetime64(1, "s")], [object()]):
        with pytest.raises(RowError, match="scalar"):
            unfold(column_from_rows(rows))


def test_unfold_names_the_row_that_has_nothing_to_unfold() -> None:
    with pytest.raises(RowError, match="None") as caught:
        unfold(column_from_rows([np.arange(2), np.arange(3), None]))
    assert caught.value.row == 2


@pytest.mark.parametrize(
    ("rows", "row", "shapes"),
    [
        ([np.zeros(2), np.zeros(2), np.zeros(3), np.zeros(4)], 3, ("(4,)", "(3,)")),
        ([np.zeros((1, 2)), np.zeros((2, 2))], 1, ("(2, 2)", "(1, 2)")),
        ([np.zeros(2), np.zeros(2), np.zeros(2), np.zeros((2, 2))], 3, ("(2, 2)", "(2,)")),
        ([filled(["a"]), filled(["b"]), filled(["c"]), filled(["d", "e"])], 3, ("(2,)", "(1,)")),
        ([filled([b"a"]), filled([])], 1, ("(0,)", "(1,)")),
    ],
    ids=["vectors", "matrices", "ranks", "text", "empty"],
)
def test_rows_that_do_not_stack_are_named_with_both_shapes(rows: list[Any], row: int, shapes: tuple[str, str]) -> None:
    with pytest.raises(RowError) as caught:
        fold(column_from_rows(rows), 2)
    assert caught.value.row == row
    assert caught.value.text == f"has shape {shapes[0]}, the batch began with shape {shapes[1]}"


@pytest.mark.parametrize("rows", [[1, 2, None, 3], [None, None, 1, None], ["a", "b", "c", None]])
def test_none_beside_a_value_does_not_stack(rows: list[Any]) -> None:
    with pytest.raises(RowError, match="None") as caught:
        fold(column_from_rows(rows), 2)
    assert caught.value.row == 3
