"""Element specs worked out without running anything."""

from collections.abc import Callable, Sequence
from typing import Any

from forebay.block import TensorSpec, flatten
from forebay.plan.node import Node


def element_spec(node: Node, peek: Callable[[Node], Any]) -> Any:
    """The spec of a plan's elements; `peek` looks at an element of those steps that cannot tell theirs."""
    inputs = [element_spec(child, peek) for child in node.inputs]
    spec = node.spec(*inputs) if None not in inputs else None
    return peek(node) if spec is None else spec


def static_spec(node: Node) -> Any | None:
    """The same without running anything; None where that is not enough."""
    return element_spec(node, lambda node: None)


def common_spec(specs: Sequence[Any | None]) -> Any | None:
    """What all of these allow: sizes that differ become None. None if one is unknown or they do not match."""
    if any(spec is None for spec in specs):
        return None
    flat = [flatten(spec, (TensorSpec,)) for spec in specs]
    structure = flat[0][1]
    orders = [other.leaf_order(structure) for _, other in flat]
    if None in orders:
        return None
    ordered = [[leaves[i] for i in order] for (leaves, _), order in zip(flat, orders) if order is not None]
    merged = [_merge(leaves) for leaves in zip(*ordered)]
    return None if None in merged else structure.unflatten(merged)


def same_kind(one: Any, other: Any) -> bool:
    """Whether elements of both specs could come out of one dataset: same structure and dtypes, any shapes."""
    (leaves, structure), (others, other_structure) = flatten(one, (TensorSpec,)), flatten(other, (TensorSpec,))
    order = other_structure.leaf_order(structure)
    return order is not None and all(leaf.dtype == others[i].dtype for leaf, i in zip(leaves, order))


def _merge(leaves: Sequence[TensorSpec]) -> TensorSpec | None:
    if len({leaf.dtype for leaf in leaves}) > 1:
        return None
    shapes = [leaf.shape for leaf in leaves if leaf.shape is not None]
    if len(shapes) < len(leaves) or len({len(shape) for shape in shapes}) > 1:
        return TensorSpec(None, leaves[0].dtype)
    sizes = [size.pop() if len(size := set(column)) == 1 else None for column in zip(*shapes)]
    return TensorSpec(sizes, leaves[0].dtype)


def map_spec(function: Callable[[TensorSpec], TensorSpec | None], spec: Any | None) -> Any | None:
    """The spec with `function` applied to every leaf; None if it says None for one."""
    if spec is None:
        return None
    leaves, structure = flatten(spec, (TensorSpec,))
    mapped = [function(leaf) for leaf in leaves]
    return None if None in mapped else structure.unflatten(mapped)
