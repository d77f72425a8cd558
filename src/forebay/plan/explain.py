"""Plans as text for people."""

from forebay.plan.node import INFINITE, UNKNOWN, Node


def explain(logical: Node, optimised: Node, found: dict[str, str]) -> str:
    """Both plans, the last step first, as it will run from the top down to the sources.

    `found` is what earlier runs have found out about steps, by where they were written.
    """
    notes = [f"  {site}: {note}" for site, note in found.items()]
    parts = ["As written:", *_tree(logical), "", "As it runs:", *_tree(optimised)]
    return "\n".join(parts + (["", "Found so far:", *notes] if notes else []))


def _tree(node: Node) -> list[str]:
    lines = _lines(node, "  ")
    width = max(len(text) for text, _ in lines)
    return [f"{text:<{width}}  {rows}" for text, rows in lines]


def _lines(node: Node, indent: str) -> list[tuple[str, str]]:
    label = f" {node.label!r}" if node.label else ""
    lines = [(f"{indent}{node.describe()}{label}", _rows(node.cardinality()))]
    deeper = indent if len(node.inputs) < 2 else indent + "  "
    for child in node.inputs:
        lines += _lines(child, deeper)
    return lines


def _rows(count: int) -> str:
    if count == INFINITE:
        return "endless"
    return "rows not known" if count == UNKNOWN else f"{count:,} rows"
