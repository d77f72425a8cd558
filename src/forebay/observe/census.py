"""Which Python objects there are, by type: what to compare when memory has grown.

The garbage collector knows containers and objects with references. It does not know NumPy arrays, bytes or numbers,
nor tuples and dictionaries that hold nothing else, so these are found by following references from what it knows.
"""

import gc
import sys
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forebay.observe.verdict import HolderGrowth, TypeGrowth

_CHUNK = 20_000  # Objects at a time: a list of all references of a large program would be a spike of its own.
LONG = 16  # Shorter containers are not followed, unless they hold arrays: a few of these may be large.
_FEW = 4
LARGE = 1 << 20
_HOLDERS = (list, dict, set, deque)
_EVERYWHERE = (int, float, str, bytes, tuple, type, type(lambda: 0))  # Imports leave many of these behind.
_TENSORS = ("torch", "jaxlib", "cupy")  # Their objects tell their bytes, and are known to the collector.
_HIDDEN = ("forebay.observe", "_frozen_importlib")


class _Lengths(dict[tuple[int, type], int]):
    """Containers by identity and type. A type of its own, so that the next census does not count this one."""


@dataclass(frozen=True, slots=True)
class Census:
    """Objects at one moment.

    `lengths` has the containers, by identity and type; `stages` the steps of datasets that had them, so far.
    """

    step: int
    counts: Counter[type]
    bytes: dict[type, int]
    lengths: _Lengths
    holders: tuple[HolderGrowth, ...] = ()
    stages: dict[tuple[int, type], str] = field(default_factory=dict)


def census(step: int) -> Census:
    """Count now. Takes about a tenth of a second for a hundred thousand objects."""
    counts: Counter[type] = Counter()
    payload: dict[type, int] = {}
    lengths = _Lengths()
    seen: set[int] = set()
    objects = gc.get_objects()
    counts.update(map(type, objects))
    tensors = {kind for kind in counts if module_of(kind) in _TENSORS and hasattr(kind, "nbytes")}
    for start in range(0, len(objects), _CHUNK):
        chunk = objects[start : start + _CHUNK]
        for each in chunk:
            kind = type(each)
            if kind in _HOLDERS and _worth_following(each):
                lengths[id(each), kind] = len(each)
            elif kind in tensors:
                _add(payload, kind, _nbytes(each))
        while chunk:
            chunk = _look_into(gc.get_referents(*chunk), seen, counts, payload, lengths)
    return Census(step, counts, payload, lengths)


def _worth_following(container: Any) -> bool:
    """Whether it is long, or begins with an array; quick, since it is asked of every container there is."""
    if len(container) < _FEW or len(container) >= LONG:
        return len(container) >= LONG
    try:
        first = next(iter(container.values() if type(container) is dict else container), None)
    except RuntimeError:  # Another thread is changing it.
        return False
    return type(first) is np.ndarray


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
            if kind is dict and _worth_following(each):
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


def grown_types(before: Census, after: Census, grown: int = 0, most: int = 5) -> tuple[TypeGrowth, ...]:
    """Types with more objects or more bytes than before, the most bytes first.

    Left out is what makes no difference to a process that has `grown` by so much, unless there are as many as steps.
    """
    per_step = (after.step - before.step) // 2
    found = []
    for kind in after.counts.keys() | after.bytes.keys():
        count = after.counts[kind] - before.counts[kind]
        known = after.bytes.get(kind)
        more = count * kind.__basicsize__ if known is None else known - before.bytes.get(kind, 0)
        # Twelve arrays, one an epoch, are few but large.
        if more <= 0 or (count <= LONG and more < LARGE) or str(kind.__module__).startswith(_HIDDEN):
            continue
        if more >= grown / 100 or (count >= max(per_step, LONG) and kind not in _EVERYWHERE):
            found.append(TypeGrowth(type_name(kind), count, more))
    found.sort(key=lambda each: -each.bytes)
    return tuple(found[:most])


def module_of(kind: type) -> str:
    """The package that a type is from."""
    # A class may have anything under that name.
    return str(kind.__module__).partition(".")[0]


def type_name(kind: type) -> str:
    """What to call a type.

    >>> type_name(np.ndarray), type_name(list)
    ('numpy.ndarray', 'list')
    """
    module = module_of(kind)
    return kind.__qualname__ if module in ("builtins", "__main__") else f"{module}.{kind.__qualname__}"
