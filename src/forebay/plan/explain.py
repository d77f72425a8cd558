"""Plans as text for people."""

import re
from collections.abc import Collection

from forebay.plan.node import INFINITE, UNKNOWN, Node

_SEED = re.compile(r"\bseed=(\d+)")


def explain(logical: Node, optimised: Node, drawn: Collection[int], found: list[tuple[str, str]]) -> str:
    """Both plans, the last step first, as it will run from the top down to the sources.

    `drawn` are the seeds that nobody gave: with one of them in its place, a step would do the same in any program.
    `found` is what earlier runs have found out about steps, each with where it was written.
    """
    notes = [f"  {site}: {note}" for site, note in found]
    parts = ["As written:", *_tree(logical), "", "As it runs:", *_tree(optimised, drawn)]
    return "\n".join(parts + (["", "Found so far:", *notes] if notes else []))


def _tree(node: Node, drawn: Collection[int] = ()) -> list[str]:
    lines = [(with_drawn(text, drawn), count) for text, count in _lines(node, "  ", "  ")]
    width = max(len(text) for text, _ in lines)
    return [f"{text:<{width}}  {count}" for text, count in lines]


def with_drawn(text: str, drawn: Collection[int]) -> str:
    """The line of a step, with a word before a seed that nobody gave."""
    return _SEED.sub(lambda seed: f"seed=drawn {seed[1]}" if int(seed[1]) in drawn else seed[0], text)


def _lines(node: Node, first: str, rest: str) -> list[tuple[str, str]]:
    """A chain goes straight down; where several inputs come together, each has a branch of its own.

    `first` stands before the step's own line, `rest` before those of its inputs.
    """
    label = f" {node.label!r}" if node.label else ""
    lines = [(f"{first}{node.describe()}{label}", _count(node.cardinality()))]
    if len(node.inputs) == 1:
        return lines + _lines(node.input, rest, rest)
    for number, child in enumerate(node.inputs, 1):
        branch, trunk = ("├─ ", "│  ") if number < len(node.inputs) else ("└─ ", "   ")
        lines += _lines(child, rest + branch, rest + trunk)
    return lines


def _count(count: int) -> str:
    if count == INFINITE:
        return "endless"
    return "elements not known" if count == UNKNOWN else f"{count:,} element{'s' * (count != 1)}"
