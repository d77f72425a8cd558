"""``concatenate`` of datasets whose kinds only calling a function tells."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import forebay as fb
from faults.support import take_until_error
from forebay import Dataset

OTHERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "structure": (lambda x: {"a": x}, r"has the structure \{'a': \*\}, earlier \*"),
    "dtype": (float, "is float64, earlier int64"),
    "text": (str, "is str, earlier int64"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_elements_are_an_error_and_those_before_come_first(kind: str) -> None:
    function, text = OTHERS[kind]
    found, error = take_until_error(Dataset.range(5).concatenate(Dataset.range(5).map(function)))
    assert found == [0, 1, 2, 3, 4]
    assert isinstance(error, fb.errors.DataError)
    assert re.search(f"concatenate at .*, dataset 2 of those put together: .*{text}", str(error))


@pytest.mark.parametrize("kind", OTHERS)
def test_in_any_order(kind: str) -> None:
    mixed = Dataset.range(5).concatenate(Dataset.range(5).map(OTHERS[kind][0])).shuffle(seed=1)
    with pytest.raises(fb.errors.DataError, match=r"dataset [12] of those put together"):
        list(mixed)


def test_keys_in_another_order_are_the_same_keys() -> None:
    ahead = Dataset.range(2).map(lambda x: {"a": x, "b": x})
    behind = Dataset.range(2).map(lambda x: {"b": x, "a": x})
    for dataset in (ahead.concatenate(behind), ahead.concatenate(behind).shuffle(seed=1)):
        assert sorted(element["a"] for element in dataset) == [0, 0, 1, 1]


def test_missing_values_fit_everything() -> None:
    missing = Dataset.range(1).map(lambda x: {"a": None})
    there = Dataset.range(1).map(lambda x: {"a": x})
    assert list(missing.concatenate(there)) == [{"a": None}, {"a": 0}]
    assert list(there.concatenate(missing)) == [{"a": 0}, {"a": None}]
