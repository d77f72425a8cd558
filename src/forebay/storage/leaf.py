"""What a leaf of all saved elements has in common, and the Arrow type that follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from forebay.block import Column, RowError, TensorSpec
from forebay.block.build import misfit
from forebay.block.leaf import is_bare, leaf_dtype, leaf_shape
from forebay.block.objects import Objects
from forebay.block.spec import OBJECT, TEXT, NoneSpec
from forebay.errors import an
from forebay.lazy import cached_property
from forebay.storage.arrow import arrow
from forebay.storage.values import is_text, parts, storable, value_type

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Leaf:
    """Dtype and shape of a leaf; None in the shape is a size that differs, None for the shape a rank that differs.

    `nullable` leaves are None in some elements. One of dtype object and without a shape is None in all; one with a
    shape has had no values yet to tell its dtype by, only arrays of objects with no objects in them.

    | shape | Arrow |
    |---|---|
    | () | the value's own type |
    | all sizes known and not zero, numbers | arrow.fixed_shape_tensor |
    | one axis | large_list |
    | others | struct of `data`, a large_list of all values, and `shape`, as in arrow.variable_shape_tensor |
    """

    name: str
    dtype: np.dtype[Any]
    shape: Shape | None
    nullable: bool = False

    @property
    def inner(self) -> Shape | None:
        """The shape as it is stored: complex numbers have one axis more."""
        return self.shape if self.shape is None or parts(self.dtype) == 1 else (*self.shape, parts(self.dtype))

    @property
    def is_none(self) -> bool:
        """Whether it is None in all elements."""
        return self.dtype == OBJECT and self.shape == ()

    @cached_property
    def form(self) -> str:
        """How rows are laid out: null, scalar, fixed, list or tensor."""
        if self.is_none:
            return "null"
        inner = self.inner
        if inner == ():
            return "scalar"
        if inner is not None and not is_text(self.dtype) and all(inner):
            return "fixed"
        return "list" if inner is not None and len(inner) == 1 else "tensor"

    @property
    def count(self) -> int:
        """Stored numbers in a row, where all have the same shape."""
        return prod(size or 0 for size in self.inner or ())

    @cached_property
    def arrow_type(self) -> Any:
        """The type of the column."""
        pa = arrow()
        if self.form == "null":
            return pa.null()
        value = value_type(self.dtype)
        if self.form == "scalar":
            return value
        if self.form == "fixed":
            return pa.fixed_shape_tensor(value, list(self.inner or ()))
        if self.form == "list":
            return pa.large_list(value)
        rank = -1 if self.inner is None else len(self.inner)
        return pa.struct({"data": pa.large_list(value), "shape": pa.list_(pa.int32(), rank)})

    def field(self) -> Any:
        """The column's entry in a schema."""
        # NaT is null to Arrow, so these columns may hold nulls in any case.
        nullable = self.nullable or self.form == "null" or self.dtype.kind in "mM"
        return arrow().field(self.name, self.arrow_type, nullable=nullable)

    def spec(self) -> TensorSpec:
        """As users see it: leaves that are None at times are objects."""
        if self.form == "null":
            return NoneSpec()
        return TensorSpec((), OBJECT) if self.nullable else TensorSpec(self.shape, self.dtype)

    @property
    def _is_bare(self) -> bool:
        """Whether there are but empty lists, as far as one can tell."""
        return self.dtype == np.float64 and self.shape is not None and 0 in self.shape

    def merged(self, other: "Leaf") -> "Leaf":
        """What this leaf and another have in common. RowError if their dtypes differ."""
        if self.is_none or other.is_none:
            known = self if other.is_none else other
            return Leaf(self.name, known.dtype, known.shape, True)
        if self._is_bare or other._is_bare:
            known = self if other._is_bare else other
            return Leaf(
                self.name, known.dtype, common_shape([self.shape, other.shape]), self.nullable or other.nullable
            )
        dtype = other.dtype if self.dtype == OBJECT else self.dtype
        if other.dtype not in (dtype, OBJECT) or (OBJECT in (self.dtype, other.dtype) and not _of_strings(dtype)):
            raise RowError(0, misfit(other.dtype, self.dtype))
        shape = common_shape([self.shape, other.shape])
        return Leaf(self.name, dtype, shape, self.nullable or other.nullable)

    def settled(self) -> "Leaf":
        """With a dtype in any case: arrays of no objects are the same whatever is not in them."""
        if self.dtype != OBJECT or self.is_none:
            return self
        return Leaf(self.name, TEXT, self.shape, self.nullable)

    def to_json(self) -> dict[str, Any]:
        """A JSON value that ``from_json`` reads back."""
        dtype = "S" if self.dtype.kind == "S" else "U" if self.dtype.kind == "U" else self.dtype.str
        return {"name": self.name, "dtype": dtype, "shape": self.shape, "nullable": self.nullable}

    @staticmethod
    def from_json(value: Any) -> "Leaf":
        """The leaf that ``to_json`` wrote."""
        shape = value["shape"]
        return Leaf(value["name"], np.dtype(value["dtype"]), None if shape is None else tuple(shape), value["nullable"])


def common_shape(shapes: Sequence[Shape | None]) -> Shape | None:
    """Sizes that differ become None, and so does the whole shape if ranks differ."""
    first = shapes[0]
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*(shape or () for shape in shapes)))


def leaf_of_spec(name: str, spec: TensorSpec) -> Leaf | None:
    """What a spec tells of a leaf; None if it leaves everything open."""
    return None if spec.dtype == OBJECT else _checked(Leaf(name, spec.dtype, spec.shape))


def leaf_of_column(name: str, column: Column) -> Leaf:
    """What there is in a column. RowError if there are objects in it that Arrow has no type for."""
    if not isinstance(column, Objects):
        return _checked(Leaf(name, column.dtype, column.spec.shape))
    rows, dtype = column.rows(), column.value_dtype
    present = [value for value in rows if value is not None]
    if dtype == OBJECT and any(map(is_bare, present)):
        dtype = np.dtype(np.float64)
    for row, value in enumerate(rows):
        empty = isinstance(value, np.ndarray) and not value.size and _of_strings(dtype)
        if value is not None and leaf_dtype(value) == OBJECT and not empty:
            raise RowError(row, f"is {_described(value)}, which cannot be saved: only {_CAN_BE_SAVED} can")
    if not present:
        return Leaf(name, OBJECT, (), True)
    shapes = list({leaf_shape(value) for value in present})
    return _checked(Leaf(name, dtype, common_shape(shapes), len(present) < len(rows)))


def _of_strings(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of that dtype are arrays of objects: only these may lack values to tell it by."""
    return dtype == OBJECT or is_text(dtype)


_CAN_BE_SAVED = "numbers, truth values, dates as numpy.datetime64, str, bytes, arrays of them, and None in their place"


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        kinds = sorted({type(item).__name__ for item in value.flat})
        return f"an array of objects ({', '.join(kinds) or 'none'})"
    return an(type(value).__name__)


def _checked(leaf: Leaf) -> Leaf:
    if leaf.dtype != OBJECT and not storable(leaf.dtype):
        raise RowError(0, f"is {leaf.dtype}, which Arrow has no type for: convert it in a map() before")
    return leaf
