"""Keeps TensorFlow off the GPU and out of the log, and imports it once, before the first test."""

import os

import pytest

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from differential.sides import oracle


@pytest.fixture(scope="session", autouse=True)
def _tensorflow() -> None:
    # Its import moves the global random state, which Hypothesis does not allow inside a strategy.
    oracle()
