"""Features, dtypes and shapes of TensorFlow's own, where programs that come from there give them."""

from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import io
from unit.lazy_tensorflow import tf
from unit.support import assert_same


def both() -> list[tuple[Any, Any]]:
    """TensorFlow's features, and the same ones of ours."""
    cut, ours = tf.io.RaggedFeature, io.RaggedFeature
    return [
        (tf.io.FixedLenFeature([], tf.int64), io.FixedLenFeature([], np.int64)),
        (tf.io.FixedLenFeature([2], tf.string, [b"a", b"b"]), io.FixedLenFeature([2], bytes, [b"a", b"b"])),
        (tf.io.FixedLenFeature((1,), tf.float32, 0.5), io.FixedLenFeature((1,), np.float32, 0.5)),
        (
            tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=7),
            io.FixedLenSequenceFeature([], np.int64, allow_missing=True, default_value=7),
        ),
        (tf.io.VarLenFeature(tf.string), io.VarLenFeature(bytes)),
        (cut(tf.float32, row_splits_dtype=tf.int64), ours(np.float32, row_splits_dtype=np.int64)),
        (
            cut(tf.int64, "values", [cut.RowLengths("n"), cut.UniformRowLength(2)]),
            ours(np.int64, "values", [ours.RowLengths("n"), ours.UniformRowLength(2)]),
        ),
    ]


def test_features_become_ours() -> None:
    for theirs, ours in both():
        (found,) = io.ExampleParser({"x": theirs}).features.values()
        assert (type(found), repr(found)) == (type(ours), repr(ours))


def test_examples_are_parsed_by_tensorflows_features() -> None:
    records = [io.serialize_example({"y": i, "v": [i] * i}) for i in range(3)]
    theirs = {"y": tf.io.FixedLenFeature([], tf.int64), "v": tf.io.VarLenFeature(tf.int64)}
    ours = {"y": io.FixedLenFeature([], np.int64), "v": io.VarLenFeature(np.int64)}
    assert_same(io.parse_single_example(records[2], theirs), io.parse_single_example(records[2], ours))
    assert_same(io.parse_example(records, theirs), io.parse_example(records, ours))
    found = fb.Dataset.from_tensor_slices(records).map(lambda record: io.parse_single_example(record, theirs))
    assert_same([row["y"] for row in found], [np.int64(i) for i in range(3)])
    step = {"s": tf.io.FixedLenSequenceFeature([3], tf.int64)}
    record = bytes.fromhex("12100a0e0a017312090a071a050a03010203")
    assert io.parse_single_sequence_example(record, None, step)[1]["s"].tolist() == [[1, 2, 3]]


def test_what_is_no_feature_is_refused_by_the_function_that_was_called() -> None:
    sparse = tf.io.SparseFeature("i", "v", tf.int64, 3)
    for call in (io.parse_single_example, io.parse_example):
        with pytest.raises(fb.PlanError, match=rf"{call.__name__}\(features=.*'y' is Sparse.*fb\.io\.FixedLenFeature"):
            call(b"", {"y": sparse})
    with pytest.raises(fb.PlanError, match=r"FixedLenFeature\(dtype=.*an Example holds"):
        io.parse_single_example(b"", {"y": tf.io.FixedLenFeature([], tf.int32)})


def test_output_types_are_tensorflows_dtypes() -> None:
    def pairs() -> Any:
        yield 1, {"s": "a", "v": [1.0, 2.0]}

    types = (tf.int64, {"s": tf.string, "v": tf.float32})
    for shapes in (None, ((), {"s": tf.TensorShape([]), "v": tf.TensorShape([None])})):
        dataset = fb.Dataset.from_generator(pairs, output_types=types, output_shapes=shapes)
        assert_same(list(dataset), [(np.int64(1), {"s": b"a", "v": np.array([1.0, 2.0], np.float32)})])
    any_rank = fb.Dataset.from_generator(pairs, output_types=tf.int64, output_shapes=tf.TensorShape(None))
    assert any_rank.element_spec == fb.TensorSpec(None, np.int64)
    assert fb.Dataset.from_generator(pairs, tf.int64, ()).element_spec == fb.TensorSpec((), np.int64)
