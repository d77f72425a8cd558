"""Columns from values: one value per row, or whole arrays; and columns joined, folded and mixed."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block.aligned import joined
from forebay.block.column import Column, Indices, MissingError, RowError
from forebay.block.dense import Dense
from forebay.block.leaf import NUMBERS, array_from_list, as_leaf, is_bare, leaf_dtype, leaf_shape, settled
from forebay.block.listed import Listed, bytes_column
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.spans import Spans
from forebay.block.spec import BYTES, OBJECT, TEXT
from forebay.block.strings import Strings, object_array

_dtype = attrgetter("dtype")
_shape = attrgetter("shape")


def column_from_rows(values: Sequence[Any], known: np.dtype[Any] | None = None) -> Column:
    """A column with one row per value. RowError names the first row that cannot stand with those before it.

    `known` is the dtype that values had in earlier blocks. An empty list goes with any dtype, and stays what NumPy
    makes of it: a dtype taken over from other rows would depend on which of them happen to be here.
    """
    kinds = set(map(type, values))
    column = _uniform(next(iter(kinds)), values) if len(kinds) == 1 else None
    if column is None:
        return _general([_at_row(row, value) for row, value in enumerate(values)], known)
    if known is not None and column.value_dtype not in (known, OBJECT):
        raise RowError(0, misfit(column.dtype, known))
    return column


def column_from_leaves(leaves: list[Any]) -> Column:
    """A column of rows that were in one before: what a value may be was decided there, as for lists in JSON."""
    kinds = set(map(type, leaves))
    return (_uniform(kinds.pop(), leaves) if len(kinds) == 1 else None) or _general(leaves, None)


def _at_row(row: int, value: Any) -> Any:
    try:
        return as_leaf(value)
    except RowError as error:
        raise RowError(row, error.text) from None


def _uniform(kind: type[Any], values: Sequence[Any]) -> Column | None:
    """The common cases, without a Python step per row; None sends the values to the general case."""
    number = NUMBERS.get(kind)
    if number is not None:
        try:
            return Dense(np.array(values, dtype=number))
        except OverflowError:
            return None
    if kind is bytes:
        return bytes_column(list(values))
    if kind is str:
        return Strings.of(values, (), text=True)
    if issubclass(kind, np.generic):
        if issubclass(kind, (np.number, np.bool_)) and not issubclass(kind, np.timedelta64):
            return Dense(np.fromiter(values, kind, len(values)))
        return None
    if kind is np.ndarray:
        return _stack(values)
    return None


def _stack(arrays: Sequence[NDArray[Any]]) -> Column | None:
    # Nearly always one object, and much cheaper to compare as that than by what it says.
    dtype = arrays[0].dtype
    if len(set(map(id, map(_dtype, arrays)))) != 1 and len(set(map(_dtype, arrays))) != 1:
        return None
    if dtype.kind in "OSUT" or not dtype.isnative:
        return None
    shapes = set(map(_shape, arrays))
    ranks = {len(shape) for shape in shapes}
    if ranks == {0}:
        # Of a tuple, NumPy would make one record with as many fields.
        return Dense(np.array(list(arrays), dtype))
    if len(shapes) == 1:
        return Dense(joined(arrays).reshape(len(arrays), *shapes.pop()))
    return Ragged.of(list(arrays)) if len(ranks) == 1 else None


def _general(leaves: list[Any], earlier: np.dtype[Any] | None) -> Column:
    dtypes = [leaf_dtype(leaf) for leaf in leaves]
    known = OBJECT if earlier is None else earlier
    for row, (leaf, dtype) in enumerate(zip(leaves, dtypes)):
        if dtype in (OBJECT, known) or is_bare(leaf):
            continue
        if known != OBJECT:
            raise RowError(row, misfit(dtype, known))
        known = dtype
    if len(set(dtypes)) != 1 or dtypes[0] == OBJECT:
        return _objects(leaves)
    if dtypes[0] in (BYTES, TEXT):
        return _strings(leaves, dtypes[0] == TEXT)
    if all(isinstance(leaf, np.generic) for leaf in leaves):
        return Dense(np.array(leaves, dtypes[0]))
    return _stack([np.asarray(leaf) for leaf in leaves]) or _objects(leaves)


def _strings(leaves: list[Any], text: bool) -> Column:
    shapes = {leaf_shape(leaf) for leaf in leaves}
    if len(shapes) > 1 or 0 in next(iter(shapes)):
        return _objects(leaves)
    shape = shapes.pop()
    flat = [item for leaf in leaves for item in leaf.flat] if shape else leaves
    return Strings.of(flat, shape, text) if text else bytes_column(flat, shape)


def _objects(leaves: list[Any]) -> Objects:
    shapes = {leaf.shape if isinstance(leaf, np.ndarray) and leaf.dtype == OBJECT else None for leaf in leaves}
    shape = shapes.pop() if len(shapes) == 1 else None
    if shape is None:
        return Objects(object_array(leaves))
    return Objects(object_array([item for leaf in leaves for item in leaf.flat]).reshape(len(leaves), *shape))


def column_from_array(values: Any, owned: bool) -> Column:
    """A column whose rows are the first axis of an array, or the items of a list. RowError for a scalar."""
    if values is None or isinstance(values, (str, bytes)):
        raise RowError(0, "is None" if values is None else "is a scalar")
    if isinstance(values, list) and _is_uneven(values):
        return column_from_rows([np.asarray(row) for row in values])
    array = values if isinstance(values, np.ndarray) else array_from_list(values)
    if array.ndim == 0:
        raise RowError(0, "is a scalar")
    if array.dtype.kind in "SUTO":
        leaves = list(array.astype(object, copy=False))
        return column_from_rows(leaves) if leaves else Objects(np.empty(array.shape, object))
    if not array.dtype.isnative:
        return Dense(array.astype(array.dtype.newbyteorder("=")))
    return Dense(array.view(np.ndarray), owned)


def _is_uneven(rows: list[Any]) -> bool:
    """Whether a list of lists or arrays does not form one array."""
    if not rows or not all(isinstance(row, (list, np.ndarray)) for row in rows):
        return False
    try:
        np.asarray(rows)
    except ValueError:
        return True
    return False


def with_dtype(column: Column, dtype: np.dtype[Any] | None = None) -> Column:
    """The same rows, with empty lists in the dtype of the others, or in this one: for rows that become one thing."""
    wanted = column.value_dtype if dtype is None else dtype
    if isinstance(column, Objects):
        bare = any(map(is_bare, column.rows()))
    else:
        bare = len(column) > 0 and wanted != OBJECT and column.value_dtype != column.dtype
    if not bare:
        return column
    return column_from_rows(settled(column.rows(), np.dtype(np.float64) if wanted == OBJECT else wanted))


def array_of(column: Column) -> NDArray[Any]:
    """The whole column as one array for a function to work on; rows that differ come as an array of objects."""
    if isinstance(column, (Dense, Objects)):
        return column.values
    rows = column.rows()
    return np.stack(rows) if isinstance(column, Strings) and column.shape else object_array(rows)


def concat_columns(columns: Sequence[Column]) -> Column:
    """All rows in one column. RowError if dtypes differ."""
    first, rest = columns[0], list(columns[1:])
    if not rest:
        return first
    kinds = set(map(type, columns))
    joined = first.join(rest) if len(kinds) == 1 or kinds <= {Strings, Spans, Listed} else None
    if joined is None and kinds <= {Dense, Ragged} and len({column.dtype for column in columns}) == 1:
        ragged = [Ragged.of_dense(c) if isinstance(c, Dense) else c for c in columns]
        if all(c.shapes.shape[1] for c in ragged if isinstance(c, Ragged)):
            joined = ragged[0].join(list(ragged[1:]))
    if joined is not None:
        return joined
    row, known = 0, OBJECT
    for column in columns:
        found = OBJECT if column.dtype == OBJECT else column.value_dtype
        if OBJECT not in (found, known) and found != known:
            raise RowError(row, misfit(found, known))
        known = found if known == OBJECT else known
        row += len(column)
    return _objects([leaf for column in columns for leaf in column.rows()])


def fold(column: Column, size: int) -> Column:
    """Every `size` rows become one, stacked along a new first axis. RowError if they do not stack."""
    if isinstance(column, (Dense, Ragged, Strings)):
        return column.fold(size)
    rows = column.rows()
    return column_from_rows([_fold_rows(rows, start, size) for start in range(0, len(rows), size)])


def unfold(column: Column) -> tuple[Column, Indices]:
    """The first axis of every row becomes rows of its own; also how many each row gave."""
    if not isinstance(column, Objects) or column.values.ndim > 1:
        return column.unfold()
    rows = column.rows()
    for row, value in enumerate(rows):
        if leaf_shape(value) == ():
            raise RowError(row, "is None" if value is None else "is a scalar")
    counts = np.array([len(row) for row in rows], np.int64)
    items = [item for row in rows for item in row]
    return (column_from_rows(items) if items else Objects(np.empty(0, object))), counts


def _fold_rows(rows: list[Any], start: int, size: int) -> Any:
    """One batch of an object column, stacked as if these rows had been a column of their own."""
    group = rows[start : start + size]
    missing = [row is None for row in group]
    if all(missing):
        return None
    if any(missing):
        odd = missing.index(not missing[0])
        raise MissingError(start + odd, "is None in some elements of the batch and a value in others")
    column = with_dtype(column_from_rows(group))
    if isinstance(column, Objects):
        for i, row in enumerate(group):
            if leaf_shape(row) != leaf_shape(group[0]):
                raise RowError(
                    start + i,
                    f"has shape {leaf_shape(row)}, the batch began with shape {leaf_shape(group[0])}",
                )
        return column.values
    if isinstance(column, Ragged):
        try:
            column = column.fold(size)
        except RowError as error:
            raise RowError(start + error.row, error.text) from None
        return column.rows()[0]
    return array_of(column)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The dtype as a user would write it."""
    return "bytes" if dtype == BYTES else "str" if dtype == TEXT else dtype.name


def misfit(found: np.dtype[Any], earlier: np.dtype[Any]) -> str:
    """What errors say of a value whose dtype is not that of the values before it, and how to make them one."""
    text = f"is {dtype_name(found)}, earlier {dtype_name(earlier)}"
    if {found, earlier} == {BYTES, TEXT}:
        return f"{text}; encode() or decode() one of them"
    if found.kind in "biufc" and earlier.kind in "biufc":
        both = np.result_type(found, earlier).name
        return f"{text}; make all of them one dtype, as np.{both}(x) or x.astype(np.{both}) does"
    return text
