"""tf.train.SequenceExample: features of the whole, and lists of features, one for every step."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from forebay._native import Parser
from forebay.errors import DataError, PlanError
from forebay.io.example import one_record, records_of
from forebay.io.features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RaggedTensor,
    SparseTensor,
    VarLenFeature,
    check_features,
)
from forebay.io.parsing import (
    FeatureValues,
    Offsets,
    Records,
    RowFault,
    batch_value,
    offsets_of,
    padded,
    places,
    ragged_tensor,
    run,
    single_value,
)
from forebay.io.request import Request

Features = Mapping[str, Feature] | None
Parsed = dict[str, Any]


def parse_single_sequence_example(
    serialized: Any,
    context_features: Features = None,
    sequence_features: Features = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[Parsed, Parsed]:
    """The features of one serialized tf.train.SequenceExample: those of the whole, and those of its steps.

    Args:
        serialized: bytes.
        context_features: what is wanted of the whole, by name.
        sequence_features: what is wanted of the steps, by name. A ``FixedLenSequenceFeature`` gives an array with a
            row for every step, a ``VarLenFeature`` a ``SparseTensor``, a ``RaggedFeature`` a ``RaggedTensor``.
        example_name: not used.
        name: not used.

    >>> record = bytes.fromhex("0a0c0a0a0a016112051a030a0107" "12100a0e0a017312090a071a050a03010203")
    >>> parse_single_sequence_example(
    ...     record, {"a": FixedLenFeature([], np.int64)}, {"s": FixedLenSequenceFeature([3], np.int64)}
    ... )
    ({'a': np.int64(7)}, {'s': array([[1, 2, 3]])})
    """
    call = "parse_single_sequence_example"
    parse = _parser(call, context_features, sequence_features)
    try:
        context, lists = parse([one_record(call, serialized)])
        return (
            {name: single_value(values) for name, values in context.items()},
            {name: _steps(values) for name, values in lists.items()},
        )
    except RowFault as fault:
        raise fault.error from None


def parse_sequence_example(
    serialized: Any,
    context_features: Features = None,
    sequence_features: Features = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[Parsed, Parsed, Parsed]:
    """The features of several serialized tf.train.SequenceExamples, and how many steps each has.

    Args:
        serialized: an array or a list of bytes.
        context_features: what is wanted of the whole, by name; as in ``parse_example``.
        sequence_features: what is wanted of the steps, by name. A ``FixedLenSequenceFeature`` gives an array that is
            filled up to the longest sequence, a ``VarLenFeature`` a ``SparseTensor`` of three axes, a ``RaggedFeature``
            a ``RaggedTensor`` in another.
        example_names: not used.
        name: not used.

    Returns:
        Context, steps, and the number of steps of those features that are filled up.

    >>> record = bytes.fromhex("0a0c0a0a0a016112051a030a0107" "12100a0e0a017312090a071a050a03010203")
    >>> parse_sequence_example([record], sequence_features={"s": FixedLenSequenceFeature([3], np.int64)})
    ({}, {'s': array([[[1, 2, 3]]])}, {'s': array([1])})
    """
    call = "parse_sequence_example"
    records = records_of(call, serialized)
    parse = _parser(call, context_features, sequence_features)
    try:
        context, lists = parse(records)
        lengths = {
            name: values.steps for name, values in lists.items() if isinstance(values.feature, FixedLenSequenceFeature)
        }
        return (
            {name: batch_value(values, len(records)) for name, values in context.items()},
            {name: _batch_steps(values) for name, values in lists.items()},
            lengths,
        )
    except RowFault as fault:
        raise (fault.error if len(records) == 1 else DataError(f"record {fault.row}: {fault.error}")) from None


def _parser(
    call: str, context: Features, lists: Features
) -> Callable[[list[bytes]], tuple[dict[str, FeatureValues], dict[str, FeatureValues]]]:
    if not context and not lists:
        raise PlanError(f"{call}(): give context_features, sequence_features, or both")
    whole = check_features(call, context, (FixedLenFeature, VarLenFeature, RaggedFeature)) if context else {}
    steps = check_features(call, lists, (FixedLenSequenceFeature, VarLenFeature, RaggedFeature)) if lists else {}
    first, second = Request(whole), Request(steps, sequence=True)
    parser = Parser(first.wanted() + second.wanted(), True)

    def parse(records: list[bytes]) -> tuple[dict[str, FeatureValues], dict[str, FeatureValues]]:
        values = run(parser, [*first.asked, *second.asked], Records(values=records), "a SequenceExample")
        return first.values(values[: len(first.asked)]), second.values(values[len(first.asked) :])

    return parse


def _steps(values: FeatureValues) -> Any:
    """The steps of one record."""
    feature, steps = values.feature, values.steps
    assert steps is not None
    if isinstance(feature, FixedLenSequenceFeature):
        return values.flat().reshape(int(steps[0]), *feature.shape)
    return _ragged_steps(values, steps) if isinstance(feature, RaggedFeature) else batch_value(values, int(steps[0]))


def _ragged_steps(values: FeatureValues, steps: Offsets) -> RaggedTensor:
    """The steps of all records behind one another. RowFault at the first record whose partitions do not fit."""
    for partition in values.partitions:
        assert partition.steps is not None
        for record in np.flatnonzero(partition.steps != steps)[:1].tolist():
            raise RowFault(
                record, DataError(f"{steps[record]} steps with values, and {partition.steps[record]} with a partition")
            )
    try:
        found: RaggedTensor = batch_value(values, int(steps.sum()))
    except RowFault as fault:
        starts = offsets_of(steps)
        record = int(np.searchsorted(starts, fault.row, "right")) - 1
        raise RowFault(record, DataError(f"step {fault.row - starts[record]}: {fault.error}")) from None
    return found


def _batch_steps(values: FeatureValues) -> Any:
    """The steps of several records."""
    feature, steps, lengths = values.feature, values.steps, values.lengths
    assert steps is not None
    if isinstance(feature, FixedLenSequenceFeature):
        return padded(values, steps, feature)
    assert lengths is not None
    if isinstance(feature, RaggedFeature):
        return ragged_tensor(_ragged_steps(values, steps), steps, feature)
    record, step = np.repeat(np.arange(len(steps)), steps), places(steps)
    return SparseTensor(
        np.stack([np.repeat(record, lengths), np.repeat(step, lengths), places(lengths)], axis=1),
        values.flat(),
        np.array([len(steps), steps.max(initial=0), lengths.max(initial=0)], np.int64),
    )
