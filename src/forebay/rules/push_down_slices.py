"""Take, skip and shard as arithmetic on row numbers."""

from forebay.ops.prefetch import prefetch_below
from forebay.ops.shard import Shard
from forebay.ops.skip import Skip
from forebay.ops.slice_rows import SliceRows
from forebay.ops.take import Take
from forebay.plan import Node


def push_down_slices(node: Node) -> Node | None:
    """Turn a window over rows that can be read by number into reads of just those rows."""
    if not isinstance(node, (Take, Skip, Shard)) or prefetch_below(node.input) is not None:
        return None
    access = node.input.access()
    if access is None:
        return None
    start, stop, step = node.window().indices(access.length)
    below = node.input
    if isinstance(below, SliceRows):
        rows = range(below.start, below.stop, below.step)[start:stop:step]
        start, stop, step, below = rows.start, rows.stop, rows.step, below.input
    return SliceRows(inputs=(below,), start=start, stop=stop, step=step, label=node.label, where=node.where)
