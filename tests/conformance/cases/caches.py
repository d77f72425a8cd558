"""Caches: what comes out is what would without them, whatever they have kept by then."""

from __future__ import annotations

import atexit
import functools
import itertools
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import Dataset, batches, i64, range_, scalars, slices
from conformance.cases.laws import reordered
from conformance.data import ARRAYS, LONG_BYTES
from forebay.plan import check_use


def _frozen(build: Callable[[], fb.Dataset[Any]]) -> Callable[[], fb.Dataset[Any]]:
    """Without the warnings that a cache behind random steps gives, when it is built or when it is used again."""

    @functools.wraps(build)
    def quiet() -> fb.Dataset[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dataset = build()
            check_use(dataset.plan, again=True)
        return dataset

    return quiet


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="forebay-cases-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


_numbers = itertools.count()


def _new() -> str:
    """A folder that no other dataset uses."""
    return str(_folder() / str(next(_numbers)))


def _same() -> str:
    """A folder that all datasets of this process use."""
    return str(_folder() / "same")


def _shared():
    """Two branches over one cache, of which one runs ahead of the other."""
    cached = range_(30).filter(lambda i: i % 4 != 1).cache()
    return Dataset.zip(cached, cached.skip(3).map(lambda i: i * 10))


def _shared_expected():
    rows = [i for i in range(30) if i % 4 != 1]
    return [(np.int64(a), np.int64(b * 10)) for a, b in zip(rows, rows[3:], strict=False)]


def _in_place(elements):
    assert [e % 100 for e in elements] == list(range(20))


_BIG = np.arange(8000).reshape(40, 200)
_TINY = fb.Options(memory=20_000)


def _big():
    return slices(_BIG.copy())


CASES = [
    Case("cache.range", lambda: range_(23).cache(), scalars(range(23))),
    Case("cache.batched", lambda: range_(23).cache().batch(4), lambda: batches(np.arange(23), 4)),
    Case("cache.of_nothing", lambda: range_(0).cache(), []),
    Case(
        "cache.repeated",
        lambda: slices((ARRAYS["matrix"], ARRAYS["small"])).cache().repeat(2).map(lambda x, y: y),
        lambda: list(ARRAYS["small"]) * 2,
    ),
    Case(
        "cache.rows_of_arrays",
        lambda: slices(ARRAYS["matrix"]).cache(),
        lambda: [row.copy() for row in ARRAYS["matrix"]],
    ),
    Case(
        "cache.strings",
        lambda: slices({"t": ["a", "bc", "", "ü", "e"], "b": [b"1", b"", b"22", b"3", b"4"]}).cache().skip(1),
        [{"t": t, "b": b} for t, b in zip(["bc", "", "ü", "e"], [b"", b"22", b"3", b"4"], strict=True)],
    ),
    Case(
        "cache.ragged",
        lambda: range_(9).map(lambda i: np.arange(i)).cache(),
        lambda: [np.arange(i) for i in range(9)],
    ),
    Case(
        "cache.between_functions",
        lambda: range_(40).map(lambda i: i + 1).filter(lambda i: i % 3 != 0).cache().map(lambda i: i * 2).batch(5),
        lambda: batches(i64([i * 2 for i in range(1, 41) if i % 3]), 5),
        unknown_length=True,
    ),
    Case(
        "cache.of_a_generator",
        lambda: Dataset.from_generator(lambda: iter(range(20)), output_signature=fb.TensorSpec((), np.int64)).cache(),
        scalars(range(20)),
        unknown_length=True,
    ),
    Case("cache.two_branches", _shared, _shared_expected, unknown_length=True),
    Case("cache.of_a_cache", lambda: range_(12).cache().map(lambda i: i + 1).cache().take(7), scalars(range(1, 8))),
    Case("cache.endless", lambda: Dataset.counter().cache(), scalars(range(50)), limit=50),
    Case("cache.of_long_bytes", lambda: slices(LONG_BYTES).cache().take(9).cache(_new()), LONG_BYTES[:9]),
    Case("cache.ahead", lambda: range_(400).cache().prefetch(3), scalars(range(400))),
    Case(
        "cache.flat_map_of_cached",
        lambda: range_(4).flat_map(lambda n: range_(n + 1).cache()).cache(),
        scalars([0, 0, 1, 0, 1, 2, 0, 1, 2, 3]),
        unknown_length=True,
    ),
    Case(
        "cache.shuffled_before",
        _frozen(lambda: range_(40).shuffle(seed=3).cache()),
        law=reordered(range(40)),
    ),
    Case(
        "cache.shuffled_before_unseeded",
        _frozen(lambda: range_(40).shuffle(10).cache().repeat(2)),
        law=lambda elements: reordered(range(40))(elements[:40]),
        seeded=False,
    ),
    Case(
        "cache.random_functions_before",
        _frozen(lambda: range_(20).map(lambda i, rng: i + rng.integers(2) * 100, rng=True, seed=5).cache()),
        law=_in_place,
    ),
    Case(
        "cache.shuffled_behind",
        lambda: range_(40).cache().shuffle(8, seed=3),
        law=reordered(range(40)),
        reshuffles=True,
    ),
    Case(
        "cache.tiny_budget",
        lambda: _big().cache().with_options(_TINY),
        lambda: list(_BIG),
    ),
    Case("cache.files", lambda: range_(23).cache(_new()).batch(4), lambda: batches(np.arange(23), 4)),
    Case("cache.files_found_again", lambda: range_(23).map(lambda i: i * 3).cache(_same()), scalars(range(0, 69, 3))),
    Case(
        "cache.files_of_structures",
        lambda: slices({"x": ARRAYS["matrix"], "t": (ARRAYS["small"],)}).filter(lambda d: True).cache(_new()).skip(2),
        lambda: [{"x": x, "t": (y,)} for x, y in zip(ARRAYS["matrix"], ARRAYS["small"], strict=True)][2:],
        unknown_length=True,
    ),
    Case(
        "cache.files_of_strings",
        lambda: slices(["a", "bc", "", "ü"]).map(lambda t: (t, len(t))).cache(_new(), compression="zstd").repeat(2),
        [("a", np.int64(1)), ("bc", np.int64(2)), ("", np.int64(0)), ("ü", np.int64(1))] * 2,
    ),
    Case(
        "cache.files_shuffled_before",
        _frozen(lambda: range_(40).shuffle(9, seed=3).cache(_new(), compression="lz4")),
        law=reordered(range(40)),
    ),
    Case(
        "cache.files_shuffled_before_unseeded",
        _frozen(lambda: range_(40).shuffle(9).cache(_same() + "-unseeded")),
        law=reordered(range(40)),
        seeded=False,
    ),
    Case("cache.files_tiny_budget", lambda: _big().cache(_new()).with_options(_TINY), lambda: list(_BIG)),
]
