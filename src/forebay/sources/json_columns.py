"""Columns of Python objects that JSON was read into, and what the first of them say about all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import Column, RowError, Structure, TensorSpec, column_from_rows, flatten
from forebay.block.build import dtype_name
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.block.spec import BYTES, OBJECT, TEXT
from forebay.block.strings import Strings, object_array
from forebay.errors import PlanError
from forebay.plan.text import brief
from forebay.storage.structures import column_names

_SCALARS: dict[type[Any], np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    str: TEXT,
}
_ACCEPTED: dict[str, frozenset[type[Any]]] = {
    "b": frozenset({bool}),
    "i": frozenset({int}),
    "u": frozenset({int}),
    "f": frozenset({int, float}),
    "S": frozenset({str}),
    "U": frozenset({str}),
}


_DEEPEST = 64
"""How many axes NumPy's arrays may have, and how many dicts an element may have in one another."""


class Unfit(Exception):
    """An object that does not fit the columns: its number, and why."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(row, reason)
        self.row = row
        self.reason = reason


@dataclass(frozen=True, slots=True)
class JsonLeaf:
    """Name, dtype and shape of a leaf, and what stands for it where it is missing or null (None if nothing does)."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...] | None = ()
    default: Any = None

    def __repr__(self) -> str:
        shape = "" if self.shape == () else f"[{'...' if self.shape is None else ', '.join(map(str, self.shape))}]"
        default = "" if self.default is None else f"={self.default!r}"
        return f"{self.name}:{dtype_name(self.dtype)}{shape}{default}"


def columns_of(structure: Structure, leaves: tuple[JsonLeaf, ...], objects: list[Any]) -> list[Column]:
    """A column for each leaf. Unfit names the first object of a column that does not fit."""
    values: list[list[Any]] = []
    _collect(structure, objects, values, "")
    return [_column(leaf, column) for leaf, column in zip(leaves, values)]


def _collect(structure: Structure, objects: list[Any], out: list[list[Any]], path: str) -> None:
    """The values of every leaf; None where an object has none. Keys that nobody wants are passed over."""
    for key, child in zip(structure.keys, structure.children):
        try:
            found = [each.get(key) if each is not None else None for each in objects]
        except AttributeError:
            row = next(i for i, each in enumerate(objects) if each is not None and not isinstance(each, dict))
            raise Unfit(row, f"{path.removesuffix('.')} is {brief(repr(objects[row]))}, not an object") from None
        if child.is_leaf:
            out.append(found)
        else:
            _collect(child, found, out, f"{path}{key}.")


def _column(leaf: JsonLeaf, values: list[Any]) -> Column:
    if leaf.default is not None:
        values = [leaf.default if value is None else value for value in values]
    if leaf.dtype == OBJECT:
        return Objects(object_array(values))
    if leaf.shape == ():
        column = _scalars(leaf.dtype, values)
        if column is not None:
            return column
    made = [None if value is None else _value(leaf, row, value) for row, value in enumerate(values)]
    try:
        return column_from_rows(made, leaf.dtype)
    except RowError as error:
        raise Unfit(error.row, f"{leaf.name} {error.text}") from None


def _scalars(dtype: np.dtype[Any], values: list[Any]) -> Column | None:
    """Without a Python step per value, if all of them are as expected."""
    kinds = set(map(type, values))
    if not kinds <= _ACCEPTED.get(dtype.kind, frozenset()):
        return None
    try:
        if dtype.kind in "SU":
            return Strings.of([value.encode() for value in values] if dtype == BYTES else values, (), dtype == TEXT)
        return Dense(np.array(values, dtype))
    except (OverflowError, UnicodeEncodeError):
        # Some value does not fit, and is found one by one.
        return None


def _value(leaf: JsonLeaf, row: int, value: Any) -> Any:
    """One value as the leaf wants it."""
    flat = _items(value)
    if flat is None:
        raise Unfit(row, f"{leaf.name} has lists in more than {_DEEPEST} others, which no array holds")
    accepted = _ACCEPTED.get(leaf.dtype.kind, frozenset())
    if not set(map(type, flat)) <= accepted:
        raise Unfit(row, f"{leaf.name} is {brief(repr(value))}, not {dtype_name(leaf.dtype)}")
    try:
        if leaf.dtype in (BYTES, TEXT):
            if leaf.dtype == BYTES:
                flat = [item.encode() for item in flat]
            array = np.fromiter(flat, object, len(flat)).reshape(_shape(value))
        else:
            array = np.array(value, leaf.dtype)
    except (ValueError, OverflowError) as error:
        raise Unfit(row, f"{leaf.name} is {brief(repr(value))}: {error}") from None
    if leaf.shape is not None and not TensorSpec(leaf.shape, leaf.dtype).accepts(array.shape, leaf.dtype):
        raise Unfit(row, f"{leaf.name} has the shape {array.shape}, and {leaf.shape} was expected")
    return array[()] if array.ndim == 0 else array


def _items(value: Any) -> list[Any] | None:
    """What is in lists, however deep; None if that is deeper than arrays go."""
    if not isinstance(value, list):
        return [value]
    found: list[Any] = []
    # Not by calls of itself, which a hostile line would run out of.
    levels = [iter(value)]
    while levels:
        for item in levels[-1]:
            if isinstance(item, list):
                levels.append(iter(item))
                break
            found.append(item)
        else:
            levels.pop()
        if len(levels) > _DEEPEST:
            return None
    return found


def _shape(value: Any) -> tuple[int, ...]:
    """Of lists that are all alike; ValueError if they are not."""
    if not isinstance(value, list):
        return ()
    shapes = {_shape(item) for item in value}
    if len(shapes) > 1:
        raise ValueError("its lists are not all of one length")
    return (len(value), *(shapes.pop() if shapes else ()))


def declared(call: str, spec: Any, defaults: Any) -> tuple[Structure, tuple[JsonLeaf, ...]]:
    """Structure and leaves of a spec as a user gives it: dicts with a TensorSpec or a dtype for each leaf."""
    found, structure = flatten(spec, (TensorSpec, type, np.dtype))
    if structure.kind is not dict:
        raise PlanError(f"{call}(spec={spec!r}): an object needs a dict of specs")
    leaves = []
    for name, leaf in zip(column_names(structure), found):
        try:
            wanted = leaf if isinstance(leaf, TensorSpec) else TensorSpec((), leaf)
        except PlanError:
            raise PlanError(f"{call}(spec=...): {name}: {leaf!r} is neither a TensorSpec nor a dtype") from None
        if wanted.dtype != OBJECT and wanted.dtype.kind not in _ACCEPTED:
            raise PlanError(f"{call}(spec=...): {name}: JSON has no values of {wanted.dtype.name}")
        leaves.append(JsonLeaf(name, wanted.dtype, wanted.shape))
    _check_dicts(call, structure)
    return structure, _with_defaults(call, tuple(leaves), defaults)


def _check_dicts(call: str, structure: Structure) -> None:
    for child in structure.children:
        if not child.is_leaf and child.kind is not dict:
            raise PlanError(
                f"{call}(spec=...): JSON objects are dicts, and lists are arrays: give a TensorSpec for one"
            )
        _check_dicts(call, child)


def inferred(call: str, objects: list[Any], defaults: Any) -> tuple[Structure, tuple[JsonLeaf, ...]]:
    """Structure and leaves that all of these objects fit."""
    seen = _merged(objects)
    marks, structure = flatten(seen, (JsonLeaf,))
    leaves = tuple(JsonLeaf(name, mark.dtype, mark.shape) for name, mark in zip(column_names(structure), marks))
    return structure, _with_defaults(call, leaves, defaults)


def _with_defaults(call: str, leaves: tuple[JsonLeaf, ...], defaults: Any) -> tuple[JsonLeaf, ...]:
    if not defaults:
        return leaves
    if not isinstance(defaults, Mapping):
        raise PlanError(f"{call}(defaults={defaults!r}): give a dict by name of the leaf, as {{'a.b': 0}}")
    names = [leaf.name for leaf in leaves]
    for name in defaults:
        if name not in names:
            raise PlanError(f"{call}(defaults=...): there is no leaf {name!r}, only {names}")
    made = []
    for leaf in leaves:
        default = defaults.get(leaf.name)
        if default is not None and leaf.dtype != OBJECT:
            default = default.tolist() if isinstance(default, (np.ndarray, np.generic)) else default
            default = default.decode() if isinstance(default, bytes) else default
            try:
                _value(leaf, 0, default)
            except Unfit as error:
                raise PlanError(f"{call}(defaults=...): {error.reason}") from None
        made.append(JsonLeaf(leaf.name, leaf.dtype, leaf.shape, default))
    return tuple(made)


def _merged(values: list[Any], depth: int = 0) -> Any:
    """What the first of these values is: a dict of leaves, with the keys of all dicts, or a leaf.

    Others that are something else are faults of their lines, when those are read.
    """
    present = [value for value in values if value is not None]
    # Deeper than that, objects stay as Python has them: a structure may not be of any depth that a line asks for.
    if present and isinstance(present[0], dict) and depth < _DEEPEST:
        dicts = [value for value in present if isinstance(value, dict)]
        keys = dict.fromkeys(key for value in dicts for key in value)
        if keys:
            return {key: _merged([value.get(key) for value in dicts], depth + 1) for key in keys}
    return JsonLeaf("", *_leaf_type(present))


def _leaf_type(present: list[Any]) -> tuple[np.dtype[Any], tuple[int | None, ...] | None]:
    """Of the first value that tells; whole numbers become float64 where others are not whole."""
    first = next((value for value in present if _items(value) != []), None)
    kinds = set(map(type, _items(first) or [[]]))
    if kinds <= {int, float}:
        others = [set(map(type, _items(value) or ())) for value in present]
        kinds = {float} if any(float in each for each in others if each <= {int, float}) else {int}
    dtype = _SCALARS.get(next(iter(kinds))) if len(kinds) == 1 else None
    # Objects in lists, lists of several kinds, or nothing but null: any value is good, as Python has it.
    return (OBJECT, None) if dtype is None else (dtype, (None,) * _rank(first))


def _rank(value: Any) -> int:
    depth = 0
    while isinstance(value, list):
        depth += 1
        value = value[0] if value else None
    return depth
