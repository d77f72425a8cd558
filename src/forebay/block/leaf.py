"""One leaf on its own: the value that it is once it has been through a pipeline."""

import gc
import sys
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from forebay.block.column import RowError
from forebay.block.spec import BYTES, OBJECT, TEXT, plain_dtype
from forebay.block.structure import flatten, is_container
from forebay.errors import an

NUMBERS: dict[type[Any], type[Any]] = {
    bool: np.bool_,
    int: np.int64,
    float: np.float64,
    complex: np.complex128,
}

_HOLDER = [object()]
# How often something is referred to that one object holds, and a list of what objects hold.
_ALONE = next(map(sys.getrefcount, gc.get_referents(_HOLDER)))

# What each of a few objects held that have so many parts, and how often that was found. One that all rows have, such as
# a tokenizer, is soon known; others may get more parts on their way through a few steps.
_known: dict[int, tuple["weakref.ref[Any]", int, int]] = {}
_PARTS, _KNOWN, _OFTEN = 64, 16, 8

# Most of what objects are, to have it over with quickly.
_NO_ARRAYS = {str, bytes, int, float, bool, type(None), list, dict, tuple}


def as_leaf(value: Any) -> Any:
    """The value as it comes out of a pipeline: a NumPy scalar or array, bytes, str, None, or any other object."""
    kind = type(value)
    number = NUMBERS.get(kind)
    if number is not None:
        try:
            return number(value)
        except OverflowError:
            raise RowError(0, f"is {value}, which does not fit into int64") from None
    if kind is bytes or kind is str or value is None:
        return value
    if isinstance(value, (bytes, str)):
        # Those of NumPy, whose item() would drop NULs at the end, and of classes of the user's own, which would come
        # out as such or not depending on what stands beside them.
        return bytes(value) if isinstance(value, bytes) else str.__str__(value)
    if isinstance(value, np.generic):
        return value
    if kind is list or isinstance(value, range):
        try:
            value = array_from_list(value)
        except Exception as error:
            raise RowError(0, f"is a list that does not form an array ({error})") from None
    elif isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    elif not isinstance(value, np.ndarray):
        if is_container(kind):
            raise RowError(0, f"is {an(kind.__name__)}, where earlier elements have a leaf")
        if not hasattr(value, "__array__"):
            return value
        try:
            value = np.asarray(value)
        except Exception as error:
            # Such as a tensor of torch's that requires a gradient, or of a type that NumPy does not have.
            raise RowError(0, f"is {an(kind.__name__)} that gives no array ({error})") from error
    return _as_array(value)


def array_from_list(values: Any) -> np.ndarray[Any, Any]:
    """The array that a list stands for. ValueError if it stands for none."""
    if isinstance(values, list) and values and set(map(type, values)) <= {bytes, str}:
        # NumPy would first make an array in which each of them has the room of the longest.
        return np.fromiter(values, object, len(values))
    array = np.asarray(values)
    # NumPy's fixed-width strings drop NULs at the end, and turn numbers beside strings into strings.
    return np.array(values, dtype=object) if array.dtype.kind in "SU" else array


def _as_array(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim == 0:
        return as_leaf(array[()])
    if array.dtype.kind in "SUT":
        return array.astype(object)
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    # A subclass (memmap, matrix) has its own ideas about slicing; what travels is a plain array.
    return array.view(np.ndarray) if type(array) is not np.ndarray else array


def is_bare(leaf: Any) -> bool:
    """Whether this is what NumPy makes of an empty list: its float64 is said by nobody and holds no values."""
    return isinstance(leaf, np.ndarray) and not leaf.size and leaf.dtype == np.float64


def settled(leaves: Iterable[Any], dtype: np.dtype[Any]) -> list[Any]:
    """The same leaves, with empty lists in the dtype that the others have."""
    made = np.dtype(object) if dtype in (BYTES, TEXT) else dtype
    return [leaf.astype(made) if is_bare(leaf) else leaf for leaf in leaves]


def leaf_dtype(leaf: Any) -> np.dtype[Any]:
    """The dtype of what ``as_leaf`` returned."""
    if isinstance(leaf, bytes):
        return BYTES
    if isinstance(leaf, str):
        return TEXT
    if isinstance(leaf, np.ndarray) and leaf.dtype == OBJECT:
        kinds = {type(item) for item in leaf.flat}
        return BYTES if kinds == {bytes} else TEXT if kinds == {str} else OBJECT
    if isinstance(leaf, (np.ndarray, np.generic)):
        return plain_dtype(leaf.dtype)
    return OBJECT


def leaf_shape(leaf: Any) -> tuple[int, ...]:
    """The shape of what ``as_leaf`` returned."""
    return leaf.shape if isinstance(leaf, np.ndarray) else ()


def element_bytes(element: Any) -> int:
    """About how much memory an element takes up that a function has made; nothing of what cannot be large."""
    if isinstance(element, np.ndarray):
        return held_bytes(element.ravel().tolist()) if element.dtype.hasobject else int(element.nbytes)
    if isinstance(element, (bytes, str)):
        return len(element)
    if isinstance(element, (np.generic, int, float)) or element is None:
        return 0
    if type(element) is tuple:
        return sum([element_bytes(part) for part in element])
    if type(element) is dict:
        return sum([element_bytes(part) for part in element.values()])
    if type(element) is list:
        # Of lists of numbers, which are about as large as the arrays that they become.
        return sum([element_bytes(part) for part in element[:1]]) * len(element) or 8 * len(element)
    leaves, structure = flatten(element)
    return held_bytes([element]) if structure.is_leaf else sum([element_bytes(leaf) for leaf in leaves])


def held_bytes(values: Sequence[Any]) -> int:
    """About how much memory these take up, with what nobody but they refer to, however deep.

    What others refer to as well stays whatever becomes of these: a vocabulary that all rows share, names of
    attributes, small numbers. Nothing of an object is run but its ``__sizeof__``, and what a library keeps outside of
    Python's objects shows only if that tells.
    """
    # Items of arrays count in any case: rows are copied, and then several arrays refer to the same.
    level = _distinct([*values, *_items(values)])
    return _held_by_one(level[0]) if len(level) == 1 else _held(level)[0]


def _held_by_one(value: Any) -> int:
    reference, size, times = _known.get(id(value), (None, 0, 0))
    if reference is None or reference() is not value:
        times = 0
    if times >= _OFTEN:
        return size
    found, parts = _held([value])
    if parts >= _PARTS:
        if len(_known) >= _KNOWN and id(value) not in _known:
            _known.clear()
        # Those that cannot be told from others with their number later are looked through again.
        with suppress(TypeError):
            _known[id(value)] = weakref.ref(value), found, times + 1 if found == size else 1
    return found


def _held(level: list[Any]) -> tuple[int, int]:
    """Bytes of these and of what only they refer to, and how many parts were looked at."""
    total, count = _own_bytes(level) + _shown(level), 0
    parts = gc.get_referents(*level)
    while parts:
        count += len(parts)
        # Each has one who refers to it, so that none is met twice, in circles neither.
        level = [part for part, times in zip(parts, list(map(sys.getrefcount, parts))) if times <= _ALONE]
        total += _own_bytes(level) + _shown(level)
        parts = gc.get_referents(*level) + _items(level)
    return total, count


def _distinct(values: Sequence[Any]) -> list[Any]:
    return list(dict(zip(map(id, values), values)).values())


def _own_bytes(values: Sequence[Any]) -> int:
    try:
        return sum(map(sys.getsizeof, values))
    except Exception:
        # What an object tells of itself is up to its class, and no reason for a pipeline to end.
        return sum([_told(value) for value in values])


def _told(value: Any) -> int:
    try:
        return sys.getsizeof(value)
    except Exception:
        return 0


def _arrays(values: Sequence[Any]) -> list[Any]:
    # By their types: what stands for another object, such as a proxy, would have to get that to tell its class.
    kinds = {kind for kind in set(map(type, values)) - _NO_ARRAYS if issubclass(kind, np.ndarray)}
    return [each for each in values if type(each) in kinds] if kinds else []


def _shown(values: Sequence[Any]) -> int:
    """What views show, or all that they keep alone: they do not tell how large that is."""
    return sum([_behind(array) for array in _arrays(values) if not array.flags.owndata])


def _behind(view: np.ndarray[Any, Any]) -> int:
    # Arrays tell nobody what they refer to. Here no list has it besides the view.
    alone = sys.getrefcount(view.base) < _ALONE
    return max(view.nbytes, view.base.nbytes) if isinstance(view.base, np.ndarray) and alone else view.nbytes


def _items(values: Sequence[Any]) -> list[Any]:
    """What arrays of objects refer to, of which they tell nobody."""
    return [item for array in _arrays(values) if array.dtype.hasobject for item in array.ravel().tolist()]


def detached(element: Any) -> Any:
    """The element with arrays of its own, for functions and generators that fill one buffer again and again."""
    if isinstance(element, np.ndarray):
        return element.copy()
    if type(element) is tuple:
        return tuple([detached(part) for part in element])
    if type(element) is dict:
        return {key: detached(part) for key, part in element.items()}
    if isinstance(element, (np.generic, int, float, str, bytes, list)) or element is None:
        return element
    leaves, structure = flatten(element)
    return element if structure.is_leaf else structure.unflatten([detached(leaf) for leaf in leaves])
