"""Interleave gives tf.data's elements in tf.data's order, over a grid of cycles, turns and inner lengths."""

import itertools
import os
import random

import numpy as np
import pytest

import forebay as fb

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

LENGTHS = [
    [],
    [0],
    [4],
    [0, 0, 3, 0],
    [2, 2, 2, 2, 2],
    [6, 1, 0, 3, 9, 2, 2],
    [1, 12, 0, 0, 5, 1, 3, 8, 0],
]


@pytest.fixture(scope="module")
def tf():
    tensorflow = pytest.importorskip("tensorflow")
    tensorflow.config.set_visible_devices([], "GPU")
    return tensorflow


@pytest.fixture(scope="module")
def oracle(tf):
    """tf.data's rows by (lengths, cycle, turn, calls). The numbers are tensors, so that two traces serve all."""

    def order(lengths, cycle, turn, calls):
        woven = (
            tf.data.Dataset.from_tensor_slices(lengths)
            .enumerate()
            .interleave(
                lambda i, n: tf.data.Dataset.range(1000 * i, 1000 * i + n),
                cycle_length=cycle,
                block_length=turn,
                num_parallel_calls=calls,
                deterministic=None if calls is None else True,
            )
        )
        # Every row in one batch; nothing comes out of an empty dataset.
        return woven.batch(10_000)

    one = tf.TensorSpec([], tf.int64)
    many = tf.TensorSpec([None], tf.int64)

    def rows(lengths, cycle, turn, calls=None):
        found = tf.zeros([0], tf.int64)
        for batch in order(lengths, cycle, turn, calls):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(found, tf.TensorShape([None]))])
            found = tf.concat([found, batch], 0)
        return found

    sequential = tf.function(lambda n, c, t: rows(n, c, t), input_signature=[many, one, one])
    parallel = tf.function(rows, input_signature=[many, one, one, one])

    def ask(lengths, cycle, turn, calls):
        arguments = [np.array(lengths, np.int64), np.int64(cycle), np.int64(turn)]
        found = sequential(*arguments) if calls is None else parallel(*arguments, np.int64(calls))
        return found.numpy().tolist()

    return ask


def ours(lengths, cycle, turn, calls, **options):
    elements = fb.Dataset.from_tensor_slices(np.array(lengths, np.int64)).enumerate()
    woven = elements.interleave(lambda i, n: fb.Dataset.range(1000 * i, 1000 * i + n), cycle, turn, calls)
    return [int(row) for row in woven.with_options(fb.Options(**options))]


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("cycle", [1, 2, 3, 4, 16])
def test_grid(oracle, cycle, parallel):
    for lengths, turn in itertools.product(LENGTHS, [1, 2, 3, 100]):
        calls = min(cycle, 3) if parallel else None
        wanted = oracle(lengths, cycle, turn, calls)
        assert len(wanted) == sum(lengths)
        for size in (20, 1 << 20):
            assert ours(lengths, cycle, turn, calls, block_bytes=size) == wanted


def test_random_lengths(oracle):
    draw = random.Random(20)
    for _ in range(40):
        lengths = [draw.choice([0, 1, 2, 5, 30, 200]) for _ in range(draw.randrange(14))]
        cycle, turn = draw.randint(1, 9), draw.choice([1, 1, 2, 4, 16])
        calls = draw.choice([None, 1, cycle])
        assert ours(lengths, cycle, turn, None) == oracle(lengths, cycle, turn, calls)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"cycle_length": 0},
        {"cycle_length": -1},
        {"cycle_length": -2},
        {"block_length": 0},
        {"block_length": -1},
        {"cycle_length": 4, "num_parallel_calls": 0},
        {"cycle_length": 4, "num_parallel_calls": -2},
        {"cycle_length": 4, "num_parallel_calls": 4},
        {"cycle_length": 4, "num_parallel_calls": 5},
        {"cycle_length": 4, "num_parallel_calls": -1, "deterministic": False},
    ],
)
def test_the_same_arguments_are_refused(tf, arguments):
    def refused(dataset, error):
        try:
            dataset.range(3).interleave(lambda i: dataset.range(2), **arguments)
        except error:
            return True
        return False

    theirs = refused(tf.data.Dataset, tf.errors.InvalidArgumentError)
    assert refused(fb.Dataset, fb.errors.PlanError) == theirs
