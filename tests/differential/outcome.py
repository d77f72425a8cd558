"""What a pipeline did, in a form in which two libraries can be compared and a difference can be read.

An element is reduced to plain tuples: `Leaf` for a value, `Node` for a container, so that dtype, shape, the
kind of every container and the order of dict keys all take part in `==`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from differential.sides import Side

# Enough to see several rounds of every infinite case; every finite case is shorter.
LIMIT = 60


class Leaf(NamedTuple):
    """A value. `shape` is None for what is no array: NumPy scalars, bytes, str, None, Python numbers."""

    dtype: str
    shape: tuple[int, ...] | None
    value: Any


class Spec(NamedTuple):
    """What `element_spec` says of a leaf. A `shape` of None: not even the rank is known."""

    dtype: str
    shape: tuple[int | None, ...] | None


class Node(NamedTuple):
    """A container: its type's name, its keys (empty for tuples) and what it holds."""

    kind: str
    keys: tuple[Any, ...]
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of building a dataset and reading it, or of computing one value.

    `failed` names the stage that raised: "build", "run" (after `elements` had come out) or None.
    `ended` is False where reading stopped at the limit. `value` is for cases that do not return a dataset.
    `error` is what was raised; which class it is differs by design and is checked apart.
    """

    elements: tuple[Any, ...] = ()
    ended: bool = False
    failed: str | None = None
    cardinality: int | None = None
    spec: Any = None
    value: Any = None
    error: Exception | None = field(default=None, compare=False)

    def map_leaves(self, change: Callable[[Any], Any]) -> "Outcome":
        """The same with every Leaf and Spec changed."""
        return self._map(lambda tree: change(tree) if isinstance(tree, (Leaf, Spec)) else tree)

    def map_nodes(self, change: Callable[[Node], Node]) -> "Outcome":
        """The same with every Node changed."""
        return self._map(lambda tree: change(tree) if isinstance(tree, Node) else tree)

    def _map(self, change: Callable[[Any], Any]) -> "Outcome":
        elements = tuple(_mapped(element, change) for element in self.elements)
        return replace(self, elements=elements, value=_mapped(self.value, change), spec=_mapped(self.spec, change))


def _mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Node):
        tree = tree._replace(parts=tuple(_mapped(part, change) for part in tree.parts))
    return change(tree)


def canonical(element: Any) -> Any:
    """An element as Leaf and Node tuples."""
    return _walk(element, _leaf)


def canonical_spec(side: Side, spec: Any) -> Any:
    """An element_spec as Spec and Node tuples."""
    return _walk(spec, lambda leaf: Spec(*side.describe(leaf)))


def _walk(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Mapping):
        return Node(type(tree).__name__, tuple(tree), tuple(_walk(part, leaf) for part in tree.values()))
    if isinstance(tree, tuple):
        return Node(type(tree).__name__, getattr(tree, "_fields", ()), tuple(_walk(part, leaf) for part in tree))
    if is_dataclass(tree) and not isinstance(tree, type) and not hasattr(tree, "shape"):
        keys = tuple(member.name for member in fields(tree))
        return Node(type(tree).__name__, keys, tuple(_walk(getattr(tree, key), leaf) for key in keys))
    if isinstance(tree, list):
        return Node("list", (), tuple(_walk(part, leaf) for part in tree))
    return leaf(tree)


def _leaf(value: Any) -> Leaf:
    if isinstance(value, np.ndarray):
        return Leaf(value.dtype.name, value.shape, _comparable(value.tolist()))
    if isinstance(value, np.generic):
        return Leaf(value.dtype.name, None, _comparable(value.item()))
    # A Python number here would be a slip: both libraries promise NumPy scalars, so it must not pass for one.
    return Leaf(type(value).__name__, None, value)


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_comparable(item) for item in value)
    return "nan" if isinstance(value, float) and value != value else value


def observe(side: Side, build: Callable[[Side], Any], limit: int = LIMIT) -> Outcome:
    """Build and read; whatever the library or the function raises is part of the outcome."""
    try:
        made = side.call(build)
    except side.errors as error:
        return Outcome(failed="build", error=error)
    if not isinstance(made, side.Dataset):
        return Outcome(value=canonical(side.numpy(made)))
    return read(side, side.tuned(made), limit)


def _spec(side: Side, dataset: Any) -> Any:
    try:
        return canonical_spec(side, dataset.element_spec)
    except side.errors:
        return None


def read(side: Side, dataset: Any, limit: int = LIMIT) -> Outcome:
    """Cardinality, spec and up to `limit` elements of a dataset."""
    outcome = Outcome(cardinality=int(dataset.cardinality()), spec=_spec(side, dataset))
    elements: list[Any] = []
    try:
        rows: Iterable[Any] = dataset.as_numpy_iterator()
        elements.extend(canonical(element) for element in islice(rows, limit))
    except side.errors as error:
        return replace(outcome, elements=tuple(elements), failed="run", error=error)
    return replace(outcome, elements=tuple(elements), ended=len(elements) < limit)
