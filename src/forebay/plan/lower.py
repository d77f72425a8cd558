"""From a plan to running operators: fill in seeds, apply the rules, build."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from forebay.plan.node import Node
from forebay.run import Operator, Setup
from forebay.run.keys import seed_of


def prepare(node: Node, run_seed: int, rules: tuple[Any, ...]) -> Node:
    """A plan made while running, as it will run."""
    return optimise(resolve_seeds(node, run_seed), rules)


def build(node: Node, setup: Setup) -> Operator:
    """The operators of a prepared plan."""
    operator = node.lower(setup, build)
    operator.count_in(setup.ledger)
    return operator


def check_use(node: Node, again: bool, reordered: bool = False) -> None:
    """Let steps warn of how others use them, where they are gone through `again` and again."""
    if again:
        node.check_use(reordered)
    for child in node.inputs:
        check_use(child, again or node.repeats, reordered or node.reorders)


def own_seeds(node: Node) -> list[int]:
    """A seed for every random step without one, in the order of the plan: the same wherever a step is built upon."""
    found = [seed for child in node.inputs for seed in own_seeds(child)]
    return [*found, node.nonce] if node.unseeded else found


def with_seeds(node: Node, seeds: Sequence[int]) -> Node:
    """The plan with these seeds in its random steps that have none, in the order of ``own_seeds``."""
    rest = iter(seeds)
    return _filled(node, lambda step: next(rest) if step.unseeded else None)


def resolve_seeds(node: Node, run_seed: int) -> Node:
    """The same with seeds that follow from another seed and from each step's place.

    For plans made while running: their steps are new with every call, so their nonces say nothing after a resume.
    """
    places = count()

    def derived(step: Node) -> int | None:
        place = next(places)
        return seed_of(run_seed, place) if step.unseeded else None

    return _filled(node, derived)


def _filled(node: Node, seed_of_step: Callable[[Node], int | None]) -> Node:
    inputs = tuple(_filled(child, seed_of_step) for child in node.inputs)
    changes: dict[str, Any] = {}
    if any(new is not old for new, old in zip(inputs, node.inputs)):
        changes["inputs"] = inputs
    if node.traits.random:
        seed = seed_of_step(node)
        if seed is not None:
            changes["seed"] = seed
    return replace(node, **changes) if changes else node


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
