"""Arrays that come one after another, each put where it will stay."""

from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block.aligned import aligned_empty
from forebay.block.dense import Dense
from forebay.block.leaf import detached

# Smaller ones are copied twice in less time than it takes to tell whether once is enough.
_LARGE = 4096
# Of numbers and times; others become columns of another kind.
_KINDS = "biufcmM"


class Shelf:
    """Keeps a copy of every element, as ``detached`` does, but of large arrays next to those of the elements before.

    That copy has to be made in any case, since a function may fill one buffer again and again. Made here, it is the
    only one: the column of these rows is there already. And it is made while the array is still in the processor's
    caches.

    Args:
        rows: how many elements come at most.
        most_bytes: how much memory is enough, however many are left.
    """

    def __init__(self, rows: int, most_bytes: int) -> None:
        self._rows = rows
        self._most_bytes = most_bytes
        self._arrays: dict[Hashable, tuple[NDArray[Any], list[NDArray[Any]]]] = {}

    def keep(self, element: Any, at: Hashable = None) -> Any:
        """The element with arrays of its own. `at` is where it stands in a larger one."""
        if type(element) is np.ndarray:
            return self._put(element, at) if element.nbytes >= _LARGE else detached(element)
        if type(element) is tuple:
            return tuple([self.keep(part, (at, place)) for place, part in enumerate(element)])
        if type(element) is dict:
            return {key: self.keep(part, (at, key)) for key, part in element.items()}
        return detached(element)

    def _put(self, array: NDArray[Any], at: Hashable) -> Any:
        found = self._arrays.get(at)
        if found is None:
            if array.dtype.kind not in _KINDS or not array.dtype.isnative:
                return detached(array)
            rows = min(self._rows, self._most_bytes // array.nbytes + 1)
            found = self._arrays[at] = aligned_empty((rows, *array.shape), array.dtype), []
        whole, kept = found
        if len(kept) == len(whole) or array.shape != whole.shape[1:] or array.dtype != whole.dtype:
            return detached(array)
        row: NDArray[Any] = whole[len(kept)]
        row[...] = array
        kept.append(row)
        return row

    def column(self, values: Sequence[Any]) -> Dense | None:
        """The column of these values, if they are all that stands in one place, in order."""
        for whole, kept in self._arrays.values():
            if values[0] is kept[0]:
                same = len(values) == len(kept) and all(map(is_, values, kept))
                return Dense(whole[: len(values)]) if same else None
        return None


def keeper(first: Any, rows: int, most_bytes: int) -> tuple[Callable[[Any], Any], Shelf | None]:
    """What keeps elements like the first one, of which so many come at most, and the shelf if they are worth one."""
    if not _is_large(first):
        return detached, None
    shelf = Shelf(rows, most_bytes)
    return shelf.keep, shelf


def _is_large(element: Any) -> bool:
    if isinstance(element, np.ndarray):
        return element.nbytes >= _LARGE
    if type(element) is tuple:
        return any(map(_is_large, element))
    return type(element) is dict and any(map(_is_large, element.values()))
