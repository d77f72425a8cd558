"""Digests: the same in every process, and different for what is different."""

import array
import datetime
import functools
import operator
import os
import pickle
import random
import re
import subprocess
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.plan.fingerprint import digest, function_name
from unit.support import python

PROGRAM = """
import functools, re, threading
import numpy as np
from forebay.plan.fingerprint import digest

LIMIT = 3
NAMES = frozenset({"a", "b", "c", "d"})

def helper(x):
    return x in {"x", "y", "z"} or x in NAMES

def function(x, *, scale=(1, 2.5, None, b"x", "é", True)):
    table = {"k": lambda y: y + LIMIT}
    return helper(x), table, [i for i in range(LIMIT)], np.mean(x)

class Reader:
    limits = {"b", "a"}
    lock = threading.Lock()

    def __init__(self):
        self.pattern = re.compile("a")
        self.rng = np.random.default_rng()

    def read(self, x):
        return self.pattern

values = [
    function, helper, Reader().read, Reader, np.mean, len, functools.partial(function, 1, scale=2),
    NAMES, (1, "a", b"b", 2.5, None, 1j), np.arange(10.0), np.arange(200_000).reshape(-1, 2), np.dtype("f4"),
    np.int8(3), np.array(["a", None, 3], object), np.zeros(3, [("a", "i4"), ("b", "f8")]),
]
contents = [lambda: Reader, Reader(), {"x": [Reader().read]}]
"""


def test_digests_are_the_same_in_every_process() -> None:
    code = PROGRAM + "print([digest(value) for value in values] + [digest(value, True) for value in contents])"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(found) == 1
    assert len(set(eval(found.pop()))) == 18


def test_digests_do_not_depend_on_what_was_digested_before() -> None:
    code = PROGRAM + (
        "first = [digest(value) for value in values]\n"
        "keep = [tuple(range(n)) for n in range(1000)]\n"
        "print(first == [digest(value) for value in values], first == [digest(v) for v in reversed(values)][::-1])"
    )
    assert python(code) == "True True\n"


def objects(*values: Any) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def adding(amount: Any) -> Callable[[Any], Any]:
    return lambda x: x + amount


DIFFERENT: list[tuple[Any, Any]] = [
    (1, 2),
    (1, True),
    (1, 1.0),
    (0.0, -0.0),
    ("1", 1),
    ("a", b"a"),
    ((1, 2), (2, 1)),
    ((1, (2,)), (1, 2)),
    (((), ()), ((),)),
    (frozenset({1, 2}), frozenset({1, 3})),
    (np.zeros(3), np.ones(3)),
    (np.zeros(3), np.zeros((3, 1))),
    (np.zeros(3), np.zeros(3, np.float32)),
    (np.int8(1), np.int16(1)),
    ((np.zeros((2, 3)), np.zeros((3, 2))), (np.zeros((2, 3)), np.zeros((2, 3)))),
    ((objects(1, 2), objects(3, 4)), (objects(1, 2), objects(3, 5))),
    (lambda x: x + 1, lambda x: x + 2),
    (lambda x: x + 1, lambda x: x - 1),
    (lambda x: x.real, lambda x: x.imag),
    (lambda x: abs(x), lambda x: bool(x)),
    (lambda x: [y + 1 for y in x], lambda x: [y + 2 for y in x]),
    (lambda x, y=1: x, lambda x, y=2: x),
    (lambda x, *, y=1: x, lambda x, *, y=2: x),
    (lambda x, *, y=1: x, lambda x, *, z=1: x),
    (lambda x, y: x - y, lambda y, x: x - y),
    (lambda x: x, lambda *x: x),
    (lambda x, /: x, lambda x, *, y: x),
    (lambda x: max(x, key=abs), lambda x: max(x, default=abs)),
    (lambda x: "one" if x else "two", lambda x: "two" if x else "one"),
    (adding(1), adding(2)),
    (adding(adding(1)), adding(adding(2))),
    (functools.partial(max, 1), functools.partial(max, 2)),
    (functools.partial(max, key=abs), functools.partial(max, key=len)),
    (functools.partial(max), functools.partial(min)),
    (len, abs),
    (int, float),
    ("a".upper, "a".lower),
    (((1,), 2), ((1, 2),)),
    ("a".join, "b".join),
    (re.compile("a").sub, re.compile("b").sub),
    (operator.itemgetter("a"), operator.itemgetter("b")),
    (re.compile("a"), re.compile("a", re.IGNORECASE)),
    (adding(Decimal(1)), adding(Decimal(2))),
    (adding(datetime.date(2020, 1, 1)), adding(datetime.date(2020, 1, 2))),
    (Path("a"), Path("b")),
    (slice(1, 2), slice(1, 3)),
    (range(2), range(3)),
]


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


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=[str(i) for i in range(len(DIFFERENT))])
def test_different_things_have_different_digests(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


def test_equal_things_have_equal_digests() -> None:
    for make in (
        lambda: (1, "a", (2.5, None)),
        lambda: np.arange(12).reshape(3, 4),
        lambda: np.arange(24).reshape(6, 4)[::2],
        lambda: adding((1, np.int64(2))),
        lambda: functools.partial(max, 1, key=abs),
        lambda: frozenset(["x", "y", "z"]),
        lambda: objects("a", None, 3),
    ):
        assert digest(make()) == digest(make())
    # Only the numbers count, not how they lie in memory.
    assert digest(np.arange(6).reshape(2, 3)) == digest(np.asfortranarray(np.arange(6).reshape(2, 3)))


def defined(source: str, name: str = "f") -> Any:
    """A function from its source, with `np` and a `LIMIT` at hand."""
    scope: dict[str, Any] = {"np": np, "LIMIT": 3}
    exec(source, scope)
    return scope[name]


MANY = "    return [" + ", ".join(f"x + {i}" for i in range(1000, 1300)) + "]"

SAME = {
    "an edited docstring": ('def f(x):\n    "One."\n    return x + 1', 'def f(x):\n    "Another."\n    return x + 1'),
    "a new docstring": ("def f(x):\n    y = x + 1", 'def f(x):\n    "One."\n    y = x + 1'),
    "a docstring before many constants": (f"def f(x):\n{MANY}", f'def f(x):\n    "One."\n{MANY}'),
    "a docstring inside": (
        "def f(x):\n    def g(y):\n        return y + LIMIT, 'a'\n    return g(x)",
        "def f(x):\n    def g(y):\n        'Two.'\n        return y + LIMIT, 'a'\n    return g(x)",
    ),
    "a renamed argument": ("f = lambda x: np.abs(x) + 1", "f = lambda row: np.abs(row) + 1"),
    "renamed variables": (
        "def f(x):\n    a = [i * LIMIT for i in x]\n    return a, lambda: a",
        "def f(x):\n    b = [j * LIMIT for j in x]\n    return b, lambda: b",
    ),
    "moved into a function": ("f = lambda x: x + LIMIT", "def make():\n    return lambda x: x + LIMIT\nf = make()"),
    "moved down": ("f = lambda x: x + 1", "\n\n\nf = lambda x: x + 1"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_what_does_not_change_what_a_function_does_does_not_count(one: str, other: str) -> None:
    assert digest(defined(one)) == digest(defined(other))


def test_a_text_that_is_used_is_no_docstring() -> None:
    assert digest(defined("def f(x):\n    return 'a'")) != digest(defined("def f(x):\n    return 'b'"))
    assert digest(defined("f = lambda: 'a'")) != digest(defined("f = lambda: 'b'"))
    assert digest(defined("f = lambda x: ['a' for _ in x]")) != digest(defined("f = lambda x: ['b' for _ in x]"))
    assert digest(defined(f"def f(x):\n{MANY}")) != digest(defined(f"def f(x):\n{MANY.replace('1299', '1298')}"))


def test_a_function_that_calls_itself_has_a_digest() -> None:
    def countdown(n: int) -> int:
        return 0 if n == 0 else countdown(n - 1)

    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    assert len({digest(countdown), digest(even), digest(odd)}) == 3


def test_large_arrays_are_sampled_from_end_to_end() -> None:
    array = np.zeros((1 << 18, 4), np.float32)
    whole = digest(array)
    for row in (0, len(array) - 1):
        array[row, 2] = 1
        assert digest(array) != whole
        array[row, 2] = 0
    assert digest(array) == whole


def test_what_changes_while_a_program_runs_counts_by_its_form() -> None:
    values: list[int] = []
    table = {"a": 1}

    class Counter:
        count = 0

        def __call__(self, x: Any) -> Any:
            self.count += 1
            return x

    scratch = np.zeros(3)
    counter = Counter()
    for function in (lambda x: values, lambda x: table, lambda x: scratch, counter, counter.__call__):
        before = digest(function)
        values.append(1)
        table["b"] = 2
        scratch[:] = len(values)
        counter.count += 1
        assert digest(function) == before


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (len, "len"),
        (adding, "adding"),
        (adding(1), "<lambda>"),
        (functools.partial(adding, 1), "partial(adding)"),
        ("a".upper, "str.upper"),
        (np.mean, "mean"),
        (int, "int"),
    ],
)
def test_names_of_functions(function: Any, name: str) -> None:
    assert function_name(function) == name


def test_a_large_array_counts_whole_and_a_mapped_one_by_samples_and_its_files_time(tmp_path: Path) -> None:
    array = np.zeros(3_000_000, np.uint8)
    changed = array.copy()
    # Not where windows are looked at.
    changed[1_234_567] = 1
    assert digest(array, contents=True) != digest(changed, contents=True)
    digests, path = [], tmp_path / "a.npy"
    for each, time in ((array, 1), (changed, 1), (changed, 2)):
        np.save(path, each)
        os.utime(path, ns=(time, time))
        mapped = np.load(path, mmap_mode="r")
        # Through a view that no longer says so: datasets hold such.
        digests.append(digest(mapped.view(np.ndarray)[1:], contents=True))
    assert digests[0] == digests[1] != digests[2]


def test_what_counts_whole_is_not_copied() -> None:
    array = np.ones(8_000_000, np.uint8)
    tracemalloc.start()
    try:
        digest(array, contents=True)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


PARSER = {"x": fb.io.FixedLenFeature([2], np.int64), "y": fb.io.VarLenFeature(bytes)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (fb.image.DecodeAndResize((8, 8)), fb.image.DecodeAndResize((8, 9))),
        (fb.image.DecodeAndResize((8, 8)), fb.image.DecodeAndResize((8, 8), dtype=np.float32)),
        (fb.io.ExampleParser(PARSER), fb.io.ExampleParser(PARSER | {"x": fb.io.FixedLenFeature([3], np.int64)})),
        (fb.io.ExampleParser(PARSER), fb.io.ExampleParser({"x": PARSER["x"]})),
        (fb.io.ExampleParser(PARSER), fb.io.ExampleParser({"x": PARSER["x"], "y": fb.io.RaggedFeature(bytes)})),
    ],
)
def test_settings_of_our_own_functions_count(one: Any, other: Any) -> None:
    again = pickle.loads(pickle.dumps(one))
    for contents in (False, True):
        assert digest(one, contents) == digest(again, contents) != digest(other, contents)
    dataset, changed = (fb.Dataset.from_tensor_slices([b""]).map(function) for function in (one, other))
    with iter(dataset) as it, iter(changed) as elsewhere, pytest.raises(fb.CursorError, match="has changed"):
        elsewhere.load_state_dict(it.state_dict())
