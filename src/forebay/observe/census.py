"""Which Python objects there are, by type: what to compare when memory has grown.

The garbage collector knows containers and objects with references. It does not know NumPy arrays, bytes or numbers,
nor tuples and dictionaries that hold nothing else, so these are found by following references from what it knows.
"""

import gc
import sys
from collections import Counter, deque
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from forebay.observe.verdict import HolderGrowth, TypeGrowth

_CHUNK = 20_000  # Objects at a time: a list of all references of a large program would be a spike of its own.
_LONG = 16  # Shorter containers are not followed: no run of interest leaves so little behind.
_HOLDERS = (list, dict, set, deque)
_TENSORS = ("torch", "jaxlib", "cupy")  # Their objects tell their bytes, and are known to the collector.
_HIDDEN = ("forebay.observe", "_frozen_importlib")


class _Lengths(dict[tuple[int, type], int]):
    """Containers by identity and type. A type of its own, so that the next census does not count this one."""


@dataclass(frozen=True, slots=True)
class Census:
    """Objects at one moment. `lengths` has the containers, by identity and type."""

    step: int
    counts: Counter[type]
    bytes: dict[type, int]
    lengths: _Lengths


def census(step: int) -> Census:
    """Count now. Takes about a tenth of a second for a hundred thousand objects."""
    counts: Counter[type] = Counter()
    payload: dict[type, int] = {}
    lengths = _Lengths()
    seen: set[int] = set()
    objects = gc.get_objects()
    counts.update(map(type, objects))
    tensors = {kind for kind in counts if _module(kind) in _TENSORS and hasattr(kind, "nbytes")}
    for start in range(0, len(objects), _CHUNK):
        chunk = objects[start : start + _CHUNK]
        for each in chunk:
            kind = type(each)
            if kind in _HOLDERS and len(each) >= _LONG:
                lengths[id(each), kind] = len(each)
            elif kind in tensors:
                _add(payload, kind, _nbytes(each))
        while chunk:
            chunk = _look_into(gc.get_referents(*chunk), seen, counts, payload, lengths)
    return Census(step, counts, payload, lengths)


def _look_into(
    found: list[Any],
    seen: set[int],
    counts: Counter[type],
    payload: dict[type, int],
    lengths: _Lengths,
) -> list[Any]:
    """Count what the collector does not know; the containers among it, which may hold more."""
    deeper: list[Any] = []
    for each in found:
        kind = type(each)
        if kind is tuple or kind is dict:
            if gc.is_tracked(each) or id(each) in seen:
                continue
            deeper.append(each)
            if kind is dict and len(each) >= _LONG:
                lengths[id(each), kind] = len(each)
        elif kind is np.ndarray:
            # Views of one array keep that one alive, whole and once.
            if id(each) in seen:
                continue
            base = each.base if type(each.base) is np.ndarray else each
            if base is each or id(base) not in seen:
                _add(payload, kind, int(base.nbytes))
            seen.add(id(base))
        elif kind is bytes or kind is bytearray:
            if id(each) in seen:
                continue
            _add(payload, kind, sys.getsizeof(each))
        elif kind is float or kind is int:
            counts[kind] += 1
            continue
        else:
            continue
        seen.add(id(each))
        counts[kind] += 1
    return deeper


def _add(payload: dict[type, int], kind: type, count: int) -> None:
    payload[kind] = payload.get(kind, 0) + count


def _nbytes(tensor: Any) -> int:
    try:
        return int(tensor.nbytes)
    except Exception:  # Sparse, deleted or symbolic tensors have no size, and each library says so in its own way.
        return 0


def grown_types(before: Census, after: Census, most: int = 5) -> tuple[TypeGrowth, ...]:
    """Types with more objects or more bytes than before, the most bytes first."""
    found = []
    for kind in after.counts.keys() | after.bytes.keys():
        count = after.counts[kind] - before.counts[kind]
        known = after.bytes.get(kind)
        more = count * kind.__basicsize__ if known is None else known - before.bytes.get(kind, 0)
        if count > _LONG and more > 0 and not str(kind.__module__).startswith(_HIDDEN):
            found.append(TypeGrowth(_type_name(kind), count, more))
    found.sort(key=lambda each: -each.bytes)
    return tuple(each for each in found[:most] if each.bytes >= found[0].bytes / 100)


def grown_holders(before: Census, after: Census, most: int = 3) -> tuple[HolderGrowth, ...]:
    """Containers that took in something in at least every fourth step, the fastest first."""
    least = max(_LONG, (after.step - before.step) // 4)
    rise = {key: length - before.lengths.get(key, 0) for key, length in after.lengths.items()}
    keys = sorted((key for key in rise if rise[key] >= least), key=lambda key: -rise[key])[: 4 * most]
    wanted = set(keys)
    alive = _those(wanted)
    found = []
    for key in keys:
        if key in alive and not _is_namespace(alive[key]):
            name = _holder_name(alive[key])
            if name is not None:
                found.append(HolderGrowth(name, before.lengths.get(key, 0), after.lengths[key]))
    return tuple(found[:most])


def _those(wanted: set[tuple[int, type]]) -> dict[tuple[int, type], Any]:
    """The containers themselves, as far as they still exist."""
    objects = gc.get_objects()
    alive = {(id(each), type(each)): each for each in objects if (id(each), type(each)) in wanted}
    for start in range(0, len(objects), _CHUNK):
        if len(alive) == len(wanted):
            break
        # Dictionaries of numbers and the like are unknown to the collector, but not to who has them.
        referents = gc.get_referents(*objects[start : start + _CHUNK])
        alive |= {(id(each), dict): each for each in referents if type(each) is dict and (id(each), dict) in wanted}
    return alive


def _is_namespace(container: Any) -> bool:
    """Of a module or a class that was imported meanwhile: long at once, and no longer afterwards."""
    return isinstance(container, dict) and ("__name__" in container or "__module__" in container)


def _holder_name(container: Any) -> str | None:
    """What it is called; None for what imports leave behind, however late they come."""
    kind = type(container).__name__
    modules = {
        id(vars(module)): name
        for name, module in reversed(sys.modules.copy().items())
        if isinstance(module, ModuleType)
    }
    for owner in gc.get_referrers(container):
        if isinstance(owner, dict):
            key = next((key for key, value in list(owner.items()) if value is container), None)
            if isinstance(key, str) and id(owner) in modules:
                if key.startswith("__"):
                    return None
                return f"{kind} {modules[id(owner)]}.{key}"
        elif type(owner).__dictoffset__ and not isinstance(owner, (type, ModuleType)):
            # Past whatever the class may do when it is asked for an attribute.
            attributes = object.__getattribute__(owner, "__dict__")
            key = next((key for key, value in list(attributes.items()) if value is container), None)
            if key is not None:
                if _module(type(owner)).startswith("_frozen_importlib"):
                    return None
                return f"{kind} {type(owner).__name__}.{key}"
    some = next(iter(container), None)
    return f"a {kind} of {_type_name(type(some))}"


def _module(kind: type) -> str:
    # A class may have anything under that name.
    return str(kind.__module__).partition(".")[0]


def _type_name(kind: type) -> str:
    module = _module(kind)
    return kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"
