"""A shuffle as reads in shuffled order."""

from dataclasses import replace

from forebay.ops.prefetch import prefetch_below
from forebay.ops.shuffle import Shuffle
from forebay.plan import Node


def permute_reads(node: Node) -> Node | None:
    """Read the buffer's picks by number, where the input allows it, instead of keeping rows in a buffer."""
    if not isinstance(node, Shuffle) or node.whole or node.by_number or node.input.access() is None:
        return None
    if prefetch_below(node.input) is not None:
        return None
    return replace(node, by_number=True)
