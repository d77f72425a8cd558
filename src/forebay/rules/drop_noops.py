"""Steps that hand on exactly what they get."""

from forebay.plan import Node


def drop_noops(node: Node) -> Node | None:
    """Replace a step that does nothing by its input."""
    return node.input if node.is_noop() else None
