"""Functions that run back to back."""

from dataclasses import replace

from forebay.ops.map import Map
from forebay.plan import Node


def fuse_maps(node: Node) -> Node | None:
    """Run the functions of two maps in one step. Whole-column functions stay on their own."""
    below = node.input if node.inputs else None
    if not isinstance(node, Map) or not isinstance(below, Map) or node.batched or below.batched:
        return None
    return replace(node, inputs=below.inputs, earlier=(*below.stages, *node.earlier))
