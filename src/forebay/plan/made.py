"""What an object is made of, as pickle would note it; whose code that is; what tells files and arrays apart unread."""

import copyreg
import enum
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

# Modules of which no object ever changes.
_CONSTANT = frozenset(
    {"datetime", "decimal", "fractions", "ipaddress", "operator", "pathlib", "re", "uuid", "zoneinfo"}
)


class Unknown:
    """Stands for an object that nothing can be learned of."""

    def __init__(self, value: Any) -> None:
        try:
            self.kind = f"{type(value).__module__}.{type(value).__qualname__}"
        except Exception:
            self.kind = "object"


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


def is_in_library(function: Any) -> bool:
    """Whether it is a function that a library offers by name, and not one that it has made of the user's."""
    if is_users(function.__module__):
        return False
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


def made_of(value: Any, made: Any) -> Iterator[Any]:
    """What pickle would make an object anew of, which ``reduced`` returned; if it cannot, its attributes."""
    if not isinstance(made, tuple) or not made:
        # A name that pickle would look up says nothing of what it stands for.
        yield made or None
        yield from fields(value)
        return
    maker, arguments, state, items, pairs, *_ = (*made, None, None, None, None)
    # By name: what such functions remember is no business of the object's.
    yield str(getattr(maker, "__qualname__", maker.__class__.__qualname__))
    yield arguments
    yield tuple(sorted(state.items())) if isinstance(state, dict) and all(map(_is_text, state)) else state
    yield tuple(items or ())
    yield tuple(pairs or ())
    if isinstance(maker, functools.partial):
        yield maker


def reduced(value: Any) -> Any:
    """What pickle would note of the object; an empty tuple if it cannot."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        return reduce(value) if reduce is not None else value.__reduce_ex__(4)
    except Exception:
        return ()


def fields(value: Any) -> Iterator[Any]:
    """The attributes that Python code sees."""
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in sorted((slots,) if isinstance(slots, str) else slots):
            if name not in ("__dict__", "__weakref__"):
                private = name.startswith("__") and not name.endswith("__")
                yield name
                yield getattr(value, f"_{base.__name__.lstrip('_')}{name}" if private else name, None)
    yield from sorted(getattr(value, "__dict__", {}).items())


def strides_of(array: Any) -> tuple[int, ...] | None:
    """How an array, or a view of memory, lies if its values are not simply one behind another; otherwise None.

    Functions can see that, and sums of the same numbers in another order round differently. Axes of a single entry lie
    anywhere.
    """
    if (array.flags if isinstance(array, np.ndarray) else array).c_contiguous:
        return None
    return tuple(step if length > 1 else 0 for step, length in zip(array.strides, array.shape))


def file_stamp(path: Any) -> tuple[int, ...]:
    """What changes with a file's contents without reading them; nothing of what is not there or on another machine."""
    try:
        found = os.stat(path.removeprefix("file://") if isinstance(path, str) else path)
    except (OSError, TypeError, ValueError):
        return ()
    return found.st_size, found.st_mtime_ns


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
