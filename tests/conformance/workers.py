"""Datasets rewritten to run on other workers than they were written for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import forebay as fb
from conformance.case import Case
from conformance.cases import BY_ID
from forebay.ops.interleave import Interleave
from forebay.ops.parallel import Parallel
from forebay.plan import Node


def _rewritten(node: Node, change: Callable[[Parallel], Node]) -> Node:
    inputs = tuple(_rewritten(child, change) for child in node.inputs)
    if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
        node = node.with_inputs(*inputs)
    return change(node) if isinstance(node, Parallel) else node


def on_workers(dataset: fb.Dataset[Any], calls: int | None, executor: str, block_bytes: int) -> fb.Dataset[Any]:
    """The same dataset with every step that has a function on so many workers of that kind."""

    def change(step: Parallel) -> Node:
        kind = executor if executor in step.executors else "thread"
        most = min(calls, step.slots) if calls is not None and isinstance(step, Interleave) else calls
        return replace(step, num_parallel_calls=most, executor=kind)

    changed: fb.Dataset[Any] = fb.Dataset(_rewritten(dataset.plan, change))
    return changed.with_options(fb.Options(block_bytes=block_bytes))


def last_on_threads(dataset: fb.Dataset[Any], calls: int, deterministic: bool) -> fb.Dataset[Any]:
    """The same dataset with its last step, which has a function, on threads and perhaps free to give any order."""
    last = dataset.plan
    assert isinstance(last, Parallel)
    most = min(calls, last.slots) if isinstance(last, Interleave) else calls
    changed = replace(last, num_parallel_calls=most, executor="thread", deterministic=deterministic)
    return fb.Dataset(changed).with_options(fb.Options(block_bytes=40))


@functools.cache
def _plan(case_id: str) -> Node:
    return BY_ID[case_id].build().plan


def _steps(node: Node) -> list[Node]:
    return [node, *(step for child in node.inputs for step in _steps(child))]


def has_function(case: Case) -> bool:
    """Whether any of its steps can run on workers."""
    return not case.one_at_a_time and any(isinstance(step, Parallel) for step in _steps(_plan(case.id)))


def can_use_processes(case: Case) -> bool:
    """Whether one of them can run on processes."""
    return any(isinstance(step, Parallel) and "process" in step.executors for step in _steps(_plan(case.id)))


def ends_in_function(case: Case) -> bool:
    """Whether its last step can run on workers."""
    return not case.one_at_a_time and isinstance(_plan(case.id), Parallel)
