"""Working ahead, across the end of an epoch."""

from forebay.ops.prefetch import Prefetch
from forebay.ops.repeat import Repeat
from forebay.plan import Node


def lift_prefetch(node: Node) -> Node | None:
    """Repeat first and work ahead of all rounds, so that the next one is under way when one ends."""
    below = node.input if node.inputs else None
    if not isinstance(node, Repeat) or not isinstance(below, Prefetch):
        return None
    return below.with_inputs(node.with_inputs(below.input))
