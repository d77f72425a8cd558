"""Partitions of RaggedFeatures against TensorFlow: rows of rows, and what does not fit."""

import random
from typing import Any

import numpy as np
import pytest

import forebay as fb
from unit.lazy_tensorflow import tf
from unit.test_example import plain

io = fb.io
R = io.RaggedFeature

# Every kind by itself, rows of rows, and rows of one length inside and outside of others.
PARTITIONS = {
    "splits": [R.RowSplits("splits")],
    "lengths": [R.RowLengths("lengths")],
    "starts": [R.RowStarts("starts")],
    "limits": [R.RowLimits("limits")],
    "ids": [R.ValueRowIds("ids")],
    "uniform": [R.UniformRowLength(2)],
    "uniform twice": [R.UniformRowLength(1), R.UniformRowLength(2)],
    "rows of rows": [R.RowLengths("outer"), R.RowSplits("splits")],
    "rows of pairs": [R.RowLengths("halves"), R.UniformRowLength(2)],
    "pairs of rows": [R.UniformRowLength(2), R.RowLengths("lengths")],
    "rows of pairs of rows": [R.RowLengths("pairs"), R.UniformRowLength(2), R.RowStarts("starts")],
}


def features(dtype: Any, library: Any, splits: Any) -> dict[str, Any]:
    """All of them, of the same values."""
    kind = library.RaggedFeature
    return {"plain": kind(dtype, "v", row_splits_dtype=splits)} | {
        name: kind(
            dtype, "v", [getattr(kind, type(each).__name__)(*each) for each in partitions], row_splits_dtype=splits
        )
        for name, partitions in PARTITIONS.items()
    }


def parts(chance: random.Random) -> dict[str, list[int]]:
    """Twelve values, or none, in an even number of rows, which end as they begin: with values."""
    rows = 2 * chance.randrange(1, 4)
    cuts = sorted(chance.choices(range(13), k=rows - 1))
    lengths = np.diff([0, *cuts, 12])
    # Row ids cannot tell of empty rows at the end.
    lengths[-1] += 1
    lengths[lengths.argmax()] -= 1
    splits = np.cumsum([0, *lengths])
    ids = np.repeat(np.arange(rows), lengths)
    half = chance.randrange(7)
    outer = chance.randrange(rows + 1)
    return {
        "splits": splits.tolist(),
        "lengths": lengths.tolist(),
        "starts": splits[:-1].tolist(),
        "limits": splits[1:].tolist(),
        "ids": ids.tolist(),
        "halves": [half, 6 - half],
        "outer": [outer, 0, rows - outer],
        "pairs": [rows // 2],
    }


def example(chance: random.Random, values: Any) -> bytes:
    return io.serialize_example({"v": [values(i) for i in range(12)], **parts(chance)})


VALUES = {
    np.int64: lambda i: i - 3,
    np.float32: lambda i: i / 4,
    bytes: lambda i: b"x" * i,
}


@pytest.mark.parametrize("dtype", VALUES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("splits", [np.int32, np.int64])
def test_as_by_tensorflow(dtype: Any, splits: Any) -> None:
    chance = random.Random(3)
    records = [example(chance, VALUES[dtype]) for _ in range(8)]
    ours = features(dtype, io, splits)
    known = {np.int64: tf.int64, np.float32: tf.float32, bytes: tf.string}[dtype]
    theirs = features(known, tf.io, tf.as_dtype(splits))
    found, expected = io.parse_example(records, ours), tf.io.parse_example(records, theirs)
    for name in ours:
        assert plain(found[name]) == plain(expected[name]), name
    for record in records:
        found, expected = io.parse_single_example(record, ours), tf.io.parse_single_example(record, theirs)
        for name in ours:
            assert plain(found[name]) == plain(expected[name]), name


def test_in_map() -> None:
    chance = random.Random(4)
    records = [example(chance, VALUES[np.int64]) for _ in range(20)]
    wanted = features(np.int64, io, np.int32)
    expected = [{name: plain(value) for name, value in io.parse_single_example(r, wanted).items()} for r in records]
    for dataset in (
        fb.Dataset.from_tensor_slices(records).map(lambda record: io.parse_single_example(record, wanted)),
        fb.Dataset.from_tensor_slices(records).map(io.ExampleParser(wanted), 2, executor="thread"),
    ):
        assert [{name: plain(value) for name, value in element.items()} for element in dataset] == expected
    batched = fb.Dataset.from_tensor_slices(records).batch(5).map(lambda several: io.parse_example(several, wanted))
    assert plain(next(iter(batched))["rows of rows"]) == plain(io.parse_example(records[:5], wanted)["rows of rows"])


def _sequence(chance: random.Random, steps: int) -> bytes:
    made = tf.train.SequenceExample()
    made.context.feature["v"].int64_list.value.extend(range(12))
    for key, values in parts(chance).items():
        made.context.feature[key].int64_list.value.extend(values)
    for _ in range(steps):
        made.feature_lists.feature_list["v"].feature.add().int64_list.value.extend(range(12))
        for key, values in parts(chance).items():
            made.feature_lists.feature_list[key].feature.add().int64_list.value.extend(values)
    return bytes(made.SerializeToString())


def test_of_sequences() -> None:
    chance = random.Random(5)
    records = [_sequence(chance, steps) for steps in (2, 1, 3)]
    ours, theirs = features(np.int64, io, np.int64), features(tf.int64, tf.io, tf.int64)
    found, expected = (
        io.parse_sequence_example(records, ours, ours),
        tf.io.parse_sequence_example(records, theirs, theirs),
    )
    one, alone = (
        io.parse_single_sequence_example(records[0], ours, ours),
        tf.io.parse_single_sequence_example(records[0], theirs, theirs),
    )
    for mine, other in zip((*found[:2], *one), (*expected[:2], *alone), strict=True):
        for name in ours:
            assert plain(mine[name]) == plain(other[name]), name


@pytest.mark.parametrize(
    ("partition", "given", "message"),
    [
        (R.RowSplits("p"), [1, 3], "begin with 0, not 1"),
        (R.RowSplits("p"), [0, 2, 1, 3], "a row of -1 values"),
        (R.RowSplits("p"), [0, 2], "rows of 2 values in all, of which there are 3"),
        (R.RowSplits("p"), [], "rows of 0 values in all"),
        (R.RowLengths("p"), [1, 1], "rows of 2 values in all"),
        (R.RowLengths("p"), [4, -1], "a row of -1 values"),
        (R.RowLengths("p"), [1 << 62, 1 << 62, 1 << 62, 1 << 62, 3], "in all, of which there are 3"),
        (R.RowStarts("p"), [1], "begin with 0, not 1"),
        (R.RowStarts("p"), [0, 4], "a row of -1 values"),
        (R.RowStarts("p"), [], "rows of 0 values in all"),
        (R.RowLimits("p"), [1, 2], "rows of 2 values in all"),
        (R.ValueRowIds("p"), [0, 0], "2 row ids for 3 values"),
        (R.ValueRowIds("p"), [0, 2, 1], "must not be negative or become smaller"),
        (R.ValueRowIds("p"), [-1, 0, 0], "must not be negative"),
        (R.ValueRowIds("p"), [0, 1, -(1 << 63)], "must not be negative or become smaller"),
        (R.ValueRowIds("p"), [0, 0, 1 << 60], "no number of a row"),
        (R.ValueRowIds("p"), [0, 0, 1 << 16], "no number of a row"),
        (R.UniformRowLength(2), [], "not a whole number of rows of 2"),
    ],
)
def test_what_does_not_fit(partition: Any, given: list[int], message: str) -> None:
    wanted = {"x": io.RaggedFeature(np.int64, "v", [partition])}
    record = io.serialize_example({"v": [1, 2, 3], "p": np.array(given, np.int64)})
    with pytest.raises(fb.DataError, match=message):
        io.parse_single_example(record, wanted)
    good = io.serialize_example({"v": np.zeros(0, np.int64), "p": np.zeros(0, np.int64)})
    with pytest.raises(fb.DataError, match=f"record 1: .*{message}"):
        io.parse_example([good, record], wanted)
    assert len(io.parse_example([good], wanted)["x"].row_splits) == 2


def test_steps_that_do_not_fit() -> None:
    made = tf.train.SequenceExample()
    for values in ([1, 2], [3]):
        made.feature_lists.feature_list["v"].feature.add().int64_list.value.extend(values)
    lists = {"x": io.RaggedFeature(np.int64, "v", [R.RowLengths("p")])}
    record = made.SerializeToString()
    with pytest.raises(fb.DataError, match="record 1: 2 steps with values, and 0 with a partition"):
        io.parse_sequence_example([b"", record], sequence_features=lists)
    for values in ([2], [2]):
        made.feature_lists.feature_list["p"].feature.add().int64_list.value.extend(values)
    with pytest.raises(fb.DataError, match=r"record 1: step 1: .*rows of 2 values"):
        io.parse_sequence_example([b"", made.SerializeToString()], sequence_features=lists)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: io.RaggedFeature(np.int64, partitions=["key"]), "is not a partition"),
        (lambda: io.RaggedFeature(np.int64, partitions=[R.UniformRowLength(0)]), "at least 1"),
        (lambda: io.RaggedFeature(np.int64, partitions=[R.RowSplits(3)]), "key must be a str"),
        (
            lambda: io.ExampleParser({"a": io.RaggedFeature(np.int64, "v"), "v": io.FixedLenFeature([], np.int64)}),
            "only RaggedFeatures of one dtype",
        ),
        (
            lambda: io.ExampleParser({"a": io.RaggedFeature(np.int64, "v"), "b": io.RaggedFeature(bytes, "v")}),
            "only RaggedFeatures of one dtype",
        ),
    ],
)
def test_refused_when_built(build: Any, message: str) -> None:
    with pytest.raises(fb.PlanError, match=message):
        build()
