"""What a plan is and how it is run, as text to compare."""

from typing import Any

from forebay.digests import blake2b
from forebay.plan.fingerprint import digest
from forebay.plan.made import file_stamp
from forebay.plan.node import Node


def plan_steps(node: Node) -> list[Node]:
    """The steps that matter to the rows, sources first."""
    steps = [step for child in node.chained_inputs() for step in plan_steps(child)]
    return steps if node.traits.transparent else [*steps, node]


def plan_lines(node: Node) -> list[str]:
    """The plan as text to compare: a line for each of ``plan_steps``."""
    lines = []
    for step in plan_steps(node):
        inputs = len(step.chained_inputs())
        lines.append(f"{inputs if inputs > 1 else ''}{step.signature()}")
    return lines


Contents = list[tuple[Node, str]]


def content_key(contents: Contents, more: list[str]) -> str:
    """A digest of everything that decides about a plan's rows."""
    hasher = blake2b(digest_size=16)
    for line in [*(line for _, line in contents), *more]:
        hasher.update(line.encode("utf-8", "surrogatepass") + b"\0")
    return hasher.hexdigest()


def contents_of_plan(node: Node) -> Contents:
    """The steps that matter to the rows, sources first, each with a text of all that decides about them.

    Captured arrays and objects count with their contents, and all data of the plan is read for that.
    """
    inputs = node.chained_inputs()
    lines = [line for child in inputs for line in contents_of_plan(child)]
    if not node.traits.transparent:
        params = node.params()
        values = [f"{name}={digest(params[name], contents=True)}" for name in sorted(params)]
        values += [str(file_stamp(path)) for path in node.reads()]
        lines.append((node, f"{len(inputs)} {node.signature()} {' '.join(values)}"))
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
