"""Structures of elements: taken apart, put together, named, compared."""

import collections
from collections import OrderedDict, defaultdict
from dataclasses import InitVar, dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.block import LEAF, Structure, TensorSpec, flatten
from unit.support import assert_same, fixed


class Point(NamedTuple):
    x: Any
    y: Any = 0


Untyped = collections.namedtuple("Untyped", "first second")


@dataclass
class Open:
    a: Any
    b: Any


@dataclass(frozen=True)
class Frozen:
    a: Any
    total: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", "set")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    left: Any
    right: Any


@dataclass
class Derived(Open):
    c: Any = None


made = 0


@dataclass
class Counting:
    value: Any
    scale: InitVar[int] = 1

    def __post_init__(self, scale: int) -> None:
        global made
        made += 1


def frozen(a: Any, total: Any) -> Frozen:
    element = Frozen(a)
    object.__setattr__(element, "total", total)
    return element


leaf = st.integers(-5, 5) | st.text(max_size=2) | st.none() | st.just(np.float32(1.5)) | st.lists(st.integers())


def nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(0, 3), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Untyped, inner, inner)
        | st.builds(Open, inner, inner)
        | st.builds(frozen, inner, inner)
        | st.builds(Slotted, left=inner, right=inner)
        | st.builds(Derived, inner, inner, inner)
    )


elements = st.recursive(leaf, nest, max_leaves=8)


@fixed
@given(elements)
def test_an_element_comes_back_as_it_was(element: Any) -> None:
    leaves, structure = flatten(element)
    assert structure.size == len(leaves)
    assert_same(structure.unflatten(leaves), element)
    assert_same(structure.builder()(leaves), element)
    assert_same(structure.leaves_of(element), leaves)


@fixed
@given(elements)
def test_rows_are_elements(element: Any) -> None:
    leaves, structure = flatten(element)
    rows = list(structure.rows([[value, value, value] for value in leaves], 3))
    assert_same(rows, [element] * 3)


@fixed
@given(elements)
def test_every_leaf_has_a_path_of_its_own(element: Any) -> None:
    leaves, structure = flatten(element)
    paths = list(structure.paths())
    assert len(paths) == len(set(paths)) == len(leaves)
    for path, value in zip(paths, leaves):
        # A path is written as Python would reach the leaf.
        assert_same(eval(f"element{path}", {"element": element}), value)


@fixed
@given(elements, elements)
def test_equal_structures_are_equal(one: Any, other: Any) -> None:
    first, second = flatten(one)[1], flatten(other)[1]
    assert flatten(one)[1] == first
    assert hash(flatten(one)[1]) == hash(first)
    if first == second:
        assert str(first) == str(second)
        assert second.leaves_of(one) is not None
    elif not _same_but_for_order(first, second):
        assert second.leaves_of(one) is None


def _same_but_for_order(one: Structure, other: Structure) -> bool:
    if one.kind != other.kind or sorted(map(repr, one.keys)) != sorted(map(repr, other.keys)):
        return False
    if len(one.children) != len(other.children):
        return False
    theirs = dict(zip(other.keys or range(len(other.children)), other.children))
    mine = zip(one.keys or range(len(one.children)), one.children)
    return all(_same_but_for_order(child, theirs[key]) for key, child in mine)


def test_paths() -> None:
    element = {"image": (1, Point(2, {"deep": 3})), 7: Open(4, 5)}
    assert list(flatten(element)[1].paths()) == [
        "['image'][0]",
        "['image'][1].x",
        "['image'][1].y['deep']",
        "[7].a",
        "[7].b",
    ]
    assert list(LEAF.paths()) == [""]


def test_structures_as_text() -> None:
    element = {"image": (1,), "point": Point(2, (3, 4)), "none": ()}
    assert str(flatten(element)[1]) == "{'image': (*,), 'point': Point(x=*, y=(*, *)), 'none': ()}"
    assert str(LEAF) == "*"


def test_dicts_keep_their_order_and_take_any() -> None:
    leaves, structure = flatten({"b": 1, "a": 2})
    assert leaves == [1, 2]
    assert list(structure.unflatten([1, 2])) == ["b", "a"]
    assert structure.leaves_of({"a": 20, "b": 10}) == [10, 20]


@pytest.mark.parametrize(
    "mapping", [OrderedDict(a=1, b=2), defaultdict(int, a=1, b=2), MappingProxyType({"a": 1, "b": 2})]
)
def test_any_mapping_comes_back_as_a_dict(mapping: Any) -> None:
    leaves, structure = flatten(mapping)
    assert_same(structure.unflatten(leaves), {"a": 1, "b": 2})
    assert structure.leaves_of({"a": 3, "b": 4}) == [3, 4]


@pytest.mark.parametrize(
    "other",
    [
        {"a": 1},
        {"a": 1, "c": 2},
        {"a": 1, "b": 2, "c": 3},
        {"a": 1, "b": (2,)},
        (1, 2),
        Point(1, 2),
        5,
        None,
    ],
)
def test_an_element_of_another_structure_has_no_leaves(other: Any) -> None:
    assert flatten({"a": 1, "b": 2})[1].leaves_of(other) is None


def test_classes_with_the_same_fields_are_not_the_same() -> None:
    assert flatten(Point(1, 2))[1] != flatten((1, 2))[1]
    assert flatten(Point(1, 2))[1].leaves_of((1, 2)) is None
    assert flatten((1, 2))[1].leaves_of(Point(1, 2)) is None
    assert flatten(Open(1, 2))[1].leaves_of(Derived(1, 2, 3)) is None


def test_a_dataclass_is_put_together_without_its_constructor() -> None:
    element = Counting(1)
    before = made
    leaves, structure = flatten(element)
    rebuilt = structure.unflatten([5])
    assert leaves == [1]
    assert rebuilt.value == 5
    assert made == before


def test_fields_that_the_constructor_does_not_take_are_leaves_too() -> None:
    leaves, structure = flatten(Frozen(1))
    assert leaves == [1, "set"]
    rebuilt = structure.unflatten([2, "other"])
    assert (rebuilt.a, rebuilt.total) == (2, "other")


def test_lists_and_arrays_and_classes_are_leaves() -> None:
    for value in ([1, 2], np.zeros(2), "text", b"bytes", {1, 2}, object(), Point, Open, dict):
        assert flatten(value) == ([value], LEAF)


def test_only_plain_tuples_are_unpacked() -> None:
    assert flatten((1, 2))[1].is_tuple
    for element in (Point(1, 2), Untyped(1, 2), {"a": 1}, Open(1, 2), 5):
        assert not flatten(element)[1].is_tuple


def test_leaf_types_are_not_looked_into() -> None:
    spec = TensorSpec((2,), np.int64)
    assert flatten({"a": spec}, (TensorSpec,))[0] == [spec]
    # A TensorSpec is a dataclass and would be taken apart otherwise.
    assert len(flatten({"a": spec})[0]) == 2


def test_nesting_puts_structures_in_place_of_leaves() -> None:
    outer = flatten({"a": 0, "b": (0,)})[1]
    nested = outer.nest([flatten((1, 2))[1], flatten(Point(3, 4))[1]])
    assert_same(nested.unflatten([1, 2, 3, 4]), {"a": (1, 2), "b": (Point(3, 4),)})


def test_a_tuple_may_pass_for_an_array_where_that_is_asked_for() -> None:
    structure = flatten({"a": 0})[1]
    assert structure.leaves_of({"a": (1, 2)}) is None
    assert structure.leaves_of({"a": (1, 2)}, tuples_too=True) == [(1, 2)]
    assert structure.leaves_of({"a": {"b": 1}}, tuples_too=True) is None
