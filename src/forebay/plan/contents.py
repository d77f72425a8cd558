"""What is in a container or an object, for digests in which all that decides about rows counts.

An object is what pickle would make it of anew, so that those without attributes (a compiled pattern, an ``itemgetter``,
a tokenizer of a library in C) count too. Classes of the user's own count with what they do; those of libraries by name.
"""

import copyreg
import enum
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

# Modules of which no object ever changes.
_CONSTANT = frozenset(
    {"datetime", "decimal", "fractions", "ipaddress", "operator", "pathlib", "re", "uuid", "zoneinfo"}
)
# What random numbers are drawn from moves with every draw, and is meant to.
_RANDOM = ("random", "numpy.random")


def is_constant(value: Any) -> bool:
    """Whether the value is an object that cannot change, so that it counts in a running program too."""
    kind = type(value)
    return isinstance(value, (range, slice, enum.Enum)) or str(kind.__module__).partition(".")[0] in _CONSTANT


def is_users(module: Any) -> bool:
    """Whether what is in that module is the user's own code, and not a library's."""
    root = str(module).partition(".")[0]
    if root == "forebay" or root in sys.stdlib_module_names:
        return False
    path = str(getattr(sys.modules.get(module), "__file__", None))
    return "site-packages" not in path and "dist-packages" not in path


def contents_of(value: Any) -> Iterator[Any]:
    """All that is in a value which is not a constant, a function or an array."""
    if isinstance(value, type):
        yield from _behaviour(value)
    elif isinstance(value, (dict, types.MappingProxyType)):
        yield from value.items()
    elif isinstance(value, set):
        yield frozenset(value)
    elif isinstance(value, list):
        yield from value
    elif isinstance(value, (bytearray, memoryview)):
        yield bytes(value)
    elif hasattr(value, "__array__"):
        yield _as_array(value)
        # Of tables: the array has no names.
        yield from (getattr(value, name, None) for name in ("columns", "index") if _is_array_like(value, name))
    elif hasattr(type(value), "_forebay_contents"):
        yield from value._forebay_contents()
    elif str(type(value).__module__).startswith("forebay."):
        # Those that hold data would be copied.
        yield from _fields(value)
    elif not any(str(base.__module__).startswith(_RANDOM) for base in type(value).__mro__):
        yield from made_of(value)


def made_of(value: Any) -> Iterator[Any]:
    """What pickle would make an object anew of; if it cannot, its attributes."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        made = reduce(value) if reduce is not None else value.__reduce_ex__(4)
    except Exception:
        made = None
    if not isinstance(made, tuple):
        # A name that pickle would look up says nothing of what it stands for.
        yield made
        yield from _fields(value)
        return
    maker, arguments, state, items, pairs, *_ = (*made, None, None, None, None)
    # By name: what such functions remember is no business of the object's.
    yield str(getattr(maker, "__qualname__", maker.__class__.__qualname__))
    yield arguments
    yield tuple(sorted(state.items())) if isinstance(state, dict) and all(map(_is_text, state)) else state
    yield tuple(items or ())
    yield tuple(pairs or ())


def stamp(array: Any) -> Any:
    """Size and time of the file that an array, or what it is a view of, is mapped from; None if it is not."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            name = getattr(array, "filename", None)
            return () if name is None else file_stamp(os.fspath(name))
        array = array.base
    return None


def file_stamp(path: Any) -> tuple[int, ...]:
    """What changes with a file's contents without reading them; nothing of what is not there or on another machine."""
    try:
        found = os.stat(path.removeprefix("file://") if isinstance(path, str) else path)
    except (OSError, ValueError):
        return ()
    return found.st_size, found.st_mtime_ns


def _behaviour(kind: type) -> Iterator[Any]:
    """Methods and attributes of a class, and of those that it inherits from, as far as they are the user's."""
    for base in kind.__mro__:
        if not is_users(base.__module__):
            continue
        for name, each in sorted(vars(base).items()):
            if isinstance(each, (staticmethod, classmethod)):
                each = each.__func__
            elif isinstance(each, property):
                each = (each.fget, each.fset, each.fdel)
            elif isinstance(each, (types.MemberDescriptorType, types.GetSetDescriptorType)) or (
                name.startswith("__") and not isinstance(each, types.FunctionType)
            ):
                continue
            yield (name, each)


def _fields(value: Any) -> Iterator[Any]:
    slots = [getattr(base, "__slots__", ()) for base in type(value).__mro__]
    for name in sorted({name for each in slots for name in ((each,) if isinstance(each, str) else each)}):
        yield getattr(value, name, None)
    yield from sorted(getattr(value, "__dict__", {}).items())


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_array_like(value: Any, name: str) -> bool:
    return hasattr(getattr(value, name, None), "__array__")


def _as_array(value: Any) -> Any:
    """Tensors and tables of other libraries; what is not in this machine's memory counts by its type."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return None
