"""What to do: immutable nodes, rules that rewrite them, and the way from a plan to operators."""

from forebay.plan.lower import build, optimise, prepare, resolve_seeds
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
    "optimise",
    "prepare",
    "resolve_seeds",
]
