"""Rows of any Arrow table, whoever wrote it: what elements look like, and the columns that they are made of.

| Arrow | leaf |
|---|---|
| bool, ints, floats | the same |
| string, binary of all kinds | text, bytes |
| timestamp, date | datetime64 (in UTC, where there is a time zone) |
| duration, time | timedelta64 (a time is counted from midnight) |
| dictionary, run-end encoded | what is in it |
| lists of all kinds, lists of lists, tensors | array; of objects where lengths differ inside |
| struct | dict; inside lists and maps, an array of dicts |
| others, such as decimal | the Python object |
| null | None, at any level; an array with None in it is one of objects |

What a row becomes follows from the row and the type alone, never from the rows beside it.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import LEAF, Block, Column, Indices, Structure, TensorSpec
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.block.spec import OBJECT
from forebay.block.strings import object_array
from forebay.storage.arrow import arrow
from forebay.storage.arrow_types import add_specs, dtype_of, is_list, is_view, items_of, kind_of, no_twins, structure_of
from forebay.storage.columns import decode, of_shapes, strings_of
from forebay.storage.leaf import Leaf
from forebay.storage.values import from_arrow, is_text, value_type


@dataclass(frozen=True)
class TableForm:
    """What elements of a table are like: their structure, and for each leaf its kind, to compare files by.

    `leaves` are those that a file of Forebay's own says its columns hold, by name; `fills` are Arrow's values that
    stand for the nulls of columns.
    """

    names: tuple[str, ...]
    structure: Structure
    kinds: tuple[str, ...]
    leaves: dict[str, Leaf]
    fills: dict[str, Any] = field(default_factory=dict)

    def block(self, batch: Any) -> Block:
        """The rows of a record batch that has these columns, as views where dtypes allow it."""
        columns: list[Column] = []
        for name in self.names:
            array, leaf = batch.column(name), self.leaves.get(name)
            if leaf is not None:
                array = _restored(array, leaf)
            if name in self.fills:
                array = _filled(array, self.fills[name])
            columns += _columns(array) if leaf is None else [decode(leaf, array)]
        return Block(self.structure, [column.shared() for column in columns], batch.num_rows)

    def specs(self, schema: Any, nulls: "dict[str, bool] | None") -> Any | None:
        """A spec for each leaf; None if that would take looking at the rows.

        `nulls` says by a column's path whether it holds any, as far as that is known.
        """
        leaves: list[TensorSpec] = []
        if self.fills:
            nulls = (nulls or {}) | dict.fromkeys(self.fills, False)
        for name in self.names:
            leaf = self.leaves.get(name)
            if leaf is not None:
                path = f"{name}.list.element" if leaf.form == "fixed" else name
                if leaf.nullable and (nulls is None or path not in nulls):
                    return None
                leaves.append(replace(leaf, nullable=leaf.nullable and (nulls or {})[path]).spec())
            elif nulls is None or not add_specs(schema.field(name).type, name, nulls, leaves):
                return None
        return self.structure.unflatten(leaves)


def table_form(
    schema: Any, columns: "tuple[str, ...] | None", leaves: dict[str, Leaf], own: Structure | None
) -> TableForm:
    """Elements are dicts of columns; `own` is the structure of what Forebay wrote, which is used for whole tables."""
    names = tuple(schema.names) if columns is None else columns
    for name in names:
        count = schema.names.count(name)
        if count != 1:
            have = ", ".join(map(repr, schema.names))
            raise ValueError(f"has {'no column' if not count else 'several columns'} {name!r}; there are {have}")
        no_twins(schema.field(name).type)
    known = {name: leaf for name, leaf in leaves.items() if name in names and _same(schema.field(name).type, leaf)}
    if own is not None and columns is None and set(known) == set(names) and own.size == len(names):
        structure = own
        # Columns are in the order of the structure's leaves.
        names = tuple(leaves)
    else:
        structure = Structure(
            dict,
            names,
            tuple(LEAF if name in known else structure_of(schema.field(name).type) for name in names),
        )
    kinds = tuple(repr(known[name]) if name in known else kind_of(schema.field(name).type) for name in names)
    return TableForm(names, structure, kinds, known)


def _same(kind: Any, leaf: Leaf) -> bool:
    """Whether a column is of the type that the leaf was written with. Parquet knows no seconds: it has milliseconds."""
    if kind == leaf.arrow_type:
        return True
    said, found = kind_of(_storage_type(leaf)), kind_of(kind)
    return found.replace("[ms]", "[s]") == said.replace("[ms]", "[s]")


def _storage_type(leaf: Leaf) -> Any:
    return leaf.arrow_type.storage_type if leaf.form == "fixed" else leaf.arrow_type


def _restored(array: Any, leaf: Leaf) -> Any:
    """A column as it was before it was written."""
    if array.type == leaf.arrow_type:
        return array
    storage = getattr(array, "storage", array).cast(_storage_type(leaf))
    return arrow().ExtensionArray.from_storage(leaf.arrow_type, storage) if leaf.form == "fixed" else storage


def _filled(array: Any, value: Any) -> Any:
    """The column with a value in the place of nulls."""
    array = _decoded(array)
    if not array.null_count:
        return array
    import pyarrow.compute

    if is_text(dtype_of(array.type) or OBJECT):
        # As the value is: not all kinds of strings can be filled.
        array = array.cast(value.type)
    return pyarrow.compute.fill_null(array, value)


def _decoded(array: Any) -> Any:
    """Values without their encoding, which may hide nulls: in a dictionary, or in the values of runs."""
    pa = arrow()
    while dtype_of(array.type) is not None:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            import pyarrow.compute

            array = pyarrow.compute.run_end_decode(array)
        else:
            break
    return array


def _columns(array: Any) -> list[Column]:
    pa = arrow()
    array = _decoded(array)
    if pa.types.is_struct(array.type):
        # flatten() hands a struct's nulls on to its fields.
        return [column for child in array.flatten() for column in _columns(child)]
    if not array.null_count and len(array):
        column = _fast(array)
        if column is not None:
            return [column]
    return [Objects(object_array(_rows(array)))]


def _fast(array: Any) -> Column | None:
    """Rows without a null as one column of arrays or values; None if they have to be looked at one by one."""
    pa = arrow()
    if isinstance(array.type, pa.FixedShapeTensorType):
        if array.storage.flatten().null_count:
            return None
        return Dense(array.to_numpy_ndarray(), owned=False)
    found = _tensors(array)
    if found is None:
        return None
    values, sizes = found
    dtype = dtype_of(values.type)
    if dtype is None:
        return None
    flat = _plain(values, dtype)
    leaf = Leaf("", dtype, (None,) * sizes.shape[1])
    if sizes.shape[1]:
        offsets = np.zeros(len(array) + 1, np.int64)
        np.cumsum(sizes.prod(axis=1), out=offsets[1:])
        return of_shapes(leaf, flat, offsets, sizes)
    return strings_of(flat, (), leaf) if is_text(dtype) else Dense(from_arrow(flat, dtype), owned=False)


def _tensors(array: Any) -> "tuple[Any, Indices] | None":
    """All values in one flat array, and the shape of every row; None if a row is not an array without nulls."""
    pa = arrow()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not is_list(array.type):
        return array, np.zeros((len(array), 0), np.int64)
    flat, counts = _unlisted(array)
    flat = _decoded(flat)
    if flat.null_count:
        return None
    found = _tensors(flat)
    if found is None:
        return None
    values, inner = found
    firsts = np.cumsum(counts) - counts
    shapes = np.zeros((len(array), inner.shape[1]), np.int64)
    shapes[counts > 0] = inner[firsts[counts > 0]]
    if inner.shape[1] and (np.repeat(shapes, counts, axis=0) != inner).any():
        return None
    return values, np.concatenate([counts[:, None], shapes], axis=1)


def _unlisted(array: Any) -> tuple[Any, Indices]:
    """The items of all lists, none of which is null, and how many each has.

    Nothing is cast: what Arrow makes of views, and of maps with nulls in them, has the wrong offsets.
    """
    pa = arrow()
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        return array.flatten(), np.full(len(array), kind.list_size, np.int64)
    if pa.types.is_map(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        sides = [side.slice(first, count) for side in (array.keys, array.items)]
        return pa.StructArray.from_arrays(sides, fields=list(items_of(kind))), np.diff(offsets)
    sizes = array.sizes if is_view(kind) else array.value_lengths()
    return array.flatten(), sizes.to_numpy(zero_copy_only=False).astype(np.int64)


def picked(data: Any, rows: Indices) -> Any:
    """The rows with these numbers, which rise, of an array or a record batch."""
    pa = arrow()
    try:
        return data.take(pa.array(rows))
    except pa.ArrowNotImplementedError:
        # Not all types can be taken from, but all can be cut and put together again.
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        runs = [run for run in np.split(rows, breaks) if len(run)]
        parts = [data.slice(int(run[0]), len(run)) for run in runs] or [data.slice(0, 0)]
        return pa.concat_batches(parts) if isinstance(data, pa.RecordBatch) else pa.concat_arrays(parts)


def _plain(array: Any, dtype: np.dtype[Any]) -> Any:
    """Values as an array of the type that Forebay itself writes that dtype with."""
    pa = arrow()
    kind = array.type
    if is_text(dtype):
        return array.cast(value_type(dtype))
    if dtype.kind not in "mM":
        return array
    numbers = array.view(pa.int32()).cast(pa.int64()) if kind.bit_width == 32 else array.view(pa.int64())
    unit = np.datetime_data(dtype)[0]
    if unit == "D":
        # Forebay counts coarse units in seconds.
        return pa.array(numbers.to_numpy() * 86_400).view(pa.timestamp("s"))
    return numbers.view(pa.timestamp(unit) if dtype.kind == "M" else pa.duration(unit))


def _rows(array: Any) -> list[Any]:
    """One value for each row, one by one: what every other way has to agree with."""
    pa = arrow()
    array = _decoded(array)
    if array.null_count == len(array):
        return [None] * len(array)
    if array.null_count:
        rows: list[Any] = [None] * len(array)
        valid = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        for row, value in zip(valid.tolist(), _rows(picked(array, valid))):
            rows[row] = value
        return rows
    if pa.types.is_struct(array.type):
        names = [array.type.field(i).name for i in range(array.type.num_fields)]
        if not names:
            return [{} for _ in range(len(array))]
        return [dict(zip(names, values)) for values in zip(*map(_rows, array.flatten()))]
    if isinstance(array.type, pa.FixedShapeTensorType):
        return _tensor_rows(array)
    if isinstance(array, pa.ExtensionArray):
        return _rows(array.storage)
    if is_list(array.type):
        flat, counts = _unlisted(array)
        items, ends = _rows(flat), np.cumsum(counts).tolist()
        kind = items_of(array.type)
        return [_array(items[end - count : end], kind) for end, count in zip(ends, counts.tolist())]
    dtype = dtype_of(array.type)
    if dtype is None:
        return list(array.to_pylist())
    flat = _plain(array, dtype)
    leaf = Leaf("", dtype, ())
    return strings_of(flat, (), leaf).rows() if is_text(dtype) else list(from_arrow(flat, dtype))


def _tensor_rows(array: Any) -> list[Any]:
    rows = []
    for i in range(len(array)):
        one = array.slice(i, 1)
        items = one.storage.flatten()
        if items.null_count:
            # Only tensors without nulls are arrays of numbers.
            rows.append(object_array(_rows(items)).reshape(array.type.shape))
        else:
            rows.append(one.to_numpy_ndarray()[0])
    return rows


def _array(items: list[Any], kind: Any) -> NDArray[Any]:
    """The items of one list: an array of numbers or strings where they form one, of objects where not."""
    rank = 0
    while is_list(kind):
        kind, rank = items_of(kind), rank + 1
    dtype = dtype_of(kind)
    if dtype is None:
        return object_array(items)
    stored = OBJECT if is_text(dtype) else dtype
    if not items:
        return np.empty((0,) * (rank + 1), stored)
    if any(item is None for item in items):
        return object_array(items)
    if not rank:
        return object_array(items) if stored == OBJECT else np.array(items, dtype)
    if len({item.shape for item in items}) > 1 or any(item.dtype != stored or item.ndim != rank for item in items):
        return object_array(items)
    if stored == OBJECT and any(_uneven(item) for item in items):
        return object_array(items)
    return np.stack(items)


def _uneven(item: NDArray[Any]) -> bool:
    """Whether an array of objects holds other things than strings."""
    return any(not isinstance(each, (str, bytes)) for each in item.flat)
