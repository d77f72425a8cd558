"""Arrays to tf.train.Example."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from forebay._native import write_examples
from forebay.block import Block, Column, Indices
from forebay.block.dense import Dense
from forebay.block.ragged import Ragged
from forebay.block.strings import Strings
from forebay.errors import DataError
from forebay.io.features import BYTES, FLOAT, INT64, NOTHING

Written = tuple[bytes, int, Any, Indices]


def serialize_example(features: Mapping[str, Any]) -> bytes:
    """A tf.train.Example of these features, serialized.

    Values are numbers, bytes, text (written in UTF-8), or arrays or lists of them. Whole numbers and bools become
    int64, other numbers float32. Arrays are written flat. None, and a list with nothing in it, is a feature without
    values.

    >>> import forebay as fb
    >>> record = serialize_example({"x": [1, 2], "name": "one"})
    >>> fb.io.parse_single_example(record, {"name": fb.io.FixedLenFeature([], bytes)})
    {'name': b'one'}
    """
    if not isinstance(features, Mapping):
        raise DataError(f"serialize_example(): features must be a dict, not {type(features).__name__}")
    written = [_written(name, value) for name, value in features.items()]
    return write_examples(written, 1)[0].tobytes()


def serialized_block(block: Block) -> Strings:
    """The same for every row of a block of dicts."""
    structure = block.structure
    if structure.kind is not dict or not all(child.is_leaf for child in structure.children):
        raise DataError(f"elements are {structure}: an Example is made of a dict of arrays")
    written = [_written_column(name, column) for name, column in zip(structure.keys, block.columns)]
    if any(each is None for each in written):
        rows = [serialize_example(element) for element in block.elements()]
        return Strings.of(rows, (), False)
    data, offsets = write_examples([each for each in written if each is not None], block.rows)
    return Strings(data, offsets, (), False)


def _written(name: Any, value: Any) -> Written:
    if not isinstance(name, str):
        raise DataError(f"serialize_example(): {name!r} is not the name of a feature")
    if isinstance(value, (bytes, str)):
        value = [value]
    elif value is None or (isinstance(value, (list, tuple)) and not value):
        return _name_bytes(name), NOTHING, None, np.array([0, 0])
    array = np.asarray(value)
    if array.dtype.kind in "SUO":
        # NumPy's own strings lose the NULs at their ends.
        array = np.array(value, dtype=object)
        flat = [_as_bytes(name, item) for item in array.reshape(-1).tolist()]
        column = Strings.of(flat, (), False)
        return _name_bytes(name), BYTES, (column.data, column.offsets), np.array([0, len(flat)])
    kind, values = _numbers(name, array.reshape(-1))
    return _name_bytes(name), kind, values, np.array([0, len(values)])


def _written_column(name: Any, column: Column) -> Written | None:
    """A column as the kernel takes it; None if its rows have to be looked at one by one."""
    if not isinstance(name, str):
        raise DataError(f"serialize_example(): {name!r} is not the name of a feature")
    if isinstance(column, Dense) and column.values.dtype.kind in "biuf":
        kind, values = _numbers(name, column.values.reshape(-1))
        rows = len(column)
        return _name_bytes(name), kind, values, np.arange(rows + 1) * (len(values) // max(rows, 1))
    if isinstance(column, Ragged) and column.values.dtype.kind in "biuf":
        kind, values = _numbers(name, column.values)
        return _name_bytes(name), kind, values, np.ascontiguousarray(column.offsets)
    if isinstance(column, Strings):
        width = int(np.prod(column.shape, dtype=np.int64))
        return (
            _name_bytes(name),
            BYTES,
            (column.data, np.ascontiguousarray(column.offsets)),
            np.arange(len(column) + 1) * width,
        )
    return None


def _name_bytes(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise DataError(f"serialize_example(): {name!r} is no text that can be written") from None


def _numbers(name: str, values: Any) -> tuple[int, Any]:
    if values.dtype.kind in "bi" or (values.dtype.kind == "u" and values.dtype.itemsize < 8):
        return INT64, np.ascontiguousarray(values, np.int64)
    if values.dtype.kind == "u":
        if len(values) and values.max() > np.iinfo(np.int64).max:
            raise DataError(f"feature {name!r}: {values.max()} does not fit into int64")
        return INT64, values.astype(np.int64)
    if values.dtype.kind == "f":
        try:
            with np.errstate(over="raise"):
                return FLOAT, np.ascontiguousarray(values, np.float32)
        except FloatingPointError:
            largest = np.abs(values[np.isfinite(values)]).max()
            raise DataError(f"feature {name!r}: {largest} does not fit into float32") from None
    raise DataError(f"feature {name!r}: an Example holds numbers and bytes, not {values.dtype}")


def _as_bytes(name: str, item: Any) -> bytes:
    if isinstance(item, str):
        try:
            return item.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"feature {name!r}: {item!r} cannot be written as UTF-8: {error.reason}") from None
    if not isinstance(item, bytes):
        raise DataError(f"feature {name!r}: an Example holds numbers and bytes, not {type(item).__name__}")
    return item
