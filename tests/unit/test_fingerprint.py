"""Digests: the same in every process, and different for what is different."""

import datetime
import functools
import operator
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
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
    (operator.methodcaller("f", a=1), operator.methodcaller("f", a=2)),
    (re.compile("a"), re.compile("a", re.IGNORECASE)),
    (adding(Decimal(1)), adding(Decimal(2))),
    (adding(datetime.date(2020, 1, 1)), adding(datetime.date(2020, 1, 2))),
    (Path("a"), Path("b")),
    (slice(1, 2), slice(1, 3)),
    (range(2), range(3)),
]


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
    "a docstring before a try and many constants": (
        f"def f(x):\n    try:\n        g(x, 1000)\n    except ValueError:\n{MANY.replace('return', '    return')}",
        f"def f(x):\n    'One.'\n    try:\n        g(x, 1000)\n    except ValueError:\n"
        f"{MANY.replace('return', '    return')}",
    ),
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


def test_what_a_try_watches_over_counts() -> None:
    inside = "def f(x):\n    try:\n        a(x)\n        b(x)\n    except ValueError:\n        return None"
    outside = "def f(x):\n    a(x)\n    try:\n        b(x)\n    except ValueError:\n        return None"
    for contents in (False, True):
        assert digest(defined(inside), contents) == digest(defined(inside), contents)
        assert digest(defined(inside), contents) != digest(defined(outside), contents)


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


def test_an_object_that_is_called_counts_with_what_the_call_does() -> None:
    def calling(function: Callable[..., Any]) -> Any:
        return type("Calling", (), {"__call__": function, "__module__": __name__})()

    one, other = (lambda self, x: x + 1), (lambda self, x: x + 2)
    assert digest(calling(one)) == digest(calling(one)) != digest(calling(other))
    assert digest(adding(calling(one))) != digest(adding(calling(other)))


@dataclass(frozen=True)
class Tokenizer:
    vocabulary: tuple[str, ...]
    offset: int = 0
    seen: dict[str, int] = field(default_factory=dict)
    last: str = field(default="", compare=False)

    def __call__(self, x: Any) -> Any:
        self.seen[str(x)] = 1
        return x


def test_frozen_dataclasses_count_with_their_fields() -> None:
    tokenizer, same = Tokenizer(("a", "b")), Tokenizer(("a", "b"), last="a")
    assert digest(tokenizer) == digest(same)
    for other in (Tokenizer(("a", "c")), Tokenizer(("a", "b"), 1)):
        assert digest(tokenizer) != digest(other)
        assert digest(adding(tokenizer)) != digest(adding(other))
    # What they refer to may still change.
    tokenizer(1)
    assert digest(tokenizer) == digest(same)


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
