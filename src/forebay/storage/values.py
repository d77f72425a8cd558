"""NumPy's values as Arrow's: which type holds which dtype, and the way there and back.

| dtype | Arrow |
|---|---|
| bool, ints, float16 to float64 | the same |
| complex64, complex128 | two floats, real and imaginary part: the leaf has one axis of 2 more |
| datetime64, timedelta64 in s, ms, us, ns | timestamp, duration; NaT is null |
| the same in coarser units | timestamp[s], duration[s]; NaT is null |
| the same in finer units or in none; timedelta64 in months or years | int64 |
| text, bytes | large_string, large_binary |

In a leaf that is None at times, null is None, and NaT is the smallest number there is.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block.spec import BYTES, TEXT
from forebay.storage.arrow import arrow

_COARSE = {"M": ("Y", "M", "W", "D", "h", "m"), "m": ("W", "D", "h", "m")}
_EXACT = ("s", "ms", "us", "ns")


def is_text(dtype: np.dtype[Any]) -> bool:
    """Whether values are strings: bytes or text."""
    return dtype in (BYTES, TEXT)


def storable(dtype: np.dtype[Any]) -> bool:
    """Whether there is an Arrow type for it."""
    return is_text(dtype) or dtype.kind in "biumM" or dtype.char in "efdFD"


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that numbers are written in; it may be the same memory under another name."""
    if dtype.kind == "c":
        return np.dtype(np.float32 if dtype == np.complex64 else np.float64)
    if dtype.kind in "mM":
        unit, count = np.datetime_data(dtype)
        if unit in _COARSE[dtype.kind] or (unit == "s" and count != 1):
            return np.dtype(f"{dtype.kind}8[s]")
        if unit not in _EXACT or count != 1:
            return np.dtype(np.int64)
    return dtype


def parts(dtype: np.dtype[Any]) -> int:
    """How many stored numbers make one value."""
    return 2 if dtype.kind == "c" else 1


@cache
def value_type(dtype: np.dtype[Any]) -> Any:
    """The Arrow type of a value, or of a part of it."""
    pa = arrow()
    if is_text(dtype):
        return pa.large_string() if dtype == TEXT else pa.large_binary()
    stored = stored_dtype(dtype)
    if stored.kind in "mM":
        unit = np.datetime_data(stored)[0]
        return pa.timestamp(unit) if stored.kind == "M" else pa.duration(unit)
    return pa.from_numpy_dtype(stored)


def to_arrow(values: NDArray[Any], dtype: np.dtype[Any], nulls: bool) -> Any:
    """A flat array of numbers as an Arrow array: a view, unless it has to be converted. ValueError if it cannot.

    `nulls` says that a null stands for None in this column, and so cannot stand for NaT.
    """
    pa = arrow()
    stored = stored_dtype(dtype)
    flat = np.ascontiguousarray(values)
    if dtype.kind == "c":
        flat = flat.view(stored)
    elif stored != dtype:
        flat = flat.view(stored) if stored.kind == "i" else _in_seconds(flat, stored)
    if stored.kind == "b":
        return pa.array(flat)
    valid = None
    if stored.kind in "mM" and not nulls:
        missing = np.isnat(flat)
        if missing.any():
            # Only a mark for other readers: the value underneath stays NaT.
            valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    if stored.kind in "mM":
        flat = flat.view(np.int64)
    return pa.Array.from_buffers(value_type(dtype), len(flat), [valid, pa.py_buffer(flat)])


def _in_seconds(values: NDArray[Any], stored: np.dtype[Any]) -> NDArray[Any]:
    seconds = values.astype(stored)
    back = seconds.astype(values.dtype)
    if not np.array_equal(back.view(np.int64), values.view(np.int64)):
        raise ValueError(f"holds {values.dtype.name} values too far away to be counted in seconds")
    return seconds


def from_arrow(array: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The numbers of a flat Arrow array, as a view where memory is the same."""
    data = array.buffers()[1]
    start, stop = array.offset, array.offset + len(array)
    stored = stored_dtype(dtype)
    if data is None or not len(array):
        return np.empty(0, dtype)
    if stored.kind == "b":
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=stop, bitorder="little")
        return bits[start:].view(np.bool_)
    values = np.frombuffer(data, stored, stop)[start:]
    if stored.kind in "mM" and array.null_count:
        # Other writers than Forebay leave anything underneath a null.
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        values = np.where(valid, values, np.array("NaT", stored))
    return as_dtype(values, dtype)


def as_dtype(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Stored numbers, the last axis contiguous, as values of the dtype."""
    if values.dtype == dtype:
        return values
    return values.astype(dtype) if values.dtype.kind in "mM" else values.view(dtype)
