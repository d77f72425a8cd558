"""Operators that take more than one dataset: concatenate, zip."""

from __future__ import annotations

import numpy as np

from conformance.case import Case
from conformance.cases.common import Dataset, batches, i64, range_, scalars, slices
from conformance.data import ARRAYS, STRINGS


def _odd(n):
    return range_(n).filter(lambda i: i % 2 == 1)


def _shared():
    base = range_(5).map(lambda i: i + 1)
    return base.concatenate(base)


def _zipped_with_itself():
    base = slices(ARRAYS["matrix"])
    return Dataset.zip(base, base)


CASES = [
    Case("concatenate", lambda: range_(5).concatenate(range_(10, 16)), scalars([*range(5), *range(10, 16)])),
    Case("concatenate.first_empty", lambda: range_(0).concatenate(range_(4)), scalars(range(4))),
    Case("concatenate.second_empty", lambda: range_(4).concatenate(range_(0)), scalars(range(4))),
    Case("concatenate.both_empty", lambda: range_(0).concatenate(range_(0)), []),
    Case(
        "concatenate.three",
        lambda: range_(2).concatenate(range_(3)).concatenate(range_(4)),
        scalars([0, 1, 0, 1, 2, 0, 1, 2, 3]),
    ),
    Case(
        "concatenate.unlike_plans",
        lambda: range_(5).map(lambda i: i * 2).concatenate(_odd(9)),
        scalars([0, 2, 4, 6, 8, 1, 3, 5, 7]),
        unknown_length=True,
    ),
    Case("concatenate.with_itself", _shared, scalars([1, 2, 3, 4, 5] * 2)),
    Case(
        "concatenate.structures",
        lambda: slices({"a": [1, 2], "s": ["x", "y"]}).concatenate(slices({"a": [3], "s": ["z"]})),
        [{"a": np.int64(a), "s": s} for a, s in ((1, "x"), (2, "y"), (3, "z"))],
    ),
    Case(
        "concatenate.unlike_shapes",
        lambda: slices(np.zeros((2, 3))).concatenate(slices(np.ones((2, 1)))),
        [np.zeros(3), np.zeros(3), np.ones(1), np.ones(1)],
    ),
    Case("concatenate.strings", lambda: slices(STRINGS).concatenate(slices(["tail"])), [*STRINGS, "tail"]),
    Case(
        "concatenate.then_batch",
        lambda: range_(5).concatenate(range_(5, 9)).batch(4),
        lambda: batches(np.arange(9), 4),
    ),
    Case(
        "concatenate.then_shard",
        lambda: range_(5).concatenate(range_(5, 12)).shard(3, 1),
        scalars(range(1, 12, 3)),
    ),
    Case("concatenate.then_skip", lambda: range_(5).concatenate(range_(5, 12)).skip(7), scalars(range(7, 12))),
    Case(
        "concatenate.repeated",
        lambda: range_(3).concatenate(range_(7, 9)).repeat(2),
        scalars([0, 1, 2, 7, 8] * 2),
    ),
    Case(
        "concatenate.of_repeats",
        lambda: range_(3).repeat(2).concatenate(range_(2).repeat()),
        scalars([0, 1, 2] * 2 + [0, 1] * 7),
        limit=20,
    ),
    Case(
        "concatenate.prefetched",
        lambda: range_(6).prefetch(1).concatenate(range_(6, 9).prefetch(1)),
        scalars(range(9)),
    ),
    Case(
        "zip",
        lambda: Dataset.zip(range_(5), range_(10, 15)),
        [(np.int64(i), np.int64(i + 10)) for i in range(5)],
    ),
    Case(
        "zip.tuple_argument",
        lambda: Dataset.zip((range_(5), range_(10, 15))),
        [(np.int64(i), np.int64(i + 10)) for i in range(5)],
    ),
    Case("zip.one", lambda: Dataset.zip((range_(3),)), [(np.int64(i),) for i in range(3)]),
    Case(
        "zip.dict",
        lambda: Dataset.zip({"x": range_(4), "y": (range_(4, 9), slices(STRINGS))}),
        [{"x": np.int64(i), "y": (np.int64(i + 4), STRINGS[i])} for i in range(4)],
    ),
    Case(
        "zip.unequal",
        lambda: Dataset.zip(range_(9), range_(4), range_(6)),
        [(np.int64(i),) * 3 for i in range(4)],
    ),
    Case("zip.with_empty", lambda: Dataset.zip(range_(9), range_(0)), []),
    Case(
        "zip.with_endless",
        lambda: Dataset.zip(Dataset.counter(7), range_(6)),
        [(np.int64(i + 7), np.int64(i)) for i in range(6)],
    ),
    Case(
        "zip.all_endless",
        lambda: Dataset.zip(Dataset.counter(), range_(3).repeat()),
        [(np.int64(i), np.int64(i % 3)) for i in range(16)],
        limit=16,
    ),
    Case("zip.with_itself", _zipped_with_itself, lambda: [(row.copy(), row.copy()) for row in ARRAYS["matrix"]]),
    # Blocks of unlike sizes on the two sides: wide rows beside narrow ones, a stream beside a source.
    Case(
        "zip.wide_beside_narrow",
        lambda: Dataset.zip(range_(14), range_(14).map(lambda i: np.full(300, i))),
        [(np.int64(i), np.full(300, i)) for i in range(14)],
    ),
    Case(
        "zip.stream_beside_source",
        lambda: Dataset.zip(_odd(30), range_(30)),
        [(np.int64(2 * i + 1), np.int64(i)) for i in range(15)],
        unknown_length=True,
    ),
    Case(
        "zip.structures",
        lambda: Dataset.zip(slices((ARRAYS["small"], ARRAYS["half"])), range_(12).batch(1)),
        lambda: [((ARRAYS["small"][i], ARRAYS["half"][i]), i64([i])) for i in range(12)],
    ),
    Case(
        "zip.then_map",
        lambda: Dataset.zip(range_(8), range_(8, 16)).map(lambda a, b: a * b),
        scalars(i * (i + 8) for i in range(8)),
    ),
    Case(
        "zip.then_skip_shard",
        lambda: Dataset.zip(range_(20), _odd(40)).skip(3).shard(4, 2),
        [(np.int64(i), np.int64(2 * i + 1)) for i in range(5, 20, 4)],
        unknown_length=True,
    ),
    Case(
        "zip.repeated",
        lambda: Dataset.zip(range_(4), range_(6)).repeat(2),
        [(np.int64(i), np.int64(i)) for i in range(4)] * 2,
    ),
    Case(
        "zip.of_repeat",
        lambda: Dataset.zip(range_(4).repeat(3), range_(5).repeat(2)),
        [(np.int64(i % 4), np.int64(i % 5)) for i in range(10)],
    ),
    Case(
        "zip.prefetched",
        lambda: Dataset.zip(range_(6).prefetch(1), _odd(20).prefetch(2)),
        [(np.int64(i), np.int64(2 * i + 1)) for i in range(6)],
        unknown_length=True,
    ),
    Case(
        "zip.of_zip",
        lambda: Dataset.zip(Dataset.zip(range_(4), range_(5)), range_(6)),
        [((np.int64(i), np.int64(i)), np.int64(i)) for i in range(4)],
    ),
]
