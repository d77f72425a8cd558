"""Containers that kept growing, and the steps of datasets that have them."""

import functools
import gc
import sys
from collections import deque
from dataclasses import replace
from inspect import CO_OPTIMIZED
from types import CellType, FrameType, FunctionType, MethodType
from typing import Any

import numpy as np

from forebay.observe.census import LARGE, LONG, Census
from forebay.observe.names import Names
from forebay.observe.verdict import HolderGrowth
from forebay.run.operator import Operator

_CHUNK = 20_000  # Objects at a time, as in a census.
_FEW = 4
_OURS = 3  # References to what nobody has any more but a look at it: in its table, its variable, and the count itself.
_SHORT = 2000  # Containers of few items to look into.
# From a container up to the step that has it: through helpers, and through functions that close over it.
_UP = 6
_WIDE = 200
_ITERATORS: tuple[type, ...] = (type(iter([])), type(iter(())), map, zip)
_THROUGH = (list, dict, tuple, deque, set, CellType, FunctionType, MethodType, functools.partial)


def named(before: Census, after: Census, known: Census | None = None) -> Census:
    """The later one with its containers that grew, which have to be named while they are there.

    A step is there only while its dataset runs, so that what was `known` of it counts.
    """
    stages = {} if known is None else dict(known.stages)
    found = grown_holders(before, after, stages)
    return replace(after, holders=found, stages=stages)


def grown_holders(
    before: Census, after: Census, stages: dict[tuple[int, type], str] | None = None, most: int = 3
) -> tuple[HolderGrowth, ...]:
    """Containers that took in something in at least every fourth step, or large arrays, the fastest first.

    The steps that have them are taken from `stages`, or noted there.
    """
    stages = {} if stages is None else stages
    least = max(LONG, (after.step - before.step) // 4)
    rise = {key: length - before.lengths.get(key, 0) for key, length in after.lengths.items()}
    keys = sorted((key for key in rise if rise[key] >= _FEW), key=lambda key: -rise[key])
    keys = [key for key in keys if rise[key] >= least][: 4 * most] + [key for key in keys if rise[key] < least][:_SHORT]
    alive = _those(set(keys))
    # Only now that they cannot go: where one has been, the next block's rows may be a moment later.
    on_the_way = _on_the_way()
    names = Names()
    found: list[HolderGrowth] = []
    for key in keys:
        container = alive.get(key)
        if container is None or id(container) in on_the_way or len(found) == most:
            continue
        if sys.getrefcount(container) <= _OURS:
            continue
        if _is_namespace(container) or _passes_by(container, alive):
            continue
        arrays = _array_bytes(container)
        if rise[key] < least and arrays < LARGE:
            continue
        name = names.of(container)
        if name is not None:
            stage = _stage_of(container) or stages.get(key)
            if stage is not None:
                stages[key] = stage
            found.append(HolderGrowth(name, before.lengths.get(key, 0), after.lengths[key], stage, arrays))
    return tuple(found)


def _array_bytes(container: Any) -> int:
    try:
        values = list(container.values() if isinstance(container, dict) else container)
    except RuntimeError:  # Another thread is changing it.
        return 0
    return sum(each.nbytes for each in values if type(each) is np.ndarray)


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


def _passes_by(container: Any, alive: dict[tuple[int, type], Any]) -> bool:
    """Whether nobody has it but an iterator: rows of a block on their way, which were not there before."""
    owners = [owner for owner in gc.get_referrers(container) if owner is not alive]
    return bool(owners) and all(issubclass(type(owner), _ITERATORS) for owner in owners)


def _on_the_way() -> set[int]:
    """What the functions of a running dataset work on at the moment, as rows of a block that is being made."""
    found: set[int] = set()
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            if str(frame.f_globals.get("__name__")).startswith("forebay.") and frame.f_code.co_flags & CO_OPTIMIZED:
                variables = frame.f_locals
                found.update(map(id, variables.values()))
                if isinstance(variables, dict):
                    # A copy, which the frame would keep, and with it all that is in it, for as long as it runs.
                    variables.clear()
            frame = frame.f_back
        # This very call is among them: it would keep itself, and what those it was called by have in their variables.
        del top
    return found


def _is_namespace(container: Any) -> bool:
    """Of a module or a class that was imported meanwhile: long at once, and no longer afterwards."""
    return isinstance(container, dict) and ("__name__" in container or "__module__" in container)


def _stage_of(container: Any) -> str | None:
    """The step of a running dataset that keeps it alive, by itself or by a function that it calls."""
    level: list[Any] = [container]
    seen = {id(container)}
    for _ in range(_UP):
        owners = [each for each in gc.get_referrers(*level) if each is not level and id(each) not in seen]
        for each in owners:
            if issubclass(type(each), Operator):  # Not what a proxy says of itself.
                return str(each.site)
        # Not through modules: what is global there is kept by nobody in particular.
        level = [each for each in owners if _leads_on(each)][:_WIDE]
        seen.update(map(id, level))
        if not level:
            return None
    return None


def _leads_on(owner: Any) -> bool:
    if issubclass(type(owner), _THROUGH):
        return not _is_namespace(owner)
    module = str(type(owner).__module__)
    return module.startswith("forebay.") and not module.startswith("forebay.observe")
