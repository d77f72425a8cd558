"""Exact comparison of elements, and the vandalism that a user may commit on them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

import forebay as fb
from conformance.case import Run


def assert_same(actual: Any, expected: Any, where: str = "element") -> None:
    """Same structure, same types, same dtypes, same shapes, same values, bit for bit."""
    assert type(actual) is type(expected), f"{where}: {_show(actual)} where {_show(expected)} was expected"
    if isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype, f"{where}: dtype {actual.dtype}, expected {expected.dtype}"
        assert actual.shape == expected.shape, f"{where}: shape {actual.shape}, expected {expected.shape}"
        if expected.dtype == object:
            for index in np.ndindex(expected.shape):
                assert_same(actual[index], expected[index], f"{where}[{index}]")
        else:
            np.testing.assert_array_equal(actual, expected, err_msg=where)
            assert actual.tobytes() == expected.tobytes(), f"{where}: signs of zero or NaN differ"
    elif isinstance(expected, dict):
        # Which key comes first says nothing about an element.
        assert set(actual) == set(expected), f"{where}: keys {list(actual)}, expected {list(expected)}"
        for key in expected:
            assert_same(actual[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected), f"{where}: {len(actual)} parts, expected {len(expected)}"
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            assert_same(a, e, f"{where}[{i}]")
    elif dataclasses.is_dataclass(expected):
        for field in dataclasses.fields(expected):
            assert_same(getattr(actual, field.name), getattr(expected, field.name), f"{where}.{field.name}")
    elif isinstance(expected, np.generic):
        # By bytes: NaN and NaT are not equal to themselves, and 0.0 is equal to -0.0.
        assert actual.dtype == expected.dtype, f"{where}: dtype {actual.dtype}, expected {expected.dtype}"
        assert actual.tobytes() == expected.tobytes(), f"{where}: {actual!r}, expected {expected!r}"
    else:
        assert actual == expected, f"{where}: {actual!r}, expected {expected!r}"


def assert_same_elements(actual: list[Any], expected: list[Any], what: str = "") -> None:
    for i, (a, e) in enumerate(zip(actual, expected, strict=False)):
        assert_same(a, e, f"{what} element {i}".strip())
    assert len(actual) == len(expected), f"{what}: {len(actual)} elements, expected {len(expected)}"


def assert_same_run(actual: Run, expected: Run, what: str = "") -> None:
    assert_same_elements(actual.elements, expected.elements, what)
    assert actual.end == expected.end, f"{what}: ended by {actual.end}, expected {expected.end}"


def same(a: Any, b: Any) -> bool:
    try:
        assert_same(a, b)
    except AssertionError:
        return False
    return True


def leaves(element: Any) -> Iterator[Any]:
    """The leaves of a structure, in order."""
    if isinstance(element, dict):
        for value in element.values():
            yield from leaves(value)
    elif isinstance(element, tuple):
        for value in element:
            yield from leaves(value)
    elif dataclasses.is_dataclass(element) and not isinstance(element, (type, fb.TensorSpec)):
        for field in dataclasses.fields(element):
            yield from leaves(getattr(element, field.name))
    else:
        yield element


def arrays(element: Any) -> list[np.ndarray]:
    return [leaf for leaf in leaves(element) if isinstance(leaf, np.ndarray)]


def scribble(element: Any) -> None:
    """Overwrite every array of the element and empty its dicts, as a careless user might.

    Arrays are overwritten one by one: one that changes before its turn shares memory with another.
    """
    found = arrays(element)
    for i, array in enumerate(found):
        before = copy.deepcopy(found[i + 1 :])
        _overwrite(array)
        assert_same_elements(found[i + 1 :], before, "after writing into an earlier leaf of the same element:")
    if isinstance(element, dict):
        element.clear()


def _overwrite(array: np.ndarray) -> None:
    if array.dtype == bool:
        np.logical_not(array, out=array)
    elif array.dtype == object:
        array[...] = "scribbled"
    elif array.dtype.kind in "SU":
        array[...] = "!"
    elif array.dtype.kind in "mM":
        array[...] = array.dtype.type("NaT")
    else:
        array[...] = 113


def _show(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__} {value!r}"
