"""What is wanted of a serialized Example: a name, a type and a shape for each feature. Names as in ``tf.io``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from forebay.errors import PlanError
from forebay.io.dense import from_ragged, from_sparse
from forebay.io.partitions import (
    Partition,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    UniformRowLength,
    ValueRowIds,
)

NOTHING, BYTES, FLOAT, INT64 = range(4)
"""Numbers of the types, as those of the fields that hold them."""
NAMES = {NOTHING: "nothing", BYTES: "bytes", FLOAT: "float32", INT64: "int64"}
DTYPES: dict[int, np.dtype[Any]] = {
    BYTES: np.dtype(object),
    FLOAT: np.dtype(np.float32),
    INT64: np.dtype(np.int64),
}


class SparseTensor(NamedTuple):
    """What ``parse_example`` makes of a ``VarLenFeature``: value i stands at ``indices[i]`` of such an array."""

    indices: NDArray[np.int64]
    values: NDArray[Any]
    dense_shape: NDArray[np.int64]

    def to_dense(self, default_value: Any = None) -> NDArray[Any]:
        """The array, with `default_value` where there is no value; 0 or no bytes if it is None.

        >>> sparse = SparseTensor(np.array([[0, 1], [1, 0]]), np.array([5, 6]), np.array([2, 3]))
        >>> sparse.to_dense(-1)
        array([[-1,  5, -1],
               [ 6, -1, -1]])
        """
        return from_sparse(*self, default_value)


class RaggedTensor(NamedTuple):
    """What ``parse_example`` makes of a ``RaggedFeature``: row i is ``values[row_splits[i]:row_splits[i + 1]]``.

    With partitions, and in a feature list of a SequenceExample, whose steps are rows, `values` may be one itself.
    """

    values: Any
    row_splits: NDArray[Any]

    def to_tensor(self, default_value: Any = None) -> NDArray[Any]:
        """An array of rows filled up to the longest with `default_value`; 0 or no bytes if it is None.

        >>> RaggedTensor(np.array([1, 2, 2]), np.array([0, 0, 1, 3])).to_tensor()
        array([[0, 0],
               [1, 0],
               [2, 2]])
        """
        return from_ragged(*self, default_value)


@dataclass(frozen=True)
class Feature:
    """What all kinds share. `type` is one of BYTES, FLOAT and INT64."""

    type: int = field(init=False, repr=False, compare=False)

    def forebay_fingerprint(self) -> Iterator[Any]:
        """All that it says."""
        yield repr(self)

    def settle(self, dtype: Any) -> None:
        """Check the dtype."""
        object.__setattr__(self, "type", _type_of(type(self).__name__, dtype))


@dataclass(frozen=True)
class FixedLenFeature(Feature):
    """A feature with as many values in every Example. Without a default it must be there.

    Args:
        shape: the shape of its values; ``[]`` for one value.
        dtype: ``np.float32``, ``np.int64`` or ``bytes``.
        default_value: stands for it where it is missing: an array of that shape, or one value for all.

    >>> FixedLenFeature([2], np.int64, default_value=0)
    FixedLenFeature(shape=(2,), dtype=<class 'numpy.int64'>, default_value=0)
    """

    shape: Any
    dtype: Any
    default_value: Any = None

    def __post_init__(self) -> None:
        self.settle(self.dtype)
        object.__setattr__(self, "shape", _shape_of("FixedLenFeature", self.shape))
        self.missing()

    @property
    def count(self) -> int:
        """Values in every Example."""
        return prod(self.shape)

    def missing(self) -> Any | None:
        """What the parser puts in its place."""
        return None if self.default_value is None else _default(self, self.default_value, self.count)


@dataclass(frozen=True)
class FixedLenSequenceFeature(Feature):
    """A feature with any number of values of one shape: a row for each.

    In ``parse_example`` rows are filled up to the longest with `default_value`, or with zeros or ``b""``.

    Args:
        shape: the shape of one row.
        dtype: ``np.float32``, ``np.int64`` or ``bytes``.
        allow_missing: whether it may be missing, which gives no rows. Outside of SequenceExamples it has to be True.
        default_value: one value.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None

    def __post_init__(self) -> None:
        self.settle(self.dtype)
        object.__setattr__(self, "shape", _shape_of("FixedLenSequenceFeature", self.shape))
        self.filler()

    @property
    def count(self) -> int:
        """Values in a row."""
        return prod(self.shape)

    def filler(self) -> Any:
        """What rows are filled up with."""
        if self.default_value is None:
            return b"" if self.type == BYTES else DTYPES[self.type].type(0)
        return _default(self, self.default_value, 1)[0]


@dataclass(frozen=True)
class VarLenFeature(Feature):
    """A feature with any number of values. One Example gives an array of them, ``parse_example`` a ``SparseTensor``.

    Args:
        dtype: ``np.float32``, ``np.int64`` or ``bytes``.
    """

    dtype: Any

    def __post_init__(self) -> None:
        self.settle(self.dtype)


@dataclass(frozen=True)
class RaggedFeature(Feature):
    """A feature with any number of values. One Example gives an array of them, ``parse_example`` a ``RaggedTensor``.

    With partitions its values are cut into rows, and rows into further ones: one Example then gives a ``RaggedTensor``
    too, with another inside for every further partition. Innermost rows of one length are an axis of an array instead.

    Args:
        dtype: ``np.float32``, ``np.int64`` or ``bytes``.
        value_key: the feature's name, if it is not the one that it is to have in the result.
        partitions: from the outermost to the innermost: ``RaggedFeature.RowSplits(key)``, ``RowLengths(key)``,
            ``RowStarts(key)``, ``RowLimits(key)`` or ``ValueRowIds(key)`` of another feature, which must be int64, or
            ``UniformRowLength(length)``.
        row_splits_dtype: ``np.int32`` or ``np.int64``.
        validate: taken for the sake of programs written for TensorFlow. Partitions that do not fit are always an error.

    >>> RaggedFeature(np.int64, partitions=[RaggedFeature.RowLengths("n")]).partitions
    (RowLengths(key='n'),)
    """

    dtype: Any
    value_key: str | None = None
    partitions: Sequence[Partition] = ()
    row_splits_dtype: Any = np.int32
    validate: bool = False

    RowSplits: ClassVar = RowSplits
    RowLengths: ClassVar = RowLengths
    RowStarts: ClassVar = RowStarts
    RowLimits: ClassVar = RowLimits
    ValueRowIds: ClassVar = ValueRowIds
    UniformRowLength: ClassVar = UniformRowLength

    def __post_init__(self) -> None:
        self.settle(self.dtype)
        object.__setattr__(self, "partitions", tuple(self.partitions))
        for each in self.partitions:
            if not isinstance(each, Partition):
                raise PlanError(f"RaggedFeature(partitions=...): {each!r} is not a partition, as RowSplits(key) is one")
            if isinstance(each, UniformRowLength):
                whole = isinstance(each.length, int) and each.length >= 1
                if not whole:
                    raise PlanError(f"UniformRowLength({each.length!r}): length must be a whole number of at least 1")
            elif not isinstance(each.key, str):
                raise PlanError(f"{type(each).__name__}({each.key!r}): key must be a str")
        splits = np.dtype(getattr(self.row_splits_dtype, "as_numpy_dtype", self.row_splits_dtype))
        if splits not in (np.int32, np.int64):
            raise PlanError(f"RaggedFeature(row_splits_dtype={self.row_splits_dtype!r}): it must be int32 or int64")
        object.__setattr__(self, "row_splits_dtype", splits)


_BY_NAME: dict[str, type[Feature]] = {
    kind.__name__: kind for kind in (FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, RaggedFeature)
}


def check_features(call: str, features: Any, kinds: tuple[type[Feature], ...]) -> dict[str, Feature]:
    """The features by name, if there are some and they are of these kinds. TensorFlow's own become ours."""
    if not isinstance(features, Mapping) or not features:
        raise PlanError(f"{call}(features={features!r}): features must be a dict that is not empty")
    found = {}
    for name, given in features.items():
        if not isinstance(name, str):
            raise PlanError(f"{call}(features=...): {name!r} is not a name")
        feature = _ours(given)
        if not isinstance(feature, kinds):
            known = ", ".join(f"fb.io.{kind.__name__}" for kind in kinds)
            raise PlanError(f"{call}(features=...): {name!r} is {given!r}; it must be one of {known}")
        found[name] = feature
    return found


def _ours(given: Any) -> Any:
    """What one of TensorFlow's features stands for, which are named tuples of the same names; others as they are."""
    kind = _BY_NAME.get(type(given).__name__)
    if kind is None or getattr(given, "_fields", None) != tuple(each.name for each in fields(kind) if each.init):
        return given
    said = given._asdict()
    dtype = getattr(given.dtype, "as_numpy_dtype", given.dtype)
    said["dtype"] = bytes if dtype is object else dtype
    if "partitions" in said:
        said["partitions"] = [_our_partition(each) for each in given.partitions]
    return kind(**said)


def _our_partition(given: Any) -> Any:
    kind = next((each for each in get_args(Partition) if each.__name__ == type(given).__name__), None)
    return given if kind is None else kind(*given)


def _type_of(call: str, dtype: Any) -> int:
    given = getattr(dtype, "as_numpy_dtype", dtype)  # TensorFlow's own dtypes will do.
    if given in (bytes, object) or (isinstance(given, str) and given in ("bytes", "string")):
        return BYTES
    try:
        known = np.dtype(given)
    except TypeError:
        known = np.dtype(bool)
    found = FLOAT if known == np.float32 else INT64 if known == np.int64 else BYTES if known.kind in "SO" else None
    if found is None:
        raise PlanError(
            f"{call}(dtype={dtype!r}): an Example holds np.float32, np.int64 or bytes; cast them afterwards"
        )
    return found


def _shape_of(call: str, shape: Any) -> tuple[int, ...]:
    sizes = (shape,) if isinstance(shape, int) else shape
    try:
        known = tuple(int(size) for size in sizes)
    except (TypeError, ValueError):
        raise PlanError(f"{call}(shape={shape!r}): all sizes must be known; use VarLenFeature otherwise") from None
    if any(size < 0 for size in known):
        raise PlanError(f"{call}(shape={shape!r}): sizes cannot be negative")
    return known


def _default(feature: Any, value: Any, count: int) -> Any:
    """`count` values for the parser: an array of numbers, or a list of bytes."""
    call = f"{type(feature).__name__}(default_value={value!r})"
    if feature.type == BYTES:
        flat = [value] if isinstance(value, (bytes, str)) else np.asarray(value, object).reshape(-1).tolist()
        flat = [item.encode() if isinstance(item, str) else item for item in flat]
        if not all(isinstance(item, bytes) for item in flat):
            raise PlanError(f"{call}: it must be bytes")
        values: Any = flat
    else:
        given = np.asarray(value)
        if given.dtype.kind not in "iufb" or (feature.type == INT64 and given.dtype.kind == "f"):
            raise PlanError(f"{call}: it must be {NAMES[feature.type]}")
        values = np.ascontiguousarray(given, DTYPES[feature.type]).reshape(-1)
    if len(values) == 1 and count != 1:
        values = values * count if feature.type == BYTES else np.repeat(values, count)
    if len(values) != count:
        raise PlanError(f"{call}: it has {len(values)} values, the shape {feature.shape} has {count}")
    return values
