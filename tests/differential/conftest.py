"""Keeps TensorFlow off the GPU and out of the log, imports it once, and collects its garbage where that is safe."""

import gc
import os
from collections.abc import Iterator

import pytest

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from differential.sides import oracle


@pytest.fixture(scope="session", autouse=True)
def _tensorflow() -> None:
    # Its import moves the global random state, which Hypothesis does not allow inside a strategy.
    oracle()


@pytest.fixture(autouse=True)
def _garbage(_tensorflow: None) -> Iterator[None]:
    """TensorFlow calls Python on threads of its own.

    One that comes to collect garbage there, and finds one of tf.data's iterators, waits for itself for ever, and the
    process never collects garbage again.
    """
    gc.disable()
    yield
    # What a test has made is all in the youngest generation.
    gc.collect(0)
    gc.enable()
