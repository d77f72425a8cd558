"""Steps that others must not be moved past."""

from forebay.plan import Node


def works_ahead(node: Node) -> bool:
    """Whether a step at or below this one runs on a thread of its own, which reading by number would do without."""
    return node.kind == "prefetch" or any(works_ahead(child) for child in node.inputs)
