"""What is in records of tf.train.Example and SequenceExample, when nobody says what to look for.

Only the framing of the messages is followed, record by record in Python: enough for the first thousand, from which
``fb.io`` can parse the rest. Every length is checked against what is left before it is used.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from forebay.io.features import (
    BYTES,
    FLOAT,
    INT64,
    NOTHING,
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
)

_TYPES = {BYTES: "bytes", FLOAT: "float32", INT64: "int64", NOTHING: "nothing"}
_PYTHON = {BYTES: "bytes", FLOAT: "np.float32", INT64: "np.int64"}
_DTYPES: dict[int, type] = {BYTES: bytes, FLOAT: np.float32, INT64: np.int64}


class NoExample(ValueError):
    """A record that is something else."""


@dataclass
class Seen:
    """What a feature was in the records so far. In a feature list, values are those of a step."""

    kinds: set[int] = field(default_factory=set)
    records: int = 0
    least: int = 1 << 62
    most: int = 0
    steps: tuple[int, int] | None = None

    def add(self, kind: int, count: int) -> None:
        """Values of one record, or of one step."""
        # A feature without values has no kind either.
        if kind != NOTHING:
            self.kinds.add(kind)
        self.least, self.most = min(self.least, count), max(self.most, count)

    @property
    def kind(self) -> int | None:
        """The one kind of its values; None if records do not agree, or there are no values."""
        return next(iter(self.kinds)) if len(self.kinds) == 1 else None

    @property
    def dtype(self) -> str:
        """As ``fb.io`` has it."""
        return " or ".join(_TYPES[kind] for kind in sorted(self.kinds)) or "nothing"


class ExampleSchema:
    """The features of records, gathered record by record."""

    def __init__(self) -> None:
        self.records = 0
        self.others = 0
        self.context: dict[str, Seen] = {}
        self.lists: dict[str, Seen] = {}

    @property
    def found(self) -> bool:
        """Whether all records so far are Examples, or nearly all, and have features."""
        return bool(self.context or self.lists) and self.others * 10 <= self.records

    @property
    def sequences(self) -> bool:
        """Whether they are SequenceExamples."""
        return bool(self.lists)

    def add(self, record: bytes) -> None:
        """One more record."""
        self.records += 1
        try:
            context, lists = _walked(record)
        except (NoExample, UnicodeDecodeError):
            self.others += 1
            return
        for name, (kind, count) in context.items():
            seen = self.context.setdefault(name, Seen())
            seen.records += 1
            seen.add(kind, count)
        for name, steps in lists.items():
            seen = self.lists.setdefault(name, Seen())
            seen.records += 1
            least, most = seen.steps or (len(steps), len(steps))
            seen.steps = min(least, len(steps)), max(most, len(steps))
            for kind, count in steps:
                seen.add(kind, count)

    def present(self, seen: Seen) -> float:
        """The share of Examples that have a feature."""
        return seen.records / max(self.records - self.others, 1)

    def context_features(self) -> dict[str, Feature]:
        """What to ask a parser for: those whose values are of one kind."""
        return {name: feature for name, seen in self.context.items() if (feature := self._feature(seen)) is not None}

    def sequence_features(self) -> dict[str, Feature]:
        """The same for feature lists."""
        found: dict[str, Feature] = {}
        for name, seen in self.lists.items():
            if seen.kind is None:
                continue
            if seen.least == seen.most:
                shape = () if seen.most == 1 else (seen.most,)
                found[name] = FixedLenSequenceFeature(shape, _DTYPES[seen.kind], allow_missing=True)
            else:
                found[name] = VarLenFeature(_DTYPES[seen.kind])
        return found

    def _feature(self, seen: Seen) -> Feature | None:
        if seen.kind is None:
            return None
        if self.present(seen) == 1 and seen.least == seen.most:
            return FixedLenFeature(() if seen.most == 1 else (seen.most,), _DTYPES[seen.kind])
        return VarLenFeature(_DTYPES[seen.kind])

    def code(self, dataset: str) -> str:
        """Python that parses such records of a dataset of that name."""
        if not self.sequences:
            parse = "fb.io.parse_single_example(record, features)"
            return f"{_dict('features', self.context_features())}\n{dataset} = {dataset}.map(lambda record: {parse})"
        parse = "fb.io.parse_single_sequence_example(record, context, steps)"
        return (
            f"{_dict('context', self.context_features())}\n{_dict('steps', self.sequence_features())}\n"
            f"{dataset} = {dataset}.map(lambda record: {parse})"
        )


def feature_code(feature: Feature) -> str:
    """A feature as one would write it."""
    dtype = f"{_PYTHON[feature.type]}"
    if isinstance(feature, FixedLenFeature):
        return f"fb.io.FixedLenFeature({feature.shape!r}, {dtype})"
    if isinstance(feature, FixedLenSequenceFeature):
        return f"fb.io.FixedLenSequenceFeature({feature.shape!r}, {dtype}, allow_missing=True)"
    return f"fb.io.VarLenFeature({dtype})"


def _dict(name: str, features: dict[str, Feature]) -> str:
    if not features:
        return f"{name} = {{}}"
    lines = [f"    {key!r}: {feature_code(feature)}," for key, feature in features.items()]
    return "\n".join([f"{name} = {{", *lines, "}"])


_Steps = list[tuple[int, int]]


def _walked(record: bytes) -> tuple[dict[str, tuple[int, int]], dict[str, _Steps]]:
    """Kind and number of values of every feature, and of every step of every list."""
    data = memoryview(record)
    context: dict[str, tuple[int, int]] = {}
    lists: dict[str, _Steps] = {}
    for number, message in _fields(data):
        if number == 1:
            for name, value in _entries(message):
                context[name] = _values(value)
        elif number == 2:
            for name, value in _entries(message):
                lists[name] = [_values(step) for field_number, step in _fields(value) if field_number == 1]
        else:
            raise NoExample
    return context, lists


def _entries(message: memoryview) -> Iterator[tuple[str, memoryview]]:
    """The entries of a map of messages."""
    for number, entry in _fields(message):
        if number != 1:
            raise NoExample
        parts = dict(_fields(entry))
        if not parts.keys() <= {1, 2}:
            raise NoExample
        empty = memoryview(b"")
        yield bytes(parts.get(1, empty)).decode(), parts.get(2, empty)


def _values(message: memoryview) -> tuple[int, int]:
    """Kind and number of the values of a Feature."""
    kind, count = NOTHING, 0
    for number, values in _fields(message):
        if number not in (BYTES, FLOAT, INT64):
            raise NoExample
        kind, count = number, 0
        for part, packed in _fields(values, scalars=True):
            if part != 1:
                raise NoExample
            if packed is None or kind == BYTES:
                count += 1
            elif kind == FLOAT:
                count += len(packed) // 4
            else:
                # The last byte of each number is the one without its highest bit.
                count += int(np.count_nonzero(np.frombuffer(packed, np.uint8) < 0x80))
    return kind, count


def _fields(data: memoryview, scalars: bool = False) -> "Iterator[tuple[int, memoryview]]":
    """Numbers and contents of the fields of a message; of scalars, if there may be some, None."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 2:
            size, at = _varint(data, at)
            if size > len(data) - at:
                raise NoExample
            yield number, data[at : at + size]
            at += size
        elif scalars and wire in (0, 5):
            at = _varint(data, at)[1] if wire == 0 else at + 4
            if at > len(data):
                raise NoExample
            yield number, None  # type: ignore[misc]
        else:
            raise NoExample


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise NoExample
