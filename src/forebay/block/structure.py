"""The shape of an element around its leaves: dicts, tuples, named tuples and dataclasses, nested at will.

A structure is made once per block or function and then only compared; the leaves travel as columns beside it.
Lists are not structure: as in tf.data, a list is an array.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

Leaves = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Structure:
    """One level of nesting: what holds the children, how it names them, and the children themselves.

    `kind` is the container's type, or None for a leaf. `keys` are dict keys, field names, or empty for tuples.
    """

    kind: type[Any] | None
    keys: tuple[Any, ...] = ()
    children: tuple["Structure", ...] = ()

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind is None else sum(child.size for child in self.children)

    @property
    def is_leaf(self) -> bool:
        """Whether an element is nothing but a leaf."""
        return self.kind is None

    @property
    def is_tuple(self) -> bool:
        """Whether an element is passed to functions as separate arguments. As in tf.data, named tuples are not."""
        return self.kind is tuple

    def unflatten(self, leaves: Leaves) -> Any:
        """The element that has these leaves, in the order in which ``flatten`` gives them."""
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        parts = [child._build(leaves) for child in self.children]
        if self.kind is dict:
            return dict(zip(self.keys, parts))
        if self.kind is tuple:
            return tuple(parts)
        if self.keys and is_dataclass(self.kind):
            return _new_dataclass(self.kind, self.keys, parts)
        return self.kind(*parts)

    def builder(self) -> Callable[[Leaves], Any]:
        """``unflatten`` as a function that does the least work for this structure."""
        if self.kind is None:
            return lambda leaves: leaves[0]
        if all(child.is_leaf for child in self.children):
            if self.kind is tuple:
                return tuple
            if self.kind is dict:
                keys = self.keys
                return lambda leaves: dict(zip(keys, leaves))
        return self.unflatten

    def rows(self, columns: Sequence[Sequence[Any]], count: int) -> Iterator[Any]:
        """`count` elements from one sequence of values per leaf."""
        if self.kind is None:
            return iter(columns[0])
        if not columns:
            return (self.unflatten(()) for _ in range(count))
        if self.kind is tuple and all(child.is_leaf for child in self.children):
            return zip(*columns)
        return map(self.builder(), zip(*columns))

    def leaf_order(self, other: "Structure") -> list[int] | None:
        """Where the leaves of another structure are among this one's, if the two differ in dict order only."""
        return other.leaves_of(self.unflatten(range(self.size)))

    def leaves_of(self, element: Any, tuples_too: bool = False) -> list[Any] | None:
        """The leaves of an element that has this structure, or None when it has another. Dict order is free.

        `tuples_too` lets a tuple pass for a leaf, as the array it can be turned into.
        """
        leaves: list[Any] = []
        return leaves if self._collect(element, leaves, tuples_too) else None

    def _collect(self, element: Any, leaves: list[Any], tuples_too: bool) -> bool:
        if self.kind is None:
            leaves.append(element)
            return not is_container(type(element)) or (tuples_too and type(element) is tuple)
        if self.kind is dict:
            if not isinstance(element, Mapping) or len(element) != len(self.keys):
                return False
            return all(
                key in element and child._collect(element[key], leaves, tuples_too) for key, child in self._items()
            )
        if type(element) is not self.kind:
            return False
        if issubclass(self.kind, tuple):
            return len(element) == len(self.children) and all(
                child._collect(part, leaves, tuples_too) for child, part in zip(self.children, element)
            )
        return all(child._collect(getattr(element, key), leaves, tuples_too) for key, child in self._items())

    def _items(self) -> Iterator[tuple[Any, "Structure"]]:
        return zip(self.keys, self.children)

    def nest(self, parts: Sequence["Structure"]) -> "Structure":
        """This structure with each leaf replaced by a structure of its own."""
        rest = iter(parts)

        def build(node: "Structure") -> "Structure":
            return next(rest) if node.is_leaf else replace(node, children=tuple(map(build, node.children)))

        return build(self)

    def paths(self, prefix: str = "") -> Iterator[str]:
        """A name for each leaf, as one would write it: ``['image']``, ``[0].x``; empty for a lone leaf."""
        if self.kind is None:
            yield prefix
            return
        named = self.kind is not dict and bool(self.keys)
        for key, child in zip(self.keys or range(len(self.children)), self.children):
            yield from child.paths(f"{prefix}.{key}" if named else f"{prefix}[{key!r}]")

    def leaf_names(self) -> list[str]:
        """What errors call each leaf."""
        return [f"leaf {path}" if path else "the value" for path in self.paths()]

    def __str__(self) -> str:
        if self.kind is None:
            return "*"
        if self.kind is dict:
            return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(self.keys, self.children)) + "}"
        if self.keys:
            return f"{self.kind.__name__}(" + ", ".join(f"{k}={c}" for k, c in zip(self.keys, self.children)) + ")"
        return "(" + ", ".join(map(str, self.children)) + ("," if len(self.children) == 1 else "") + ")"


LEAF = Structure(None)


_CONTAINERS: dict[type[Any], bool] = {}


def is_container(kind: type[Any]) -> bool:
    """Whether values of that type are structure rather than leaves."""
    known = _CONTAINERS.get(kind)
    if known is None:
        known = kind is tuple or issubclass(kind, Mapping) or hasattr(kind, "_fields") or is_dataclass(kind)
        _CONTAINERS[kind] = known
    return known


def flatten(element: Any, leaf_types: tuple[type[Any], ...] = ()) -> tuple[list[Any], Structure]:
    """The leaves of an element and the structure around them; `leaf_types` are not looked into."""
    leaves: list[Any] = []
    return leaves, _flatten(element, leaves, leaf_types)


def _flatten(element: Any, leaves: list[Any], leaf_types: tuple[type[Any], ...]) -> Structure:
    kind = type(element)
    if not is_container(kind) or isinstance(element, leaf_types):
        leaves.append(element)
        return LEAF
    keys: tuple[Any, ...] = ()
    if isinstance(element, Mapping):
        # Any mapping comes back as a dict: its own class may not be constructible from items.
        kind, keys, parts = dict, tuple(element), [element[key] for key in element]
    elif isinstance(element, tuple):
        keys, parts = getattr(kind, "_fields", ()), list(element)
    else:
        keys = tuple(field.name for field in fields(element))
        parts = [getattr(element, key) for key in keys]
    return Structure(kind, keys, tuple(_flatten(part, leaves, leaf_types) for part in parts))


def _new_dataclass(kind: type[Any], names: Sequence[str], values: Sequence[Any]) -> Any:
    # Set field by field: __init__ may not take every field (init=False) or may do work a second time.
    made = object.__new__(kind)
    for name, value in zip(names, values):
        object.__setattr__(made, name, value)
    return made
