"""What to do: immutable nodes, rules that rewrite them, and the way from a plan to operators."""

from forebay.plan.lower import build, check_use, optimise, own_seeds, prepare, resolve_seeds, with_seeds
from forebay.plan.node import INFINITE, UNKNOWN, Build, Node, Traits
from forebay.plan.site import caller

__all__ = [
    "INFINITE",
    "UNKNOWN",
    "Build",
    "Node",
    "Traits",
    "build",
    "caller",
    "check_use",
    "optimise",
    "own_seeds",
    "prepare",
    "resolve_seeds",
    "with_seeds",
]
