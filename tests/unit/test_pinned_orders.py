"""What a seed produces is a promise. These literals change only by a decision that is written in the changelog."""

from __future__ import annotations

import numpy as np
import pytest

import forebay as fb

D = fb.Dataset

WORDS = [11468578158249900731, 14041598941150489755, 6498898445430309061]
BUFFERED = [0, 3, 1, 4, 6, 5, 2, 11, 9, 13, 8, 14, 10, 12, 18, 7, 16, 15, 17, 19]


@pytest.mark.parametrize("optimize", [True, False])
def test_buffered_shuffle(optimize: bool) -> None:
    options = fb.Options(optimize=optimize)
    assert list(D.range(20).shuffle(5, seed=7).with_options(options)) == BUFFERED
    streamed = D.range(20).filter(lambda x: True).shuffle(5, seed=7)
    assert list(streamed.with_options(options)) == BUFFERED


def test_whole_shuffle_epoch_by_epoch() -> None:
    ds = D.range(12).shuffle(seed=7)
    assert list(ds) == [0, 5, 2, 6, 7, 1, 8, 9, 4, 11, 10, 3]
    assert list(ds) == [1, 5, 9, 10, 6, 11, 7, 2, 8, 0, 3, 4]


def test_whole_shuffle_of_many_rows() -> None:
    first = D.range(100_000).shuffle(seed=7).take(10)
    assert list(first) == [22660, 83833, 97073, 71802, 32179, 3662, 64413, 98955, 8340, 85465]


def test_rounds_of_repeat_are_epochs() -> None:
    ds = D.range(6).shuffle(3, seed=7)
    rounds = list(ds.repeat(2))
    assert rounds == [0, 1, 3, 2, 4, 5, 1, 0, 3, 5, 2, 4]
    assert rounds == [*ds, *ds]


def test_random() -> None:
    assert list(D.random(seed=7).take(4)) == [1372834128, 2006424467, 2486896709, 3399872856]


def test_random_numbers_of_map() -> None:
    # Raw words of the bit generator: what Generator's methods make of them is NumPy's to change.
    def word(x: np.int64, rng: np.random.Generator) -> np.uint64:
        return np.uint64(rng.bit_generator.random_raw())

    assert list(D.range(3).map(word, rng=True, seed=7)) == WORDS
