"""Values that stand for the nulls of a table's columns: ``fill_nulls``."""

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from forebay.block.spec import BYTES, TEXT
from forebay.errors import PlanError
from forebay.storage.arrow import arrow
from forebay.storage.arrow_types import dtype_of, kind_of
from forebay.storage.leaf import Leaf
from forebay.storage.tables import TableForm
from forebay.storage.values import is_text, to_arrow, value_type

_VALUES = (bool, int, float, str, bytes, np.bool_, np.number, np.datetime64, datetime.date, datetime.timedelta)


def checked_fills(call: str, fill_nulls: Any) -> Any:
    """One value, or a dict of them in the order of its names; PlanError if it is neither."""
    if fill_nulls is None:
        return None
    named = isinstance(fill_nulls, Mapping)
    values = fill_nulls if named else {"": fill_nulls}
    if not values or not all(isinstance(name, str) for name in values):
        raise PlanError(f"{call}(fill_nulls={fill_nulls!r}): give a value, or a dict of values by the columns' names")
    plain = {}
    for name, value in sorted(values.items()):
        if not isinstance(value, _VALUES) or (isinstance(value, (np.datetime64, np.timedelta64)) and np.isnat(value)):
            raise PlanError(
                f"{call}(fill_nulls={fill_nulls!r}): {value!r} cannot stand for a null; give a number, text, bytes "
                "or a date"
            )
        # Plans are compared by what is printed, which should not depend on whether NumPy made a number.
        plain[name] = value.item() if isinstance(value, (np.bool_, np.integer, np.floating)) else value
    return plain if named else plain[""]


def with_fills(form: TableForm, schema: Any, fill_nulls: Any) -> TableForm:
    """The form with nulls filled in by what ``checked_fills`` returned; ValueError if that does not fit the columns."""
    if fill_nulls is None:
        return form
    values = fill_nulls if isinstance(fill_nulls, dict) else dict.fromkeys(form.names, fill_nulls)
    for name in values:
        if name not in form.names:
            read = ", ".join(map(repr, form.names))
            raise ValueError(f"gives no column {name!r}, which fill_nulls names; those that are read are {read}")
    hint = (
        "" if isinstance(fill_nulls, dict) else f"; name the columns, as in fill_nulls={{{next(iter(values))!r}: ...}}"
    )
    fills = {}
    for name, value in values.items():
        try:
            fills[name] = _fill(schema.field(name).type, form.leaves.get(name), value)
        except ValueError as error:
            raise ValueError(f"has a column {name!r} {error}{hint}") from None
    return replace(form, fills=fills)


def _fill(kind: Any, leaf: Leaf | None, value: Any) -> Any:
    """The value as the column stores it."""
    dtype = dtype_of(kind) if leaf is None else leaf.dtype if leaf.form == "scalar" else None
    if dtype is None:
        shown = kind_of(kind) if leaf is None else f"of shape {leaf.shape}"
        raise ValueError(f"({shown}), and fill_nulls fills plain values only: fill it with map()")
    fitted = _fitted(value, dtype)
    if fitted is None:
        shown = "str" if dtype == TEXT else "bytes" if dtype == BYTES else str(dtype)
        raise ValueError(f"of {shown}, which cannot hold the {value!r} that fill_nulls gives for it")
    pa = arrow()
    if is_text(dtype):
        return pa.scalar(value, value_type(dtype))
    if leaf is not None:
        return to_arrow(np.array([fitted], dtype), dtype, True)[0]
    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    if dtype.kind in "mM":
        return pa.array([int(fitted.astype(np.int64))], pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)[
            0
        ]
    return pa.scalar(fitted, kind)


def _fitted(value: Any, dtype: np.dtype[Any]) -> Any:
    """The value in that dtype; None if it is another then. Floats may be rounded, nothing else."""
    if is_text(dtype):
        return value if isinstance(value, str if dtype == TEXT else bytes) else None
    if isinstance(value, (str, bytes)):
        return None
    if dtype.kind in "mM":
        try:
            given = np.datetime64(value) if dtype.kind == "M" else np.timedelta64(value)
        except (ValueError, TypeError):
            return None
        made = given.astype(dtype)
        return made if not isinstance(value, (bool, int, float)) and made == given else None
    if not isinstance(value, (bool, int, float)) or isinstance(value, bool) != (dtype.kind == "b"):
        return None
    with np.errstate(all="ignore"):
        try:
            number = np.array(value).astype(dtype)[()]
        except (OverflowError, ValueError):
            return None
    if isinstance(value, float) and dtype.kind == "f":
        return number if np.isfinite(number) or not np.isfinite(value) else None
    return number if number.item() == value else None
