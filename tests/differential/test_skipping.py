"""Elements that a function fails for, beside tf.data's ``ignore_errors``."""

from typing import Any

import numpy as np
import pytest

from forebay import Dataset

WORDS = ["1", "2", "three", "4", "", "6"]


@pytest.mark.parametrize("calls", [None, 2])
def test_ignore_errors(calls: int | None) -> None:
    import tensorflow as tf

    theirs = tf.data.Dataset.from_tensor_slices(WORDS)
    theirs = theirs.map(lambda word: tf.strings.to_number(word, tf.int64), calls).ignore_errors().batch(2)
    executor: Any = "thread" if calls else "auto"
    ours = Dataset.from_tensor_slices(WORDS).map(int, calls, executor=executor).ignore_errors().batch(2)
    assert ours.cardinality() == int(theirs.cardinality())
    for mine, other in zip(ours, theirs.as_numpy_iterator(), strict=True):
        np.testing.assert_array_equal(mine, other)
