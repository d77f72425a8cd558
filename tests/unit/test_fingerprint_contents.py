"""Digests with contents, under which rows are kept from one run to the next: all that a function refers to counts."""

import array
import functools
import random
import tracemalloc
from collections import deque
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.plan.fingerprint import digest


def adding(amount: Any) -> Callable[[Any], Any]:
    return lambda x: x + amount


class Base:
    def scale(self, x: Any) -> Any:
        return x


class One(Base):
    __slots__ = "factor"

    limit = 3

    def __init__(self, factor: int) -> None:
        self.factor = factor

    @staticmethod
    def add(x: Any) -> Any:
        return x + 1

    @property
    def half(self) -> float:
        return self.factor / 2


def changed(**attributes: Any) -> Any:
    """An object like One(1) but for some of its class's attributes."""
    other = type("One", (Base,), {**{k: v for k, v in vars(One).items() if k != "factor"}, **attributes})
    other.__qualname__ = "One"
    return other(1)


class Text(str):
    pass


HOLDING: dict[str, tuple[Any, Any]] = {
    "an attribute": (One(1), One(2)),
    "a class's attribute": (changed(), changed(limit=4)),
    "a static method": (changed(), changed(add=staticmethod(lambda x: x + 2))),
    "a property": (changed(), changed(half=property(lambda self: self.factor / 3))),
    "an inherited method": (changed(), type("One", (changed().__class__,), {"scale": lambda self, x: -x})(1)),
    "a class": (type(changed()), type(changed(limit=4))),
    "a deque": (deque([1]), deque([2])),
    "an array of numbers": (array.array("i", [1]), array.array("i", [2])),
    "a view of bytes": (memoryview(b"a"), memoryview(b"b")),
    "a text of another class": (Text("a"), Text("b")),
    "a mapping that cannot be written to": (MappingProxyType({"a": 1}), MappingProxyType({"a": 2})),
    "nested lists": ([[1], [2]], [[1, [2]]]),
    "nested dicts": ({"a": {"b": 1}, "c": 2}, {"a": {"b": 1, "c": 2}}),
    "a remembered function": (functools.lru_cache(adding(1)), functools.lru_cache(adding(2))),
    "a dataset": (fb.Dataset.range(3).map(adding(1)), fb.Dataset.range(3).map(adding(2))),
}


@pytest.mark.parametrize("what", HOLDING)
def test_what_objects_hold_and_do_counts_with_their_contents(what: str) -> None:
    one, other = HOLDING[what]
    assert digest(one, contents=True) == digest(one, contents=True) != digest(other, contents=True)
    assert digest(adding(one), contents=True) != digest(adding(other), contents=True)


def test_chains_of_any_length_count_to_their_end() -> None:
    def chain(last: int) -> Any:
        link: Any = last
        for _ in range(10_000):
            link = [link]
        return link

    assert digest(chain(1), contents=True) == digest(chain(1), contents=True) != digest(chain(2), contents=True)


def test_what_random_numbers_are_drawn_from_does_not_count() -> None:
    for one, other in ((np.random.default_rng(1), np.random.default_rng(2)), (random.Random(1), random.Random(2))):
        assert digest(one, contents=True) == digest(other, contents=True)


def test_a_seed_that_generators_are_made_of_counts() -> None:
    def made(*arguments: Any, **more: Any) -> str:
        return digest(adding(np.random.SeedSequence(*arguments, **more)), contents=True)

    assert made(1) == made(1)
    assert len({made(1), made(2), made([1, 2]), made(1, spawn_key=(3,)), made(1, pool_size=8), made(), made()}) == 7
    seed = np.random.SeedSequence(1)
    before = digest(seed, contents=True)
    np.random.default_rng(seed).random()
    assert digest(seed, contents=True) == before
    children = seed.spawn(2)
    assert digest(seed, contents=True) == before
    assert digest(children[0], contents=True) != digest(children[1], contents=True)


def test_a_dataset_that_a_function_refers_to_counts_by_its_plan() -> None:
    def function(x: Any) -> Any:
        return inner

    inner = fb.Dataset.range(3).shuffle(2)
    before = digest(function, contents=True)
    list(inner)
    assert digest(function, contents=True) == before
    # A dataset whose function refers to the dataset.
    inner = inner.map(function)
    assert digest(function, contents=True) == digest(function, contents=True) != before


def test_a_large_array_counts_whole() -> None:
    array = np.zeros(3_000_000, np.uint8)
    changed = array.copy()
    # Not where windows are looked at.
    changed[1_234_567] = 1
    assert digest(array, contents=True) != digest(changed, contents=True)


def test_what_counts_whole_is_not_copied() -> None:
    array = np.ones(8_000_000, np.uint8)
    tracemalloc.start()
    try:
        digest(array, contents=True)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
