"""A cache behind what is random warns of it, where all epochs would be the same."""

from typing import Any

import numpy as np
import pytest

from forebay import Dataset
from unit.support import plain


def test_random_steps_are_frozen_at_the_first_epoch_with_a_warning() -> None:
    def build() -> Dataset[Any]:
        return Dataset.range(30).map(lambda x, rng: rng.random(), rng=True, seed=1)

    first = list(build())
    with pytest.warns(
        UserWarning, match=r"cache at test_cache_warnings.py:\d+ keeps what map at test_cache_warnings.py:\d+ draws"
    ) as seen:
        dataset = build().cache()
    assert [each.filename for each in seen] == [__file__]
    assert list(dataset) == first
    assert list(dataset) == first
    with pytest.warns(UserWarning, match="random"):
        Dataset.random(rerandomize_each_iteration=True).cache()
    # Nothing to warn of: no other order in the next epoch, or a cache between.
    kept = Dataset.range(3).shuffle(2, reshuffle_each_iteration=False).cache()
    kept.cache().shuffle(2)


def test_an_order_that_is_kept_is_warned_of_when_it_comes_again() -> None:
    dataset = Dataset.range(30).shuffle(seed=1).map(lambda x: x).cache()
    first = list(dataset.batch(3))  # One look at it is no harm.
    with pytest.warns(
        UserWarning, match=r"cache at test_cache_warnings.py:\d+ keeps what shuffle at test_cache_warnings.py"
    ) as seen:
        both = plain(list(dataset.repeat(2)))
    assert both[:30] == both[30:] == np.concatenate(first).tolist()
    assert [(each.filename, "all epochs" in str(each.message)) for each in seen] == [(__file__, True)]
    # Once is enough.
    list(dataset.repeat(2))
    other = Dataset.range(3).shuffle(2).cache()
    list(other)
    with pytest.warns(UserWarning, match="keeps what shuffle"):
        list(other)


def test_an_order_that_is_kept_does_no_harm_before_another_shuffle() -> None:
    dataset = Dataset.range(30).shuffle().map(lambda x: x).cache().shuffle(10).batch(3).repeat(3)
    epochs = np.concatenate(list(dataset)).reshape(3, 30).tolist()
    assert epochs[0] != epochs[1] != epochs[2]
    list(dataset)
    with pytest.warns(UserWarning, match="keeps what shuffle"):
        list(Dataset.range(30).shuffle().cache().shuffle(10, reshuffle_each_iteration=False).repeat(2))
    # What is drawn for elements is the same in all epochs, in whatever order they come.
    with pytest.warns(UserWarning, match="keeps what map"):
        Dataset.range(30).shuffle().map(lambda x, rng: rng.random(), rng=True).cache().shuffle()
