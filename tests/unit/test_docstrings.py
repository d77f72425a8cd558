"""The examples of Dataset's methods, which pytest does not find: they say that they are of another module."""

import doctest
import inspect
from typing import Any

import numpy as np
import pytest

import forebay as fb

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
NAMES = {"AUTOTUNE": fb.AUTOTUNE, "Dataset": fb.Dataset, "Options": fb.Options, "np": np}
METHODS = [
    name for name in dir(fb.Dataset) if not name.startswith("_") and ">>>" in (getattr(fb.Dataset, name).__doc__ or "")
]


def test_there_are_examples() -> None:
    assert {"map", "batch", "from_parquet", "from_csv", "save"} <= set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_examples_give_what_they_say(name: str) -> None:
    member: Any = inspect.unwrap(getattr(fb.Dataset, name))
    found = doctest.DocTestFinder(recurse=False).find(member, name, globs=dict(NAMES))
    assert [test.name for test in found] == [name]
    said: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(found[0], out=said.append)
    assert not said, "".join(said)
