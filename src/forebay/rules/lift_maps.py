"""Functions above reads by number."""

from dataclasses import replace

from forebay.ops.enumerate import Enumerate
from forebay.ops.map import Map
from forebay.ops.shuffle import Shuffle
from forebay.ops.slice_rows import SliceRows
from forebay.plan import Node


def lift_maps(node: Node) -> Node | None:
    """Shuffle or slice first, then call the function, which can then run on workers.

    The function goes with the element's number: random numbers and errors follow it, not the place in the new order.
    """
    below = node.input if node.inputs else None
    if not isinstance(below, Map) or below.skips or not isinstance(node, (Shuffle, SliceRows)):
        return None
    if isinstance(node, Shuffle) and not (node.whole or node.by_number):
        return None
    source = below.input if below.numbered else Enumerate(inputs=below.inputs, start=0, where=below.where)
    return replace(below, inputs=(node.with_inputs(source),), numbered=True)
