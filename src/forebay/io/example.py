"""tf.train.Example: serialized records to arrays, one by one or a whole column at once."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from forebay._native import Parser
from forebay.block import Block, Column, RowBuilder, Structure
from forebay.block.dense import Dense
from forebay.block.strings import Strings
from forebay.block.structure import LEAF
from forebay.errors import DataError, PlanError
from forebay.io.features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    check_features,
)
from forebay.io.parsing import FeatureValues, Records, RowFault, batch_value, run, single_column, single_value
from forebay.io.request import Request
from forebay.lazy import cached_property

_KINDS = (FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, RaggedFeature)

Made = tuple[Block | None, Exception | None]
"""The rows up to the first that failed, and its failure."""


class ExampleParser:
    """``parse_single_example`` for one set of features, as a function for ``map``, which gives it whole columns.

    >>> import forebay as fb
    >>> records = [fb.io.serialize_example({"x": i, "name": f"row {i}"}) for i in range(2)]
    >>> parse = ExampleParser({"x": FixedLenFeature([], np.int64), "name": FixedLenFeature([], bytes)})
    >>> list(fb.Dataset.from_tensor_slices(records).map(parse))
    [{'x': np.int64(0), 'name': b'row 0'}, {'x': np.int64(1), 'name': b'row 1'}]
    """

    def __init__(self, features: Mapping[str, Feature]) -> None:
        self.features = check_features("ExampleParser", features, _KINDS)
        for name, feature in self.features.items():
            if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
                raise PlanError(
                    f"feature {name!r}: a FixedLenSequenceFeature must have allow_missing=True, except in a "
                    "SequenceExample"
                )

        self._request = Request(self.features)

    def forebay_fingerprint(self) -> Iterator[Any]:
        """The features, by which saved states tell it from others."""
        yield from self.features.items()

    def __reduce__(self) -> Any:
        # The parser is made again where it is needed.
        return type(self), (self.features,)

    @cached_property
    def _parser(self) -> Parser:
        return Parser(self._request.wanted(), False)

    @cached_property
    def structure(self) -> Structure:
        """Of the element that becomes of an Example."""
        return Structure(dict, tuple(self.features), (LEAF,) * len(self.features))

    def __call__(self, serialized: Any) -> dict[str, Any]:
        """The features of one Example."""
        try:
            values = self.run(Records(values=[one_record("parse_single_example", serialized)]))
            return {name: single_value(each) for name, each in values.items()}
        except RowFault as fault:
            raise fault.error from None

    def batch(self, serialized: Any) -> dict[str, Any]:
        """The features of several Examples, each in one value."""
        records = records_of("parse_example", serialized)
        try:
            values = self.run(Records(values=records))
            return {name: batch_value(each, len(records)) for name, each in values.items()}
        except RowFault as fault:
            raise DataError(f"record {fault.row}: {fault.error}") from None

    def run(self, records: Records) -> dict[str, FeatureValues]:
        """The values of all features. RowFault at the first Example that cannot be parsed."""
        return self._request.values(run(self._parser, self._request.asked, records))

    def accepts(self, block: Block) -> bool:
        """Whether ``on_block`` can take the place of calls for every row."""
        return self.takes(block, 0)

    def takes(self, block: Block, axes: int) -> bool:
        """Whether these are records, or arrays of them, of which every feature makes an array."""
        column = block.columns[0] if block.structure.is_leaf else None
        fits = isinstance(column, Strings) and not column.text and len(column.shape) == axes
        return fits and not self._request.partitioned

    def on_block(self, block: Block) -> Made:
        """The same as a call for every row."""
        return _parsed(self._columns, block)

    def _columns(self, block: Block) -> Block:
        column = block.columns[0]
        assert isinstance(column, Strings)
        values = self.run(Records(column)).values()
        return Block(self.structure, [single_column(each, block.rows) for each in values], block.rows)


class BatchParser:
    """``parse_example`` for one set of features, on a column whose rows are batches of records."""

    def __init__(self, parser: ExampleParser) -> None:
        self._parser = parser
        self._builder = RowBuilder()

    def accepts(self, block: Block) -> bool:
        """Whether ``on_block`` can take the place of calls for every row."""
        return self._parser.takes(block, 1)

    def on_block(self, block: Block) -> Made:
        """The same as a call for every row."""
        return _parsed(self._columns, block)

    def _columns(self, block: Block) -> Block:
        column = block.columns[0]
        assert isinstance(column, Strings)
        size = column.shape[0]
        try:
            values = self._parser.run(Records(column))
        except RowFault as fault:
            raise RowFault(fault.row // size, DataError(f"record {fault.row % size}: {fault.error}")) from None
        if all(isinstance(feature, FixedLenFeature) for feature in self._parser.features.values()):
            columns = [_folded(single_column(each, block.rows * size), size) for each in values.values()]
            return Block(self._parser.structure, columns, block.rows)
        # How rows are filled up, and what else is counted by batch, is known to each batch alone.
        elements = []
        for row in range(block.rows):
            found = self._parser.run(Records(column.slice(row, row + 1)))
            elements.append({name: batch_value(each, size) for name, each in found.items()})
        made, error = self._builder.build(elements)
        if error is not None or made is None:
            raise RowFault(0, DataError(str(error)))
        return made


def _folded(column: Column, size: int) -> Column:
    if isinstance(column, (Dense, Strings)):
        return column.fold(size)
    raise AssertionError("features of fixed length are dense")


def _parsed(parse: Any, block: Block) -> Made:
    try:
        return parse(block), None
    except RowFault as fault:
        return (parse(block.slice(0, fault.row)) if fault.row else None), fault.error


def one_record(call: str, serialized: Any) -> bytes:
    """The record that a user hands in."""
    if isinstance(serialized, np.ndarray) and serialized.ndim == 0:
        serialized = serialized.item()
    if isinstance(serialized, (bytearray, memoryview)):
        return bytes(serialized)
    if not isinstance(serialized, bytes):
        raise DataError(f"{call}(): a serialized record is bytes, not {type(serialized).__name__}")
    return bytes(serialized)


def records_of(call: str, serialized: Any) -> list[bytes]:
    """The records that a user hands in."""
    if isinstance(serialized, np.ndarray):
        if serialized.ndim != 1:
            raise DataError(f"{call}(): serialized records have one axis, not {serialized.ndim}")
        serialized = serialized.astype(object).tolist() if serialized.dtype.kind == "S" else serialized.tolist()
    return [one_record(call, each) for each in serialized]


def parse_single_example(
    serialized: Any, features: Mapping[str, Feature], example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """The features of one serialized tf.train.Example.

    In ``map(lambda record: parse_single_example(record, features))``, ``map(partial(parse_single_example,
    features=features))`` and ``map(ExampleParser(features))`` whole columns of records are parsed at once. A function
    that does more than that is called for one record after another: do the rest in a ``map`` of its own.

    Args:
        serialized: bytes.
        features: what is wanted, by name. Others are not looked at. Those of ``tf.io`` will do.
        example_names: not used.
        name: not used.

    >>> from forebay.io import serialize_example
    >>> record = serialize_example({"x": [1, 2], "y": 0.5})
    >>> parse_single_example(record, {"x": VarLenFeature(np.int64), "y": FixedLenFeature([], np.float32)})
    {'x': array([1, 2]), 'y': np.float32(0.5)}
    """
    return _parser_of("parse_single_example", features)(serialized)


def parse_example(
    serialized: Any, features: Mapping[str, Feature], example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """The features of several serialized tf.train.Examples, each with a leading axis.

    Args:
        serialized: an array or a list of bytes; one record alone gives what ``parse_single_example`` gives.
        features: what is wanted, by name. A ``VarLenFeature`` becomes a ``SparseTensor``, a ``RaggedFeature`` a
            ``RaggedTensor``, and a ``FixedLenSequenceFeature`` an array filled up to the longest row.
        example_names: not used.
        name: not used.

    >>> from forebay.io import serialize_example
    >>> records = [serialize_example({"x": [i] * i}) for i in range(3)]
    >>> parse_example(records, {"x": RaggedFeature(np.int64)})["x"]
    RaggedTensor(values=array([1, 2, 2]), row_splits=array([0, 0, 1, 3], dtype=int32))
    """
    parser = _parser_of("parse_example", features)
    return parser(serialized) if isinstance(serialized, bytes) else parser.batch(serialized)


_recent: dict[int, tuple[Any, tuple[Any, ...], ExampleParser]] = {}


def _parser_of(call: str, features: Any) -> ExampleParser:
    """The parser for these features, kept for the calls that follow with the same dict."""
    if isinstance(features, ExampleParser):
        return features
    known = _recent.get(id(features))
    if known is not None and known[0] is features and known[1] == tuple(features.items()):
        return known[2]
    parser = ExampleParser(check_features(call, features, _KINDS))
    if len(_recent) >= 64:
        _recent.clear()
    _recent[id(features)] = (features, tuple(features.items()), parser)
    return parser
