"""Digests with contents of objects whose difference is easily overlooked: attributes, classes and what wraps others."""

import asyncio
import collections
import concurrent.futures
import contextvars
import enum
import functools
import json
import multiprocessing.pool
import multiprocessing.shared_memory
import operator
import os
import queue
import sqlite3
import subprocess
import sys
import threading
import types
import typing
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.plan.fingerprint import digest

KEPT: list[Any] = []
BLOCKS: list[Any] = []


class Plain:
    def __init__(self, k: Any) -> None:
        self.k = k


class WithArray(Plain):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros(3)


class NotPickled:
    __slots__ = ("__k",)

    def __init__(self, k: Any) -> None:
        self.__k = k

    def __reduce__(self) -> Any:
        raise TypeError


class Around:
    """A decorator that is neither a function nor of a library."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def either(k: int) -> Callable[..., Any]:
    return (lambda *_: 1) if k == 1 else (lambda *_: 2)


def with_attribute(value: Any, k: int) -> Any:
    value.k = k
    return value


def derived(*bases: type, **attributes: Any) -> Any:
    return types.new_class("Derived", bases, exec_body=lambda body: body.update(__module__=__name__, **attributes))


def array(k: int) -> Any:
    return with_attribute(np.arange(3).view(derived(np.ndarray)), k)


def named(k: int) -> Any:
    class Pair(typing.NamedTuple):
        a: int

        def method(self) -> Any:
            return 0

    Pair.method = either(k)
    return Pair(1)


def member(k: int) -> Any:
    class Choice(enum.Enum):
        A = 1

        def method(self) -> Any:
            return 0

    Choice.method = either(k)
    return Choice.A


def circle(k: int) -> Any:
    value = Plain(k)
    return with_attribute(value, {value, Plain(k), 3})


def kept(value: Any) -> Any:
    KEPT.append(value)
    return value


def local(k: int) -> Any:
    return with_attribute(threading.local(), k)


def done(k: int) -> Any:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    future.set_result(k)
    return future


def raised(k: int) -> Any:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    future.set_exception(ValueError(k))
    return future


def asynchronous(k: int) -> Any:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    future.set_result(k)
    loop.close()
    return future


def applied(k: int) -> Any:
    with multiprocessing.pool.ThreadPool(1) as pool:
        result = pool.apply_async(abs, (k,))
        result.wait()
    return result


def shared(k: int) -> Any:
    """The same block of memory each time, as one that is found by its name."""
    if not BLOCKS:
        BLOCKS.append(multiprocessing.shared_memory.SharedMemory(create=True, size=8))
        BLOCKS[0].unlink()
    BLOCKS[0].buf[0] = k
    return BLOCKS[0]


def queue_of(k: int) -> Any:
    made: queue.SimpleQueue[int] = queue.SimpleQueue()
    made.put(k)
    return made


def asynchronous_queue(k: int) -> Any:
    made: asyncio.Queue[int] = asyncio.Queue()
    made.put_nowait(k)
    return made


# Each makes an object of a number, equal to another one of the same number and of no other.
MAKING: dict[str, Callable[[int], Any]] = {
    "a function's attribute": lambda k: with_attribute(lambda x: x, k),
    "a partial's attribute": lambda k: with_attribute(functools.partial(max), k),
    "a default factory": lambda k: collections.defaultdict(int if k == 1 else float, {1: 2}),
    "an array's attribute": array,
    "a named tuple's method": named,
    "an enum's method": member,
    "an enum's class": lambda k: type(member(k)),
    "an enum's other member": lambda k: enum.Enum("Choice", {"A": 1, "B": k}, module=__name__)["A"],
    "a remembered __call__": lambda k: derived(__call__=functools.lru_cache(either(k)))(),
    "a wrapped __call__": lambda k: derived(__call__=Around(either(k)))(),
    "a metaclass": lambda k: derived(type, method=either(k))("Made", (), {}),
    "a class that pickle calls": lambda k: derived(__reduce__=lambda self: (type(self), ()), method=either(k))(),
    "a universal function": lambda k: np.frompyfunc(either(k), 1, 1),
    "a mask": lambda k: np.ma.array([1, 2, 3], mask=[k == 1, False, False]),
    "a fill value": lambda k: np.ma.array([1, 2, 3], mask=[True, False, False], fill_value=k),
    "what is beside an array": WithArray,
    "a property": lambda k: property(either(k)),
    "a static method": lambda k: staticmethod(either(k)),
    "a class method": lambda k: classmethod(either(k)),
    "a weak reference": lambda k: weakref.ref(kept(Plain(k))),
    "weak values": lambda k: weakref.WeakValueDictionary({k: kept(Plain(1))}),
    "a proxy": lambda k: weakref.proxy(kept(Plain(k))),
    "a weak set": lambda k: weakref.WeakSet([kept(Plain(k)), kept(Plain(7)), kept(Plain(8))]),
    "a variable's default": lambda k: contextvars.ContextVar("v", default=k),
    "a view's format": lambda k: memoryview(bytes(8)).cast("iI"[k - 1]),
    "keys": lambda k: {k: 1}.keys(),
    "keywords of a methodcaller": lambda k: operator.methodcaller("f", a=k),
    "a private slot that is not pickled": NotPickled,
    "a set of objects": lambda k: {Plain(k), Plain(7), Plain(8)},
    "a set that it is in": circle,
}
for _kind, _arguments in (
    *((dict, ({1: 2},)), (list, ([1],)), (set, ([1, "a"],)), (tuple, ([1],)), (frozenset, ([1, "a"],))),
    *((str, ("a",)), (collections.OrderedDict, ()), (collections.deque, ())),
):
    MAKING[f"a {_kind.__name__}'s attribute"] = functools.partial(
        lambda kind, arguments, k: with_attribute(derived(kind)(*arguments), k), _kind, _arguments
    )
    MAKING[f"a {_kind.__name__}'s method"] = functools.partial(
        lambda kind, arguments, k: derived(kind, method=either(k))(*arguments), _kind, _arguments
    )


@pytest.mark.parametrize("what", MAKING)
def test_what_is_easily_overlooked_counts(what: str) -> None:
    make = MAKING[what]
    assert digest(make(1), contents=True) == digest(make(1), contents=True) != digest(make(2), contents=True)


def test_keys_are_the_same_in_every_process() -> None:
    code = (
        "import json; from forebay.plan.fingerprint import digest; from unit.test_fingerprint_objects import MAKING\n"
        "print(json.dumps({what: digest(make(1), True) for what, make in MAKING.items()}))"
    )
    here = Path(__file__).parent.parent
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(here)},
                capture_output=True,
                text=True,
                check=True,
                timeout=300,
            ).stdout
        )
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]
    assert len(found[0]) == len(MAKING)


def test_values_that_are_handed_over_count() -> None:
    for make in (local, done, asynchronous, raised, applied, shared):
        assert digest(make(1), contents=True) == digest(make(1), contents=True) != digest(make(2), contents=True)


@pytest.mark.parametrize("make", [concurrent.futures.Future, lambda: queue_of(1), lambda: asynchronous_queue(1)])
def test_values_that_are_still_to_come_equal_nothing(make: Any) -> None:
    value = make()
    with pytest.warns(UserWarning, match="Future|Queue"):
        assert digest(value, contents=True) != digest(value, contents=True)


def test_a_function_that_chooses_by_type_stays_what_it_is_as_it_is_called() -> None:
    def choosing(k: int) -> Any:
        chooses = functools.singledispatch(either(1))
        chooses.register(int, either(k))
        return chooses

    chooses = choosing(1)
    before = digest(chooses, contents=True)
    chooses(1), chooses("a")
    assert digest(chooses, contents=True) == before != digest(choosing(2), contents=True)


def test_what_decides_only_when_a_function_runs_does_not_count() -> None:
    for make in (
        threading.Lock,
        threading.RLock,
        threading.Event,
        threading.local,
        threading.Thread,
        queue.SimpleQueue,
    ):
        assert digest(make(), contents=True) == digest(make(), contents=True)


def test_what_a_library_keeps_for_itself_does_not_count() -> None:
    module = types.ModuleType("json.kept")
    exec("KEPT = []\ndef offered(x):\n    return KEPT\ndef around(f):\n    return lambda x: f(x)", vars(module))
    sys.modules[module.__name__] = module
    try:
        module.offered.handle = rows()
        before = [digest(each, contents=True) for each in (module.offered, module.around(either(1)))]
        module.KEPT.append(1)
        assert [digest(each, contents=True) for each in (module.offered, module.around(either(1)))] == before
        assert digest(module.around(either(2)), contents=True) != before[1]
    finally:
        del sys.modules[module.__name__]
    assert digest(json.JSONDecoder(), contents=True) == digest(json.JSONDecoder(), contents=True)


def test_a_module_whose_name_begins_as_that_of_random_numbers_counts() -> None:
    one, other = (with_attribute(derived(), k) for k in (1, 2))
    one.__module__ = other.__module__ = "random_crops"
    assert digest(one(), contents=True) != digest(other(), contents=True)
    assert digest(with_attribute(one(), 1), contents=True) != digest(with_attribute(one(), 2), contents=True)


def rows() -> Any:
    yield 1


@pytest.mark.parametrize(
    "make", [rows, lambda: sqlite3.connect(":memory:"), lambda: {1: [sqlite3.connect(":memory:")]}]
)
def test_what_cannot_be_known_equals_nothing_and_is_named(make: Any) -> None:
    value = make()
    with pytest.warns(UserWarning, match=r"whether the (builtins.generator|sqlite3.Connection) that"):
        one = digest(value, contents=True)
    with pytest.warns(UserWarning, match="made anew"):
        assert digest(value, contents=True) != one
    assert digest(value) == digest(value)


def test_a_cache_is_made_anew_if_nothing_tells_what_its_function_refers_to(tmp_path: Path) -> None:
    def read(x: Any) -> Any:
        return x + connection.execute("select 1").fetchone()[0]

    connection = sqlite3.connect(":memory:", check_same_thread=False)
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"sqlite3.Connection"):
            assert [int(x) for x in fb.Dataset.range(2).map(read).cache(tmp_path / "c")] == [1, 2]
    connection.close()
