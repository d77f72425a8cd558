"""tf.train.SequenceExample against TensorFlow."""

import random
from typing import Any

import numpy as np
import pytest

import forebay as fb
from unit.lazy_tensorflow import tf
from unit.test_example import plain, theirs

io = fb.io

CONTEXT = {
    "c": io.FixedLenFeature([], np.int64, 5),
    "cv": io.VarLenFeature(bytes),
    "cr": io.RaggedFeature(np.float32),
}
LISTS = {
    "l": io.FixedLenSequenceFeature([2], np.int64, allow_missing=True),
    "ls": io.FixedLenSequenceFeature([], bytes, allow_missing=True),
    "lv": io.VarLenFeature(np.float32),
    "lr": io.RaggedFeature(np.int64),
}


def their(features: dict[str, Any]) -> dict[str, Any]:
    return {name: theirs(feature) for name, feature in features.items()}


def made_up(chance: random.Random) -> bytes:
    made = tf.train.SequenceExample()
    if chance.random() < 0.8:
        made.context.feature["c"].int64_list.value.append(chance.randrange(-9, 9))
    if chance.random() < 0.8:
        made.context.feature["cv"].bytes_list.value.extend([b"x"] * chance.randrange(3))
        made.context.feature["cr"].float_list.value.extend([0.5] * chance.randrange(3))
    for name in LISTS:
        if chance.random() < 0.8:
            steps = made.feature_lists.feature_list[name].feature
            for step in range(chance.randrange(4)):
                if name == "l":
                    steps.add().int64_list.value.extend([step, -step])
                elif name == "ls":
                    steps.add().bytes_list.value.append(b"s" * step)
                elif name == "lv":
                    steps.add().float_list.value.extend([1.5] * chance.randrange(3))
                else:
                    steps.add().int64_list.value.extend([step] * chance.randrange(3))
    return made.SerializeToString()


def all_plain(parts: Any) -> Any:
    return [{name: plain(value) for name, value in part.items()} for part in parts]


@pytest.mark.parametrize("seed", range(12))
def test_sequence_examples_are_parsed_as_by_tensorflow(seed: int) -> None:
    chance = random.Random(seed)
    records = [made_up(chance) for _ in range(chance.randrange(1, 5))]
    several = all_plain(io.parse_sequence_example(np.array(records, object), CONTEXT, LISTS))
    assert several == all_plain(tf.io.parse_sequence_example(records, their(CONTEXT), their(LISTS)))
    for record in records:
        one = all_plain(io.parse_single_sequence_example(record, CONTEXT, LISTS))
        expected = all_plain(tf.io.parse_single_sequence_example(record, their(CONTEXT), their(LISTS)))
        # Of one record, a VarLenFeature of the whole is its values here, and a SparseTensor there.
        expected[0]["cv"] = expected[0]["cv"][1]
        assert one == expected


def test_errors_name_the_feature() -> None:
    made = tf.train.SequenceExample()
    made.feature_lists.feature_list["l"].feature.add().int64_list.value.append(1)
    record = made.SerializeToString()
    for lists, message in [
        ({"l": io.FixedLenSequenceFeature([2], np.int64)}, r"feature 'l' has 1 values, the shape \(2,\)"),
        ({"l": io.FixedLenSequenceFeature([], bytes)}, "feature 'l' holds int64, wanted is bytes"),
        ({"m": io.FixedLenSequenceFeature([], bytes)}, r"feature 'm' \(bytes\) is missing"),
    ]:
        with pytest.raises(fb.DataError, match=message):
            io.parse_single_sequence_example(record, sequence_features=lists)
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.parse_single_sequence_example(record, sequence_features=their(lists))
    with pytest.raises(fb.DataError, match="record 1: is not the serialized form of a SequenceExample"):
        io.parse_sequence_example([made_up(random.Random(1)), b"\xff"], sequence_features=LISTS)
    with pytest.raises(fb.PlanError, match="give context_features, sequence_features, or both"):
        io.parse_sequence_example([record])
    with pytest.raises(fb.PlanError, match=r"it must be one of fb\.io\.FixedLenSequenceFeature"):
        io.parse_sequence_example([record], sequence_features={"l": io.FixedLenFeature([], np.int64)})
