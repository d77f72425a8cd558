"""From a plan to running operators: fill in seeds, apply the rules, build."""

from dataclasses import replace
from itertools import count
from typing import Any

from forebay.plan.node import Node
from forebay.run import Operator, Setup
from forebay.run.keys import seed_of


def prepare(node: Node, run_seed: int, rules: tuple[Any, ...]) -> Node:
    """The plan as it will run."""
    return optimise(resolve_seeds(node, run_seed), rules)


def build(node: Node, setup: Setup) -> Operator:
    """The operators of a prepared plan."""
    return node.lower(setup, build)


def resolve_seeds(node: Node, run_seed: int) -> Node:
    """The plan with a seed in every random step: the user's, or one that follows from the run and its place."""
    places = count()

    def resolve(node: Node) -> Node:
        inputs = tuple(resolve(child) for child in node.inputs)
        changes: dict[str, Any] = {}
        if any(new is not old for new, old in zip(inputs, node.inputs)):
            changes["inputs"] = inputs
        if node.traits.random:
            place = next(places)
            if getattr(node, "seed") is None:  # noqa: B009 - only nodes with the trait have the field
                changes["seed"] = seed_of(run_seed, place)
        return replace(node, **changes) if changes else node

    return resolve(node)


def optimise(node: Node, rules: tuple[Any, ...]) -> Node:
    """The plan after all rules, applied from the sources up until none has anything left to do."""
    inputs = tuple(optimise(child, rules) for child in node.inputs)
    if any(new is not old for new, old in zip(inputs, node.inputs)):
        node = node.with_inputs(*inputs)
    for rule in rules:
        rewritten = rule(node)
        if rewritten is not None:
            return optimise(rewritten, rules)
    return node
