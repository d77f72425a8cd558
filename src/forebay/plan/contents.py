"""What is in a container or an object, for digests in which all that decides about rows counts.

An object is what pickle would make it of anew, so that those without attributes (a compiled pattern, an ``itemgetter``,
a tokenizer of a library in C) count too. Classes of the user's own count with what they do; those of libraries by name.
What nothing can be learned of is ``Unknown``, and equal to nothing: rows that are computed once too often are a cost,
those of another function are wrong.
"""

import contextvars
import copyreg
import gc
import types
import weakref
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any

import numpy as np

from forebay.plan.classes import behaviour
from forebay.plan.foreign import foreign_parts
from forebay.plan.handed import handed_parts, hands_over, is_in
from forebay.plan.made import Unknown, fields, file_stamp, is_users, made_of, reduced, strides_of
from forebay.plan.standard import noted_in, standard_parts

# What random numbers are drawn from moves with every draw, and is meant to.
_RANDOM = ("random", "_random", "numpy.random", "tensorflow.python.ops.stateful_random_ops")
# A decoder's scanner, made of the attributes that the decoder has too.
_MADE_OF_ITS_OWNER = ("_json",)
_POINTER = tuple.__itemsize__
# Under which names compilers and decorators keep the function that they were given.
_WRAPPED = ("__wrapped__", "py_func", "python_function")


def contents_of(value: Any) -> Iterator[Any]:
    """All that is in a value which is not a function or a plain tuple; of arrays and dtypes, what no text tells."""
    kind = type(value)
    if isinstance(value, type):
        yield from behaviour(value)
    elif isinstance(value, np.ndarray):
        yield from _beside_numbers(value)
    elif isinstance(value, (np.generic, np.dtype)):
        yield from noted_in(value.dtype if isinstance(value, np.generic) else value)
    elif kind is list:
        yield from value
    elif kind is dict or kind is types.MappingProxyType:
        yield from value.items()
    elif isinstance(value, (KeysView, ValuesView, ItemsView)):
        yield from value
    elif isinstance(value, (set, frozenset, weakref.WeakSet)):
        yield frozenset(value)
        yield from reduced(value)[2:3]
    elif kind is bytearray:
        yield bytes(value)
    elif kind is memoryview:
        yield from (value.format, value.shape, value.tobytes())
        if not value.c_contiguous:
            yield strides_of(value)
    elif isinstance(value, (staticmethod, classmethod)):
        yield value.__func__
    elif isinstance(value, property):
        yield from (value.fget, value.fset, value.fdel, *fields(value))
    elif isinstance(value, weakref.ReferenceType):
        yield from (value(), *fields(value))
    elif kind is types.CellType:
        yield from _cell(value)
    elif kind is contextvars.ContextVar:
        yield from _variable(value)
    elif kind is np.ufunc:
        # The function that frompyfunc was given is found nowhere else.
        yield from (value.__name__, value.nin, value.nout)
        yield from gc.get_referents(value)
    elif hasattr(kind, "_forebay_contents"):
        yield from value._forebay_contents()
    elif str(kind.__module__).startswith("forebay."):
        # Those that hold data would be copied.
        yield from fields(value)
    elif _is_random(kind):
        if isinstance(value, np.random.SeedSequence):
            # A seed stays what it is when generators are made of it. What counts its children moves as they do.
            yield from (value.entropy, value.spawn_key, value.pool_size)
        yield from sorted((name, each) for name, each in getattr(value, "__dict__", {}).items() if name != "gauss_next")
    elif any(base.__module__ == "ctypes" and base.__name__ == "CDLL" for base in kind.__mro__):
        # Beside these it has the address that it was loaded at.
        yield from (value._name, file_stamp(value._name))
    elif hands_over(kind):
        yield from handed_parts(value)
    elif not is_in(kind.__module__, _MADE_OF_ITS_OWNER):
        yield from _of_libraries(value)


def _of_libraries(value: Any) -> Iterator[Any]:
    try:
        parts = foreign_parts(value)
        if parts is not None:
            yield from parts
            return
    except Exception:
        yield Unknown(value)
    made = reduced(value)
    yield from made_of(value, made)
    if not made:
        yield from _beyond(value)
    elif isinstance(made, tuple):
        yield made[0] if isinstance(made[0], type) else getattr(made[0], "__module__", None)
        # Only what the user's own do, not what they remember.
        yield getattr(made[0], "__code__", None) if is_users(getattr(made[0], "__module__", None)) else None


def _beyond(value: Any) -> Iterator[Any]:
    """What counts of an object that pickle refuses, beyond its attributes."""
    kind = type(value)
    hands = any(map(hands_over, kind.__mro__))
    more = not hands and _has_more(kind)
    parts = standard_parts(value) if more else None
    if parts is None and not is_users(kind.__module__):
        # Classes of the user's own count with what they do; those of libraries may be called alike.
        yield kind.__module__
    if hands:
        yield from handed_parts(value)
    if not more:
        return
    known = [getattr(value, name) for name in _WRAPPED if hasattr(value, name)]
    if parts is not None:
        known.append(parts)
    elif hasattr(value, "__array__"):
        known += [array for array in (_as_array(value),) if array is not None]
    yield from known or (Unknown(value),)


def _has_more(kind: type) -> bool:
    """Whether its objects hold more than attributes, which only code in C can see; pickle asks the same."""
    slots: list[str] = copyreg._slotnames(kind)  # type: ignore[attr-defined]
    pointers = len(slots) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__basicsize__ > object.__basicsize__ + pointers * _POINTER


def _beside_numbers(array: Any) -> Iterator[Any]:
    """Notes on its dtype, and what an array of a class of its own has beside its numbers."""
    yield from noted_in(array.dtype)
    if isinstance(array, np.ma.MaskedArray):
        yield from (np.ma.getmaskarray(array), array.fill_value, array.hardmask)
    skipped = ("_mmap", "filename", "_mask", "_fill_value", "_sharedmask")
    yield from sorted((name, each) for name, each in getattr(array, "__dict__", {}).items() if name not in skipped)


def _is_random(kind: type) -> bool:
    return any(
        is_in(base.__module__, _RANDOM) or (base.__module__, base.__name__) == ("torch._C", "Generator")
        for base in kind.__mro__
    )


def _cell(cell: Any) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:
        yield "unbound"


def _variable(variable: contextvars.ContextVar[Any]) -> Iterator[Any]:
    """What it is where nothing has set it, as on threads, and what it is here."""
    yield variable.name
    for context in (contextvars.Context(), contextvars.copy_context()):
        try:
            yield (context.run(variable.get),)
        except LookupError:
            yield ()


def _as_array(value: Any) -> Any:
    try:
        return np.asarray(value)
    except Exception:
        return None
