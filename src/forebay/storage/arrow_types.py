"""What the types of Arrow stand for: the structure, kind and dtype of elements, before any row is looked at."""

from typing import Any

import numpy as np

from forebay.block import LEAF, Structure, TensorSpec
from forebay.block.spec import BYTES, OBJECT, TEXT
from forebay.storage.arrow import arrow

_UNITS = {"date32[day]": "D", "date64[ms]": "ms"}


def structure_of(kind: Any) -> Structure:
    """A struct's fields by name, at every level; anything else is a leaf."""
    pa = arrow()
    if not pa.types.is_struct(kind):
        return LEAF
    fields = [kind.field(i) for i in range(kind.num_fields)]
    return Structure(dict, tuple(field.name for field in fields), tuple(structure_of(field.type) for field in fields))


def no_twins(kind: Any) -> None:
    """ValueError if a struct in it has several fields of one name, of which a dict would keep the last."""
    fields = [kind.field(i) for i in range(kind.num_fields)]
    names = [field.name for field in fields]
    if arrow().types.is_struct(kind) and len(set(names)) < len(names):
        raise ValueError(f"has a struct with several fields of one name: {', '.join(map(repr, names))}")
    for field in fields:
        no_twins(field.type)


def kind_of(kind: Any) -> str:
    """What a column's elements are: the same for types that differ in ways that elements do not show."""
    pa = arrow()
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return "{" + ", ".join(f"{field.name}: {kind_of(field.type)}" for field in fields) + "}"
    if is_list(kind):
        return f"list of {kind_of(items_of(kind))}"
    if isinstance(kind, pa.BaseExtensionType):
        shape = f" of shape {kind.shape}" if hasattr(kind, "shape") else ""
        return f"{kind_of(kind.storage_type)}{shape}"
    dtype = dtype_of(kind)
    return str(kind) if dtype is None else "str" if dtype == TEXT else "bytes" if dtype == BYTES else str(dtype)


def is_view(kind: Any) -> bool:
    """Whether it is a list whose items may lie anywhere."""
    is_a = arrow().types
    return bool(is_a.is_list_view(kind) or is_a.is_large_list_view(kind))


def is_list(kind: Any) -> bool:
    """Whether it is a list of any kind; a map is a list of pairs."""
    is_a = arrow().types
    return bool(
        is_a.is_list(kind)
        or is_a.is_large_list(kind)
        or is_a.is_fixed_size_list(kind)
        or is_a.is_map(kind)
        or is_view(kind)
    )


def items_of(kind: Any) -> Any:
    """The type of a list's items."""
    pa = arrow()
    if pa.types.is_map(kind):
        return pa.struct([("key", kind.key_type), ("value", kind.item_type)])
    return kind.value_type


def dtype_of(kind: Any) -> np.dtype[Any] | None:
    """The dtype of values that are no containers; None for those that NumPy has no dtype for."""
    is_a: Any = arrow().types
    if is_a.is_dictionary(kind) or is_a.is_run_end_encoded(kind):
        return dtype_of(kind.value_type)
    if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return TEXT
    if (
        is_a.is_binary(kind)
        or is_a.is_large_binary(kind)
        or is_a.is_binary_view(kind)
        or is_a.is_fixed_size_binary(kind)
    ):
        # Decimals are fixed-size binary to Arrow.
        return None if is_a.is_decimal(kind) else BYTES
    if is_a.is_date(kind):
        return np.dtype(f"M8[{_UNITS[str(kind)]}]")
    if is_a.is_timestamp(kind):
        return np.dtype(f"M8[{kind.unit}]")
    if is_a.is_duration(kind) or is_a.is_time(kind):
        return np.dtype(f"m8[{kind.unit}]")
    if is_a.is_boolean(kind) or is_a.is_integer(kind) or is_a.is_floating(kind):
        dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return dtype
    return None


def add_specs(kind: Any, path: str, nulls: "dict[str, bool]", leaves: list[TensorSpec]) -> bool:
    """Add the specs of a column's leaves; False if only its rows tell."""
    pa = arrow()
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return all(add_specs(field.type, f"{path}.{field.name}", nulls, leaves) for field in fields)
    shape: tuple[int | None, ...] = ()
    if isinstance(kind, pa.FixedShapeTensorType):
        kind, shape = kind.value_type, tuple(kind.shape)
        path = f"{path}.list.element"
    while is_list(kind):
        shape += (kind.list_size if pa.types.is_fixed_size_list(kind) else None,)
        kind, path = items_of(kind), f"{path}.list.element"
    dtype = dtype_of(kind)
    if path not in nulls or (nulls[path] and shape):
        # An empty list counts as a null there.
        return False
    if nulls[path] or dtype is None or (len(shape) > 1 and None in shape[1:]):
        leaves.append(TensorSpec((), OBJECT))
    else:
        leaves.append(TensorSpec(shape, dtype))
    return True
