"""Streams that end in an error: what comes before it is not lost, and resuming leads to it again."""

from __future__ import annotations

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import Dataset, batches, range_, scalars


def _fails_at(bad):
    def function(i):
        if i == bad:
            raise LookupError(f"no row {bad}")
        return i + 1

    return function


def _broken_generator():
    yield from range(6)
    raise OSError("the disk went away")


def _changing_structure(i):
    return (i, i) if i < 4 else {"a": i}


CASES = [
    Case("failure.map", lambda: range_(20).map(_fails_at(7)), scalars(range(1, 8)), raises=fb.FunctionError),
    Case("failure.map_first", lambda: range_(20).map(_fails_at(0)), [], raises=fb.FunctionError),
    Case(
        "failure.map_then_batch",
        lambda: range_(20).map(_fails_at(11)).batch(3),
        lambda: batches(np.arange(1, 10), 3),
        raises=fb.FunctionError,
    ),
    Case(
        "failure.map_prefetched",
        lambda: range_(20).map(_fails_at(7)).prefetch(3),
        scalars(range(1, 8)),
        raises=fb.FunctionError,
    ),
    Case(
        "failure.map_after_skip",
        lambda: range_(20).map(_fails_at(7)).map(lambda i: i * 2).skip(2),
        scalars(range(6, 16, 2)),
        raises=fb.FunctionError,
    ),
    Case(
        "failure.filter",
        lambda: range_(20).filter(lambda i: _fails_at(7)(i) % 2 == 0),
        scalars([1, 3, 5]),
        raises=fb.FunctionError,
        unknown_length=True,
    ),
    Case(
        "failure.take_while",
        lambda: range_(20).take_while(lambda i: _fails_at(7)(i) > 0),
        scalars(range(7)),
        raises=fb.FunctionError,
        unknown_length=True,
    ),
    Case(
        "failure.generator",
        lambda: Dataset.from_generator(_broken_generator),
        scalars(range(6)),
        raises=fb.FunctionError,
        unknown_length=True,
    ),
    Case(
        "failure.flat_map",
        lambda: range_(6).flat_map(lambda i: range_(_fails_at(3)(i))),
        scalars([0, 0, 1, 0, 1, 2]),
        raises=fb.FunctionError,
        unknown_length=True,
    ),
    Case(
        "failure.flat_map_inner",
        lambda: range_(6).flat_map(lambda i: range_(i).map(_fails_at(3))),
        scalars([1, 1, 2, 1, 2, 3, 1, 2, 3]),
        raises=fb.FunctionError,
        unknown_length=True,
    ),
    Case(
        "failure.concatenate",
        lambda: range_(4).concatenate(range_(9).map(_fails_at(2))),
        scalars([0, 1, 2, 3, 1, 2]),
        raises=fb.FunctionError,
    ),
    Case(
        "failure.zip",
        lambda: Dataset.zip(range_(9), range_(9).map(_fails_at(4))),
        [(np.int64(i), np.int64(i + 1)) for i in range(4)],
        raises=fb.FunctionError,
    ),
    Case(
        "failure.repeat",
        lambda: range_(4).concatenate(range_(1).map(_fails_at(0))).repeat(2),
        scalars(range(4)),
        raises=fb.FunctionError,
    ),
    Case(
        "failure.batch_unequal_shapes",
        lambda: range_(9).map(lambda i: np.zeros(3 if i < 5 else 4)).batch(2),
        [np.zeros((2, 3))] * 2,
        raises=fb.DataError,
    ),
    Case(
        "failure.batch_unequal_late",
        lambda: range_(9).map(lambda i: np.zeros(3 if i < 6 else 4)).batch(3),
        [np.zeros((3, 3))] * 2 + [np.zeros((3, 4))],
    ),
    Case(
        "failure.unbatch_unequal_lengths",
        lambda: range_(6).map(lambda i: (np.zeros(2), np.zeros(2 if i < 3 else 1))).unbatch(),
        [(np.float64(0), np.float64(0))] * 6,
        raises=fb.DataError,
    ),
    Case(
        "failure.unbatch_scalar",
        lambda: range_(3).map(lambda i: np.zeros(2) if i < 2 else np.float64(1)).unbatch(),
        scalars([0.0] * 4, np.float64),
        raises=fb.DataError,
    ),
    Case("failure.behind_the_limit", lambda: range_(20).map(_fails_at(7)).take(7), scalars(range(1, 8))),
]
