"""Serialized Examples into columns: what the functions of ``fb.io`` share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import Parser
from forebay.block import Column, Indices, column_from_rows
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.spans import Spans
from forebay.block.strings import Strings
from forebay.errors import DataError
from forebay.io.features import (
    BYTES,
    NAMES,
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RaggedTensor,
    SparseTensor,
)
from forebay.io.partitions import Partition, UniformRowLength

Offsets = NDArray[np.int64]
_MALFORMED, _MISSING, _TYPE, _COUNT = 1, 2, 3, 4


class RowFault(Exception):
    """What is wrong with one of several Examples."""

    def __init__(self, row: int, error: DataError) -> None:
        super().__init__(row, error)
        self.row = row
        self.error = error


class Records:
    """Serialized Examples: in a column, or one by one."""

    def __init__(self, column: Strings | None = None, values: list[bytes] | None = None) -> None:
        self.column = column
        self.values = values

    def parse(self, parser: Parser) -> tuple[list[tuple[Any, Any, Any]], tuple[int, int, int, int]]:
        """What the kernel makes of them."""
        if isinstance(self.column, Spans):
            return parser.parse_apart(*self.column.apart)
        if self.column is not None:
            return parser.parse_column(*self.column.places)
        assert self.values is not None
        return parser.parse_list(self.values)


class FeatureValues:
    """The values of one feature, of however many Examples, as the kernel gives them.

    `lengths` tells how many values each Example has (or each step of a sequence), if that is not fixed; `steps` how
    many steps each SequenceExample has.
    """

    def __init__(self, feature: Feature, values: Any, lengths: Offsets | None, steps: Offsets | None) -> None:
        self.feature = feature
        self._values = values
        self.lengths = lengths
        self.steps = steps
        self.partitions: list[FeatureValues] = []
        """Those of the features that these values are cut into rows by, from the outermost to the innermost."""

    def of(self, feature: Feature, partitions: "list[FeatureValues]") -> "FeatureValues":
        """The same values for another feature that wants them."""
        if feature is self.feature and not partitions:
            return self
        values = FeatureValues(feature, self._values, self.lengths, self.steps)
        values.partitions = partitions
        return values

    def flat(self) -> NDArray[Any]:
        """All values."""
        if self.feature.type != BYTES:
            return self._values  # type: ignore[no-any-return]
        data, offsets = self._values
        return Strings(data, offsets, (), False).flat()

    def dense(self, rows: int, shape: tuple[int, ...]) -> Column:
        """A row of that shape from each Example."""
        if self.feature.type != BYTES:
            return Dense(self._values.reshape(rows, *shape))
        if 0 in shape:
            return Objects(np.empty((rows, *shape), object))
        data, offsets = self._values
        return Strings(data, offsets, shape, text=False)

    def ragged(self, counts: Offsets, shape: tuple[int, ...]) -> Column:
        """A row of shape ``(counts[i], *shape)`` from each Example."""
        rows, width = len(counts), int(np.prod(shape, dtype=np.int64))
        if rows and (counts == counts[0]).all() and (counts[0] or self.feature.type != BYTES):
            return self.dense(rows, (int(counts[0]), *shape))
        offsets = offsets_of(counts * width)
        if self.feature.type == BYTES:
            strings = self.flat()
            return column_from_rows(
                [strings[a:b].reshape(-1, *shape) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist())]
            )
        shapes = np.empty((rows, 1 + len(shape)), np.int64)
        shapes[:, 0], shapes[:, 1:] = counts, shape
        return Ragged(self._values, offsets, shapes)


def run(
    parser: Parser, features: Sequence[tuple[str, Feature]], records: Records, what: str = "an Example"
) -> list[FeatureValues]:
    """The values of all features. RowFault at the first Example that cannot be parsed."""
    columns, (code, row, at, found) = records.parse(parser)
    if code:
        name, feature = features[at] if at >= 0 else ("", None)
        raise RowFault(row, DataError(_reason(code, name, feature, found, what)))
    values = [FeatureValues(feature, *column) for (_, feature), column in zip(features, columns)]
    for (name, feature), each in zip(features, values):
        if isinstance(feature, FixedLenSequenceFeature) and each.lengths is not None and each.steps is None:
            odd = np.flatnonzero(each.lengths % feature.count) if feature.count else np.flatnonzero(each.lengths)
            if len(odd):
                found = int(each.lengths[odd[0]])
                raise RowFault(int(odd[0]), DataError(_reason(_COUNT, name, feature, found, what, "a multiple of ")))
    return values


def _reason(code: int, name: str, feature: Feature | None, found: int, what: str, of: str = "") -> str:
    if code == _MALFORMED:
        return f"feature {name!r} is malformed" if feature is not None else f"is not the serialized form of {what}"
    assert feature is not None
    if code == _MISSING:
        return f"feature {name!r} ({NAMES[feature.type]}) is missing, and has no default"
    if code == _TYPE:
        return f"feature {name!r} holds {NAMES[found]}, wanted is {NAMES[feature.type]}"
    shape = getattr(feature, "shape", ())
    return f"feature {name!r} has {found} values, the shape {shape} needs {of}{int(np.prod(shape, dtype=np.int64))}"


def offsets_of(lengths: Offsets) -> Offsets:
    """Where each of several parts begins, and the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def single_column(values: FeatureValues, rows: int) -> Column:
    """One row for every Example."""
    feature = values.feature
    if isinstance(feature, FixedLenFeature):
        return values.dense(rows, feature.shape)
    assert values.lengths is not None
    if isinstance(feature, FixedLenSequenceFeature):
        return values.ragged(values.lengths // max(feature.count, 1), feature.shape)
    return values.ragged(values.lengths, ())


def batch_value(values: FeatureValues, rows: int) -> Any:
    """All Examples in one value."""
    feature = values.feature
    if isinstance(feature, FixedLenFeature):
        return values.flat().reshape(rows, *feature.shape)
    assert values.lengths is not None
    if isinstance(feature, FixedLenSequenceFeature):
        return padded(values, values.lengths // max(feature.count, 1), feature)
    if isinstance(feature, RaggedFeature):
        inner, counts = cut(values)
        return ragged_tensor(inner, counts, feature)
    return SparseTensor(
        np.stack([np.repeat(np.arange(rows), values.lengths), places(values.lengths)], axis=1),
        values.flat(),
        np.array([rows, values.lengths.max(initial=0)], np.int64),
    )


def single_value(values: FeatureValues) -> Any:
    """The only Example's."""
    feature = values.feature
    if isinstance(feature, RaggedFeature) and feature.partitions:
        return cut(values)[0]
    return single_column(values, 1).private().rows()[0]


def ragged_tensor(values: Any, counts: Offsets, feature: RaggedFeature) -> RaggedTensor:
    """Rows of so many values, which may be rows themselves."""
    return RaggedTensor(values, offsets_of(counts).astype(feature.row_splits_dtype))


def cut(values: FeatureValues) -> tuple[Any, Offsets]:
    """The rows that the values of all Examples are cut into, and how many each Example has. RowFault where they do not
    fit."""
    feature, counts = values.feature, values.lengths
    assert isinstance(feature, RaggedFeature)
    assert counts is not None
    inner: Any = values.flat()
    keyed = list(values.partitions)
    for partition in reversed(feature.partitions):
        given = None if isinstance(partition, UniformRowLength) else keyed.pop()
        lengths = _row_lengths(partition, given, counts)
        counts = np.array([len(each) for each in lengths], np.int64)
        if isinstance(partition, UniformRowLength) and isinstance(inner, np.ndarray):
            inner = inner.reshape(-1, partition.length, *inner.shape[1:])
        else:
            inner = ragged_tensor(inner, np.concatenate([np.empty(0, np.int64), *lengths]), feature)
    return inner, counts


def _row_lengths(partition: Partition, given: FeatureValues | None, counts: Offsets) -> list[Offsets]:
    """For every Example, those of the rows that its `counts` values are cut into."""
    found: list[Offsets] = []
    parts: list[Offsets] = []
    if given is not None:
        assert given.lengths is not None
        parts = np.split(given.flat(), offsets_of(given.lengths)[1:-1])
    for row, count in enumerate(counts.tolist()):
        try:
            if isinstance(partition, UniformRowLength):
                found.append(partition.lengths(count))
            else:
                found.append(partition.lengths(parts[row], count))
        except DataError as error:
            raise RowFault(row, error) from None
    return found


def padded(values: FeatureValues, counts: Offsets, feature: FixedLenSequenceFeature) -> NDArray[Any]:
    """Rows of ``(counts[i], *shape)``, all as long as the longest."""
    flat = values.flat()
    out = np.full((len(counts), int(counts.max(initial=0)), *feature.shape), feature.filler(), flat.dtype)
    out[np.repeat(np.arange(len(counts)), counts), places(counts)] = flat.reshape(-1, *feature.shape)
    return out


def places(lengths: Offsets) -> Indices:
    """0, 1, 2 ... within each of several parts."""
    return np.arange(int(lengths.sum())) - np.repeat(offsets_of(lengths)[:-1], lengths)
