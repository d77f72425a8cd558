"""Chains that end in an error: everything before it arrives, and then the error, also after a resume."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import forebay as fb
from property import model
from property.build import to_plain
from property.model import Step

# Only steps that hand on every row: one that leaves rows out may leave out the bad one.
HARMLESS = st.one_of(
    st.tuples(st.integers(1, 30)).map(lambda args: Step("take", args)),
    st.tuples(st.integers(0, 3)).map(lambda args: Step("enumerate", args)),
    st.tuples(st.integers(1, 3)).map(lambda args: Step("prefetch", args)),
    st.tuples(st.integers(2, 3)).map(lambda args: Step("repeat", args)),
)


def _run(rows: Any) -> tuple[list[Any], bool]:
    found = []
    for _ in range(100):
        try:
            found.append(to_plain(next(rows)))
        except StopIteration:
            return found, False
        except fb.DataError:
            return found, True
    raise AssertionError("no end")


def _model(rows: Any) -> tuple[list[Any], bool]:
    found: list[Any] = []
    try:
        # extend keeps what came before the error.
        found.extend(itertools.islice(rows, 100))
    except model.ModelError:
        return found, True
    return found, False


@given(
    lengths=st.lists(st.integers(0, 3), max_size=12),
    size=st.integers(1, 3),
    steps=st.lists(HARMLESS, max_size=2),
    options=st.builds(fb.Options, optimize=st.booleans(), block_bytes=st.sampled_from([1, 9, 60, 1 << 20])),
    stop=st.integers(0, 6),
)
def test_batch_of_unequal_shapes(
    lengths: list[int], size: int, steps: list[Step], options: fb.Options, stop: int
) -> None:
    source = [list(range(n)) for n in lengths]

    def build() -> fb.Dataset[Any]:
        dataset = fb.Dataset.from_generator(lambda: iter(map(_array, source))).batch(size)
        for step in steps:
            dataset = getattr(dataset, step.name)(*step.args)
        return dataset.with_options(options)

    expected = _model(model.meaning(source, [Step("batch", (size, False)), *steps], _no_shuffle))
    with iter(build()) as it:
        assert _run(it) == expected
    stop = min(stop, len(expected[0]))
    with iter(build()) as it, iter(build()) as resumed:
        for _ in range(stop):
            next(it)
        resumed.load_state_dict(json.loads(json.dumps(it.state_dict())))
        assert _run(resumed) == (expected[0][stop:], expected[1])


def _array(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def _no_shuffle(depth: int, epoch: int, inputs: list[Any]) -> list[Any]:
    raise AssertionError("there is no shuffle in these chains")
