"""Functions that run back to back."""

from dataclasses import replace

from forebay.ops.map import Map
from forebay.plan import Node


def fuse_maps(node: Node) -> Node | None:
    """Run the functions of two maps in one step. Whole-column functions stay on their own, and so do functions that
    are to run on different workers or whose failures are passed over."""
    below = node.input if node.inputs else None
    if isinstance(node, Map) and isinstance(below, Map) and not node.shares_workers(below):
        return None
    return fuse_all_maps(node)


def fuse_all_maps(node: Node) -> Node | None:
    """The same whatever workers they are to run on: for a state that was saved when they ran on the same ones."""
    below = node.input if node.inputs else None
    if not isinstance(node, Map) or not isinstance(below, Map) or node.batched or below.batched:
        return None
    if node.columns is not None or below.columns is not None or node.skips or below.skips:
        return None
    if node.numbered != below.numbered:
        # A step between them has given elements other numbers, which random numbers and errors go by.
        return None
    return replace(node, inputs=below.inputs, earlier=(*below.calls, *node.earlier))
