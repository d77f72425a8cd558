"""Functions that fail for some elements, which are left out."""

from __future__ import annotations

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import Dataset, batches, i64, range_, scalars, slices


def fails(*bad):
    """A function that adds one, except to these, which it refuses."""

    def function(i):
        if i in bad:
            raise LookupError(f"no row {i}")
        return i + 1

    return function


def _fails_columns(column):
    if np.isin(column, (3, 4, 17)).any():
        raise LookupError("a bad row")
    return column + 1


def _good(*bad, stop=20):
    return scalars(i + 1 for i in range(stop) if i not in bad)


def _records():
    good = [fb.io.serialize_example({"x": [i, i]}) for i in range(9)]
    return slices([record[:-1] if i in (2, 3, 8) else record for i, record in enumerate(good)])


_FEATURES = {"x": fb.io.FixedLenFeature([2], np.int64)}


CASES = [
    Case(
        "skipping.map", lambda: range_(20).map(fails(7, 8, 19), on_error="skip"), _good(7, 8, 19), unknown_length=True
    ),
    Case("skipping.map_first", lambda: range_(20).map(fails(0, 1), on_error="skip"), _good(0, 1), unknown_length=True),
    Case("skipping.map_all", lambda: range_(9).map(fails(*range(9)), on_error="skip"), [], unknown_length=True),
    Case(
        "skipping.map_none",
        lambda: range_(9).map(fails(), on_error="skip", max_errors=0),
        _good(stop=9),
        unknown_length=True,
    ),
    Case(
        "skipping.map_too_many",
        lambda: range_(20).map(fails(2, 5, 11, 13), on_error="skip", max_errors=2),
        _good(2, 5, stop=11),
        raises=fb.FunctionError,
        unknown_length=True,
    ),
    Case(
        "skipping.map_batched",
        lambda: range_(20).map(_fails_columns, batched=True, on_error="skip"),
        _good(3, 4, 17),
        unknown_length=True,
    ),
    Case(
        "skipping.map_batched_too_many",
        lambda: range_(20).map(_fails_columns, batched=True, on_error="skip", max_errors=1),
        _good(3, stop=4),
        raises=fb.FunctionError,
        unknown_length=True,
    ),
    Case(
        "skipping.map_rng",
        lambda: range_(12).map(lambda i, rng: 12 // int(i % 4) + 0 * rng.random(), rng=True, seed=3, on_error="skip"),
        law=lambda found: np.testing.assert_array_equal(found, [12.0, 6.0, 4.0] * 3),
        unknown_length=True,
    ),
    Case(
        "skipping.map_of_map",
        lambda: range_(20).map(fails(3), on_error="skip").map(fails(11, 12), on_error="skip").map(lambda i: i - 1),
        _good(3, 10, 11),
        unknown_length=True,
    ),
    Case(
        "skipping.parser",
        lambda: _records().map(lambda r: fb.io.parse_single_example(r, _FEATURES), on_error="skip"),
        [{"x": i64([i, i])} for i in range(9) if i not in (2, 3, 8)],
        unknown_length=True,
    ),
    Case(
        "skipping.ragged",
        lambda: range_(9).map(lambda i: np.arange(fails(4)(i) % 4), on_error="skip").batch(1),
        [np.arange((i + 1) % 4)[None] for i in range(9) if i != 4],
        unknown_length=True,
    ),
    Case(
        "skipping.then_skip_and_batch",
        lambda: range_(20).map(fails(0, 7, 9), on_error="skip").skip(3).batch(4),
        lambda: batches(i64([i + 1 for i in range(20) if i not in (0, 7, 9)][3:]), 4),
        unknown_length=True,
    ),
    Case(
        "skipping.then_shuffle",
        lambda: range_(20).map(fails(3, 4), on_error="skip").shuffle(seed=1),
        law=lambda found: np.testing.assert_array_equal(sorted(found), _good(3, 4)),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "skipping.repeated",
        lambda: range_(6).map(fails(2), on_error="skip", max_errors=1).repeat(3),
        _good(2, stop=6) * 3,
        unknown_length=True,
    ),
    Case(
        "skipping.filter",
        lambda: range_(20).filter(lambda i: fails(7, 8)(i) % 2 == 0, on_error="skip"),
        scalars(i for i in range(1, 20, 2) if i != 7),
        unknown_length=True,
    ),
    Case(
        "skipping.filter_too_many",
        lambda: range_(20).filter(lambda i: fails(2, 5, 11)(i) % 2 == 0, on_error="skip", max_errors=2),
        scalars([1, 3, 7, 9]),
        raises=fb.FunctionError,
        unknown_length=True,
    ),
    Case(
        "skipping.filter_batched",
        lambda: range_(20).filter(lambda c: _fails_columns(c) % 2 == 0, batched=True, on_error="skip"),
        scalars(i for i in range(1, 20, 2) if i not in (3, 17)),
        unknown_length=True,
    ),
    Case(
        "skipping.flat_map",
        lambda: range_(7).flat_map(lambda i: range_(fails(0, 3, 6)(i)), on_error="skip"),
        scalars(j for i in (1, 2, 4, 5) for j in range(i + 1)),
        unknown_length=True,
    ),
    Case(
        "skipping.flat_map_too_many",
        lambda: range_(7).flat_map(lambda i: range_(fails(0, 3, 6)(i)), on_error="skip", max_errors=1),
        scalars(j for i in (1, 2) for j in range(i + 1)),
        raises=fb.FunctionError,
        unknown_length=True,
    ),
    Case(
        "skipping.interleave",
        lambda: range_(7).interleave(
            lambda i: Dataset.from_tensors(fails(0, 4)(i)).repeat(3), cycle_length=2, on_error="skip"
        ),
        # As if their datasets were empty: the next one has to wait for the slot's next turn.
        lambda: list(
            range_(7).interleave(lambda i: Dataset.from_tensors(i + 1).repeat(0 if i in (0, 4) else 3), cycle_length=2)
        ),
        unknown_length=True,
    ),
    Case(
        "skipping.ignore_errors",
        lambda: (
            range_(6)
            .flat_map(lambda i: range_(fails(3)(i)).map(fails(1)))
            .filter(lambda i: fails(4)(i) > 1)
            .prefetch(1)
            .ignore_errors()
        ),
        scalars([1, 1, 1, 3, 1, 3, 5, 1, 3, 5, 6]),
        unknown_length=True,
    ),
]
