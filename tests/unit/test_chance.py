"""Functions that draw random numbers by themselves are known by a look at them."""

import random
from collections.abc import Callable
from functools import partial
from random import gauss
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.plan.chance import draws

Dataset = fb.Dataset
GENERATOR = np.random.default_rng(1)


class Augment:
    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def __call__(self, x: Any) -> Any:
        return x + self.generator.random()

    def scaled(self, x: Any) -> Any:
        return self(x) * self.generator.random()


def flipped(x: Any) -> Any:
    return x if GENERATOR.random() < 0.5 else -x


def halved(x: Any) -> Any:
    return halved(x // 2) if x else x


def captured(value: Any) -> Callable[[Any], Any]:
    return lambda x: x + value.random()


DRAWING: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x + np.random.rand(),  # noqa: NPY002
    "random": lambda x: x + random.random(),
    "a function of random": lambda x: x + gauss(0, 1),
    "a generator": captured(GENERATOR),
    "a global generator": flipped,
    "another function": lambda x: flipped(x) + 1,
    "inside": lambda x: [np.random.rand() for _ in range(3)],  # noqa: NPY002
    "partial": partial(lambda generator, x: x + generator.random(), GENERATOR),
    "an object": Augment(GENERATOR),
    "a method": Augment(random.Random(1)).scaled,
}
PLAIN: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: np.sqrt(x),
    "an attribute of another": lambda x: captured(3) and x,
    "seeded by the element": lambda x: np.random.default_rng(int(x)).random(),
    "recursive": halved,
    "built in": abs,
    "an object without": Augment(None),
}


@pytest.mark.parametrize("name", DRAWING)
def test_drawing_is_seen_and_a_cache_warns_of_it_once(name: str) -> None:
    assert draws(DRAWING[name])
    with pytest.warns(
        UserWarning, match=r"cache at test_chance.py:\d+ keeps what map at test_chance.py:\d+ draws"
    ) as seen:
        dataset = Dataset.range(5).map(DRAWING[name]).cache()
    assert [each.filename for each in seen] == [__file__]
    assert str(list(dataset)) == str(list(dataset))


@pytest.mark.parametrize("name", PLAIN)
def test_others_are_left_alone(name: str) -> None:
    assert not draws(PLAIN[name])


def test_random_numbers_behind_a_cache_are_no_concern() -> None:
    list(Dataset.range(5).cache().map(DRAWING["numpy"]))


def test_a_cell_that_is_not_filled_yet_is_no_concern() -> None:
    def early(x: Any) -> Any:
        return later(x)

    assert not draws(early)

    def later(x: Any) -> Any:
        return x + random.random()

    assert draws(early)
