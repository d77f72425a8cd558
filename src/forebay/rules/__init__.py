"""The optimiser: every rule keeps a plan's output exactly as it is.

A rule takes a node whose inputs have been optimised and returns another in its place, or None. They are tried
in this order, from the sources up, until none has anything left to do.
"""

from importlib import import_module
from typing import Protocol, cast

from forebay.lazy import cached_property
from forebay.plan import Node
from forebay.rules.drop_noops import drop_noops


class Rule(Protocol):
    """What replaces a node, or leaves it."""

    __name__: str

    def __call__(self, node: Node, /) -> Node | None:
        """The node in its place; None if there is nothing to do."""


class RuleFor:
    """The rule of that name, in its own file, for steps of these kinds, directly `over` one of that kind if it says so.

    It is loaded with the first of them: rules know operators by their classes, and loading a shuffle to find out that
    there is none would take longer than most plans take to start.
    """

    def __init__(self, name: str, *kinds: str, over: str | None = None) -> None:
        self.__name__ = name
        self.kinds = kinds
        self.over = over

    def __call__(self, node: Node) -> Node | None:
        """What the rule says of a step that it is for."""
        if node.kind not in self.kinds or (self.over is not None and node.input.kind != self.over):
            return None
        return self.function(node)

    @cached_property
    def function(self) -> Rule:
        """The rule itself."""
        return cast(Rule, getattr(import_module(f"{__name__}.{self.__name__}"), self.__name__))


RULES: tuple[Rule, ...] = (
    drop_noops,  # Steps that do nothing should not stand between two that fit together.
    RuleFor("map_columns", "map"),  # Parsers need not see one record at a time.
    RuleFor("fuse_maps", "map", over="map"),  # Functions that run back to back need no columns in between.
    # take, skip and shard are arithmetic where rows can be read by number.
    RuleFor("push_down_slices", "take", "skip", "shard"),
    # A shuffle over such rows needs no buffer: it reads them in the order they come out.
    RuleFor("permute_reads", "shuffle"),
    # A thread that works ahead should not stop where a round ends.
    RuleFor("lift_prefetch", "repeat", over="prefetch"),
    # What is shuffled or left out need not go through a function first.
    RuleFor("lift_maps", "shuffle", "slice_rows", over="map"),
)

__all__ = ["RULES", "Rule", "RuleFor"]
