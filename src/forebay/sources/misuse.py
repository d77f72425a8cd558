"""What is not data by columns, and what to write instead."""

from collections.abc import Iterator, KeysView, Mapping, ValuesView
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from forebay.block import Column
from forebay.block.objects import Objects
from forebay.block.structure import is_container
from forebay.errors import PlanError
from forebay.plan.node import Node

_GENERATE = "use from_generator(lambda: rows)"


def as_column_data(call: str, path: str, leaf: Any) -> Any:
    """The leaf, if it could be a column; PlanError that names the remedy if it is a known mistake."""
    if isinstance(leaf, (KeysView, ValuesView)):
        return list(leaf)
    wrong = _mistake(leaf)
    if wrong is not None:
        raise PlanError(f"{call}(): {path} is {wrong}")
    return leaf


def _mistake(leaf: Any) -> str | None:
    if isinstance(getattr(leaf, "plan", None), Node):
        return "a Dataset already: use it as it is, or zip() it with others"
    if isinstance(leaf, Iterator):
        return "an iterator, which gives its items only once: pass list(...), or use from_generator(lambda: ...)"
    if isinstance(leaf, AbstractSet):
        return "a set, whose items have no order: pass sorted(...)"
    first = leaf[0] if isinstance(leaf, list) and leaf else None
    if isinstance(first, Mapping):
        return (
            "a list of dicts: pass a dict of columns, {key: [row[key] for row in rows] for key in rows[0]}, "
            f"or {_GENERATE}"
        )
    if is_container(type(first)) and not isinstance(first, tuple):
        return f"a list of {type(first).__name__} objects: {_GENERATE}"
    return None


def check_not_mixed(call: str, path: str, leaf: Any, column: Column) -> None:
    """PlanError for rows such as ("a", 1), which as an array would be neither text nor numbers."""
    if not isinstance(column, Objects) or not isinstance(leaf, list):
        return
    for row, value in enumerate(leaf):
        if isinstance(value, (tuple, list)):
            kinds = {isinstance(item, (str, bytes)) for item in value if item is not None}
            if len(kinds) > 1:
                raise PlanError(
                    f"{call}(): {path} has rows that mix text and numbers, as {value!r} in row {row}: pass a tuple of "
                    f"columns, tuple(map(list, zip(*rows))), or {_GENERATE}"
                )


def misfit_in(leaf: Any, row: int) -> str:
    """Where a value of another type stands in a column, and what it probably is."""
    if isinstance(leaf, (type, np.generic)) or (isinstance(leaf, np.ndarray) and not leaf.ndim):
        return ""
    if not hasattr(leaf, "__len__") or len(leaf) <= row:
        return ""
    # Only NaN differs from itself. It need not be the row complained about: it may have come first.
    missing = next((i for i, value in enumerate(leaf) if isinstance(value, float) and value != value), None)
    if missing is None:
        return f" (row {row})"
    return f" (row {missing} is {leaf[missing]!r}, a missing value: fill it first, e.g. with column.fillna(''))"
