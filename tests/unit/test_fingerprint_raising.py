"""Objects that raise when they are looked at, and values that Python refuses to write: no run may end by them."""

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.plan.fingerprint import digest


def refusing(*_: Any, **__: Any) -> Any:
    raise RuntimeError("not to be looked at")


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__module__", "__qualname__", "__mro__"):
            raise KeyError(name)
        return type.__getattribute__(cls, name)


class Equal(type):
    """As in languages of queries, where a comparison is an object."""

    def __eq__(cls, other: object) -> bool:
        return True

    __hash__ = type.__hash__


class Overloaded(metaclass=Equal):
    def __init__(self, k: int) -> None:
        self.k = k

    def __repr__(self) -> str:
        return "the same"


class Nested(dict):  # type: ignore[type-arg]
    __iter__ = items = refusing


class Numbers(np.ndarray):  # type: ignore[type-arg]
    reshape = refusing


def odd_attributes() -> Any:
    made = types.SimpleNamespace(a=1)
    vars(made).update({1: 2})
    return made


def made(**attributes: Any) -> Any:
    return type("Refusing", (), {"__module__": __name__, **attributes})()


# By whether it can be known what they are.
REFUSING: dict[str, tuple[Callable[[], Any], bool]] = {
    "the name of its class": (lambda: Meta("Named", (), {})(), False),
    "its text and its comparison": (lambda: made(__repr__=refusing, __eq__=refusing, __hash__=None), True),
    "what it is made of": (lambda: made(__reduce_ex__=refusing), True),
    "its parts": (lambda: made(__reduce_ex__=lambda self, _: (refusing, (), None, 5)), False),
    "what it says of itself": (lambda: made(forebay_fingerprint=refusing), False),
    "any attribute": (lambda: made(__getattr__=refusing), True),
    "really any attribute": (lambda: made(__getattribute__=refusing), False),
    "its class": (lambda: made(__class__=property(refusing)), False),
    "what is in it": (lambda: Nested(a=1), False),
    "its numbers": (lambda: np.zeros(3, object).view(Numbers), False),
}


def resumed(dataset: Any) -> list[int]:
    """With a state on the way, which says what the dataset is."""
    with iter(dataset) as it:
        first = [int(next(it))]
        state = it.state_dict()
    with iter(dataset) as it:
        it.load_state_dict(state)
        return first + [int(x) for x in it]


@pytest.mark.parametrize("what", REFUSING)
@pytest.mark.filterwarnings("ignore:nothing tells whether")
def test_what_refuses_to_be_looked_at_ends_no_run(what: str, tmp_path: Path) -> None:
    make, _ = REFUSING[what]
    value = make()
    for dataset in (
        fb.Dataset.range(3).map(lambda x: (value, x)[1]),
        fb.Dataset.range(3).map(lambda x, value=value: x),
        fb.Dataset.range(3).map(lambda x: ([value], x)[1]),
    ):
        assert resumed(dataset) == [0, 1, 2]
        assert [int(x) for x in dataset.cache(tmp_path / "kept")] == [0, 1, 2]


@pytest.mark.parametrize("what", [what for what, (_, known) in REFUSING.items() if not known])
def test_what_refuses_to_be_looked_at_equals_nothing(what: str) -> None:
    value = REFUSING[what][0]()
    with pytest.warns(UserWarning, match="nothing tells whether"):
        assert digest([value, 1], contents=True) != digest([value, 1], contents=True)
    assert digest([value, 1]) == digest([value, 1])


def test_a_function_that_refuses_to_be_looked_at_is_called_all_the_same(tmp_path: Path) -> None:
    function = made(__getattr__=refusing, __call__=lambda self, x: x + 1)
    dataset = fb.Dataset.range(3).map(function)
    assert resumed(dataset) == [1, 2, 3]
    assert [int(x) for x in dataset.cache(tmp_path / "kept")] == [1, 2, 3]


def test_a_class_that_finds_itself_equal_to_others_is_not_known_by_its_text() -> None:
    assert digest(Overloaded(1), contents=True) == digest(Overloaded(1), contents=True)
    assert digest(Overloaded(1), contents=True) != digest(Overloaded(2), contents=True)


def test_integers_of_any_length_can_be_referred_to_and_given(tmp_path: Path) -> None:
    long = 10**5000
    for dataset in (fb.Dataset.range(3).map(lambda x: int(x) % long), fb.Dataset.range(3).take(long)):
        assert resumed(dataset) == [0, 1, 2]
        assert [int(x) for x in dataset.cache(tmp_path / "kept")] == [0, 1, 2]
        dataset.explain()
    assert digest(long) != digest(long + 1)


def test_sets_that_are_nested_deeper_than_calls_can_be_end_no_run() -> None:
    nested: frozenset[Any] = frozenset()
    for _ in range(3000):
        nested = frozenset([nested])
    with pytest.warns(UserWarning, match="frozenset"):
        digest(nested, contents=True)
    assert digest(nested) == digest(nested)


def test_a_large_array_without_axes_has_a_digest() -> None:
    value = np.zeros((), [("a", "u1", (1 << 20,))])
    for contents in (False, True):
        assert digest(value, contents) == digest(value.copy(), contents)
