"""What a plan is and how it is run, as text to compare."""

from typing import Any

from forebay.digests import blake2b
from forebay.plan.fingerprint import digest
from forebay.plan.made import file_stamp
from forebay.plan.node import Node


def plan_lines(node: Node) -> list[str]:
    """The plan as text to compare: a line per step that matters to the rows, sources first."""
    inputs = node.chained_inputs()
    lines = [line for child in inputs for line in plan_lines(child)]
    if not node.traits.transparent:
        indent = len(inputs) if len(inputs) > 1 else ""
        lines.append(f"{indent}{node.signature()}")
    return lines


def content_key(node: Node, more: list[str]) -> str:
    """A digest of everything that decides about a plan's rows, captured arrays and objects with their contents."""
    hasher = blake2b(digest_size=16)
    for line in [*_content_lines(node), *more]:
        hasher.update(line.encode("utf-8", "surrogatepass") + b"\0")
    return hasher.hexdigest()


def _content_lines(node: Node) -> list[str]:
    inputs = node.chained_inputs()
    lines = [line for child in inputs for line in _content_lines(child)]
    if not node.traits.transparent:
        params = node.params()
        values = [f"{name}={digest(params[name], contents=True)}" for name in sorted(params)]
        values += [str(file_stamp(path)) for path in node.reads()]
        lines.append(f"{len(inputs)} {node.signature()} {' '.join(values)}")
    return lines


def layout(node: Node, rules: tuple[Any, ...]) -> str:
    """How an optimised plan is run: cursors fit wherever this is the same."""
    inputs = ",".join(layout(child, rules) for child in node.inputs)
    if node.traits.transparent:
        return inputs
    own = node.layout()
    if node.traits.makes_plans:
        own += "".join(f" {rule.__name__}" for rule in rules)
    return f"{own}({inputs})" if inputs else own
