"""Whether a function draws random numbers that Forebay does not give it, as far as a look at it tells."""

import dis
import random
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy.random

_GENERATORS = (random.Random, numpy.random.Generator, numpy.random.RandomState)
# Whoever makes or seeds a generator where numbers are drawn, may well have them depend on the element alone.
_SEEDING = frozenset({"Generator", "Random", "RandomState", "SeedSequence", "default_rng", "manual_seed", "seed"})
_OF_TORCH = frozenset({"rand", "randn", "randint", "randperm"})


def draws(function: Callable[..., Any]) -> bool:
    """Whether it refers to a generator, or to the functions of ``random``, ``numpy.random`` or torch that have one.

    Looks into functions that it refers to, of the same module, and no further: a warning depends on it, nothing else.
    """
    try:
        return _draws(function, frozenset(), set())
    except Exception:
        # What it refers to may raise anything when it is looked at.
        return False


def _draws(value: Any, names: frozenset[str], seen: set[int]) -> bool:
    """`names` are those in the code that refers to the value."""
    if isinstance(value, ModuleType):
        if value.__name__ in ("numpy", "torch"):
            return "random" in names if value.__name__ == "numpy" else not names.isdisjoint(_OF_TORCH)
        return value.__name__ in ("random", "numpy.random")
    if isinstance(value, _GENERATORS) or isinstance(getattr(value, "__self__", None), _GENERATORS):
        return True
    if isinstance(value, partial):
        parts = (value.func, *value.args, *value.keywords.values())
        return any(_draws(part, names, seen) for part in parts)
    owner: Any = None
    if isinstance(value, MethodType):
        owner, value = value.__self__, value.__func__
    elif not names and not isinstance(value, FunctionType):
        # An object that is the function.
        owner, value = value, getattr(type(value), "__call__", None)  # noqa: B004 - the function itself
    if not isinstance(value, FunctionType) or id(value) in seen:
        return False
    seen.add(id(value))
    used = frozenset(name for code in _codes(value.__code__) for name in code.co_names)
    return not used & _SEEDING and any(_draws(each, used, seen) for each in _referred(value, owner, used))


def _referred(function: FunctionType, owner: Any, names: frozenset[str]) -> Iterator[Any]:
    kept = getattr(owner, "__dict__", {})
    found = [kept[name] for name in names if name in kept]
    for code in _codes(function.__code__):
        # Names of attributes are among those of the code too: x.random is no module.
        loaded = {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}
        found += [function.__globals__[name] for name in loaded if name in function.__globals__]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # Not filled yet.
            continue
    for value in found:
        if not isinstance(value, FunctionType) or value.__module__ == function.__module__:
            yield value


def _codes(code: CodeType) -> Iterator[CodeType]:
    """With that of functions that are defined inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
