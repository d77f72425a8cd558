"""The optimiser: every rule keeps a plan's output exactly as it is.

A rule takes a node whose inputs have been optimised and returns another in its place, or None. They are tried
in this order, from the sources up, until none has anything left to do.
"""

from collections.abc import Callable

from forebay.plan import Node
from forebay.rules.drop_noops import drop_noops
from forebay.rules.fuse_maps import fuse_maps
from forebay.rules.lift_maps import lift_maps
from forebay.rules.lift_prefetch import lift_prefetch
from forebay.rules.map_columns import map_columns
from forebay.rules.permute_reads import permute_reads
from forebay.rules.push_down_slices import push_down_slices

Rule = Callable[[Node], Node | None]

RULES: tuple[Rule, ...] = (
    drop_noops,  # Steps that do nothing should not stand between two that fit together.
    map_columns,  # Parsers need not see one record at a time.
    fuse_maps,  # Functions that run back to back need no columns in between.
    push_down_slices,  # take, skip and shard are arithmetic where rows can be read by number.
    permute_reads,  # A shuffle over such rows needs no buffer: it reads them in the order they come out.
    lift_prefetch,  # A thread that works ahead should not stop where a round ends.
    lift_maps,  # What is shuffled or left out need not go through a function first.
)

__all__ = ["RULES", "Rule"]
