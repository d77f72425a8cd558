"""Functions that are known to work on whole columns."""

import sys
from dataclasses import replace

from forebay.ops.map import Map
from forebay.plan import Node


def map_columns(node: Node) -> Node | None:
    """Give a parser of serialized records whole columns of them instead of one record at a time."""
    if not isinstance(node, Map) or node.batched or node.rng or node.earlier or node.columns is not None:
        return None
    if "forebay.io" not in sys.modules:
        # Then nobody can have called a parser, and nothing has to be loaded to find that out.
        return None
    from forebay.io.columns import column_form

    columns = column_form(node.map_func)
    return None if columns is None else replace(node, columns=columns)
