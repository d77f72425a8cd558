"""Columns as Arrow arrays and back: views of the same memory wherever both lay it out alike."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import Column, Indices, RowError, column_from_rows, with_dtype
from forebay.block.dense import Dense
from forebay.block.leaf import leaf_shape
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.spec import TEXT
from forebay.block.strings import Strings, object_array
from forebay.storage.arrow import arrow
from forebay.storage.leaf import Leaf
from forebay.storage.values import from_arrow, is_text, parts, to_arrow, value_type

_NOT_NEEDED = np.empty(0, np.int64)
# Arrow writes the sizes of tensors as int32. Arrays without values may have axes of any length.
_LONGEST = 2**31 - 1


def encode(leaf: Leaf, column: Column) -> Any:
    """The rows of a column that the leaf covers, as an array of its Arrow type. RowError if one does not go in."""
    pa = arrow()
    if leaf.form == "null":
        return pa.nulls(len(column))
    missing = np.zeros(0, np.bool_)
    if isinstance(column, Objects):
        rows = column.rows()
        missing = np.array([row is None for row in rows], np.bool_)
        present = [row for row in rows if row is not None]
        if not present:
            return pa.nulls(len(column), leaf.arrow_type)
        column = column_from_rows(present)
    column = with_dtype(column, leaf.dtype)
    try:
        array = _assemble(leaf, *_flat(leaf, column))
    except ValueError as error:
        row = _refused(leaf, column)
        raise RowError(int(np.flatnonzero(~missing)[row]) if len(missing) else row, str(error)) from None
    if missing.any():
        # Nulls take the place of the rows that are None.
        order = pa.array(np.cumsum(~missing) - 1, mask=missing)
        storage = getattr(array, "storage", array).take(order)
        return pa.ExtensionArray.from_storage(array.type, storage) if leaf.form == "fixed" else storage
    return array


def _refused(leaf: Leaf, column: Column) -> int:
    """The first row that does not go in, found by halves: what refuses a column looks at all of its values at once."""
    first, last = 0, len(column)
    while last - first > 1:
        middle = (first + last) // 2
        try:
            _flat(leaf, column.slice(first, middle))
            first = middle
        except ValueError:
            last = middle
    return first


def _flat(leaf: Leaf, column: Column) -> tuple[Any, Indices, list[tuple[int, ...]] | Indices]:
    """All values in one Arrow array, where each row begins and ends in it, and the rows' shapes, as stored."""
    values, offsets, shapes = _laid_out(leaf, column)
    if leaf.form == "tensor":
        longest = max(map(max, filter(None, shapes)), default=0) if isinstance(shapes, list) else shapes.max(initial=0)
        if longest > _LONGEST:
            raise ValueError(
                f"has an axis of {longest:,}, and Arrow has room for {_LONGEST:,}: reshape it in a map() before"
            )
    return values, offsets, shapes


def _laid_out(leaf: Leaf, column: Column) -> tuple[Any, Indices, list[tuple[int, ...]] | Indices]:
    each = parts(leaf.dtype)
    if isinstance(column, Strings):
        values, shape = _text(leaf, column), column.shape
    elif isinstance(column, Dense):
        values = to_arrow(column.values.astype(column.dtype, copy=False).reshape(-1), leaf.dtype, leaf.nullable)
        shape = column.values.shape[1:]
    elif isinstance(column, Ragged):
        values = to_arrow(column.values[int(column.offsets[0]) : int(column.offsets[-1])], leaf.dtype, leaf.nullable)
        return values, (column.offsets - column.offsets[0]) * each, _with_parts(column.shapes, each)
    else:
        return _of_objects(leaf, column.rows(), each)
    if leaf.form in ("scalar", "fixed"):
        return values, _NOT_NEEDED, _NOT_NEEDED
    shapes = np.tile(np.array(shape, np.int64), (len(column), 1))
    return values, _offsets(shapes.prod(axis=1) * each), _with_parts(shapes, each)


def _of_objects(leaf: Leaf, rows: list[Any], each: int) -> tuple[Any, Indices, list[tuple[int, ...]]]:
    """Arrays whose ranks differ, or arrays of strings whose shapes do."""
    if is_text(leaf.dtype):
        flat = [item for row in rows for item in (row.flat if isinstance(row, np.ndarray) else (row,))]
        values = _text(leaf, Strings.of(flat, (), leaf.dtype == TEXT))
    else:
        values = to_arrow(np.concatenate([np.asarray(row).reshape(-1) for row in rows]), leaf.dtype, leaf.nullable)
    shapes = [(*leaf_shape(row), each) if each > 1 else leaf_shape(row) for row in rows]
    return values, _offsets(np.array([int(np.prod(shape)) for shape in shapes], np.int64)), shapes


def _text(leaf: Leaf, column: Strings) -> Any:
    pa = arrow()
    buffers = [None, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    array = pa.Array.from_buffers(value_type(leaf.dtype), len(column.offsets) - 1, buffers)
    if column.text:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            raise ValueError("holds text with lone surrogates, which is not Unicode: save it as bytes") from None
    return array


def _assemble(leaf: Leaf, values: Any, offsets: Indices, shapes: Any) -> Any:
    pa = arrow()
    if leaf.form == "scalar":
        return values
    if leaf.form == "fixed":
        return pa.ExtensionArray.from_storage(
            leaf.arrow_type, pa.FixedSizeListArray.from_arrays(values, type=leaf.arrow_type.storage_type)
        )
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), values)
    if leaf.form == "list":
        return lists
    if leaf.inner is None:
        sizes = np.array([size for shape in shapes for size in shape], np.int32)
        ranks = _offsets(np.array([len(shape) for shape in shapes], np.int64)).astype(np.int32)
        listed = pa.ListArray.from_arrays(pa.array(ranks), pa.array(sizes))
    else:
        sizes = np.asarray(shapes).reshape(-1).astype(np.int32)
        listed = pa.FixedSizeListArray.from_arrays(pa.array(sizes), len(leaf.inner))
    return pa.StructArray.from_arrays([lists, listed], fields=list(leaf.arrow_type))


def decode(leaf: Leaf, array: Any) -> Column:
    """The rows of an Arrow column. Views, as far as dtypes allow."""
    if leaf.form == "null":
        return Objects(np.full(len(array), None))
    if leaf.form == "fixed":
        array = array.storage
    if leaf.nullable and array.null_count:
        valid = np.asarray(array.is_valid())
        rows: list[Any] = [None] * len(array)
        for row, value in zip(np.flatnonzero(valid).tolist(), _decode(leaf, array.drop_null()).rows()):
            rows[row] = value
        return Objects(object_array(rows))
    return _decode(leaf, array)


def _decode(leaf: Leaf, array: Any) -> Column:
    if leaf.form == "scalar":
        return strings_of(array, (), leaf) if is_text(leaf.dtype) else Dense(from_arrow(array, leaf.dtype), owned=False)
    if leaf.form == "fixed":
        values = from_arrow(array.flatten(), leaf.dtype)
        return Dense(values.reshape(len(array), *(leaf.shape or ())), owned=False)
    lists = array if leaf.form == "list" else array.field("data")
    offsets = np.frombuffer(lists.buffers()[1], np.int64, lists.offset + len(lists) + 1)[lists.offset :]
    if leaf.form == "list":
        shapes = np.diff(offsets)[:, None]
    else:
        sizes = array.field("shape")
        if leaf.inner is None:
            return _any_rank(leaf, lists.values, offsets, sizes.to_pylist())
        shapes = np.asarray(sizes.flatten()).astype(np.int64).reshape(len(array), len(leaf.inner))
        # In floating point, where no product of large sizes wraps around to the right number.
        if (shapes < 0).any() or (shapes.prod(axis=1, dtype=np.float64) != np.diff(offsets)).any():
            raise ValueError("a row has another number of values than its shape says")
    return of_shapes(leaf, lists.values, offsets, shapes)


def of_shapes(leaf: Leaf, values: Any, offsets: Indices, shapes: Indices) -> Column:
    """Rows of one rank from all values and the rows' shapes, as stored."""
    if is_text(leaf.dtype):
        if len(set(map(tuple, shapes.tolist()))) == 1 and shapes[0].all():
            used = values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
            return strings_of(used, tuple(shapes[0].tolist()), leaf)
        return _any_rank(leaf, values, offsets, shapes.tolist())
    each = parts(leaf.dtype)
    if each > 1:
        offsets, shapes = offsets // each, shapes[:, :-1]
    column = Ragged(from_arrow(values, leaf.dtype), offsets, shapes, owned=False)
    return column.dense() or column


def _any_rank(leaf: Leaf, values: Any, offsets: Indices, shapes: list[list[int]]) -> Column:
    each = parts(leaf.dtype)
    flat: Any = (
        object_array(strings_of(values, (), leaf).rows()) if is_text(leaf.dtype) else from_arrow(values, leaf.dtype)
    )
    bounds = (offsets // each).tolist()
    if any(size is None or size < 0 for shape in shapes for size in shape):
        # NumPy would work out what a size of -1 stands for.
        raise ValueError("a shape has a size that is no number of values")
    rows = [
        flat[start:stop].reshape(shape if each == 1 else shape[:-1])
        for start, stop, shape in zip(bounds, bounds[1:], shapes)
    ]
    # An array of no axes is a scalar.
    return Objects(object_array([row if row.ndim else row[()] for row in rows]))


def strings_of(array: Any, shape: tuple[int, ...], leaf: Leaf) -> Strings:
    """A column on the memory of an Arrow array of strings; `shape` is that of a row of them."""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64, array.offset + len(array) + 1)[array.offset :]
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Strings(content, bounds, shape, leaf.dtype == TEXT)


def _offsets(lengths: NDArray[Any]) -> Indices:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _with_parts(shapes: Indices, each: int) -> Indices:
    if each == 1:
        return shapes
    return np.concatenate([shapes, np.full((len(shapes), 1), each, np.int64)], axis=1)
