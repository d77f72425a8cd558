"""What a chain of operators means, in lists and itertools.

An element is an int, a str, a list (an array: nested lists of one depth), a tuple or a dict. A chain is a
list of source elements and a tuple of steps. Everything is a generator, so endless streams and streams that
end in an error have a meaning too. What a shuffle makes of its input is not the model's to say: it asks
`shuffled`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple


class Step(NamedTuple):
    """One operator: its name and its arguments."""

    name: str
    args: tuple[Any, ...] = ()


class ModelError(Exception):
    """The chain cannot go on: an element does not fit an operator."""


# How the input of the shuffle at this depth comes out in this epoch.
Shuffled = Callable[[int, int, list[Any]], list[Any]]


def meaning(source: Sequence[Any], steps: Sequence[Step], shuffled: Shuffled, epoch: int = 0) -> Iterator[Any]:
    """The elements that the chain gives in that epoch."""
    if not steps:
        yield from source
        return
    step, depth = steps[-1], len(steps)

    def upstream(in_epoch: int = epoch) -> Iterator[Any]:
        return meaning(source, steps[:-1], shuffled, in_epoch)

    if step.name == "shuffle":
        yield from shuffled(depth, epoch, list(upstream()))
    elif step.name == "repeat":
        count = step.args[0]
        for r in range(count):
            yield from upstream(epoch * count + r)
    elif step.name == "repeat_for_ever":
        yield from _for_ever(upstream)
    elif step.name == "concatenate_head":
        yield from itertools.chain(upstream(), itertools.islice(upstream(), step.args[0]))
    elif step.name == "zip_with_tail":
        yield from zip(upstream(), itertools.islice(upstream(), step.args[0], None), strict=False)
    else:
        yield from OPERATORS[step.name](upstream(), *step.args)


def _for_ever(upstream: Callable[[int], Iterator[Any]]) -> Iterator[Any]:
    for r in itertools.count():
        count = 0
        for element in upstream(r):
            count += 1
            yield element
        if count == 0:
            return


def _batch(rows: Iterator[Any], size: int, drop_remainder: bool) -> Iterator[Any]:
    while group := list(itertools.islice(rows, size)):
        if len(group) < size and drop_remainder:
            return
        yield stack(group)


def _unbatch(rows: Iterator[Any]) -> Iterator[Any]:
    for row in rows:
        if len({len(leaf) for leaf in leaves(row)}) > 1:
            raise ModelError("leaves of unequal length")
        for i in range(len(next(leaves(row)))):
            yield over_leaves(lambda leaf, i=i: leaf[i], row)


def _shard(rows: Iterator[Any], count: int, index: int) -> Iterator[Any]:
    return itertools.islice(rows, index, None, count)


def _flat_map(rows: Iterator[Any], most: int) -> Iterator[Any]:
    for row in rows:
        n = total(row)
        for j in range(n % (most + 1)):
            yield n + j


OPERATORS: dict[str, Callable[..., Iterator[Any]]] = {
    "take": lambda rows, n: itertools.islice(rows, n),
    "skip": lambda rows, n: itertools.islice(rows, n, None),
    "shard": _shard,
    "enumerate": lambda rows, start: ((start + i, row) for i, row in enumerate(rows)),
    "map": lambda rows, name: map(FUNCTIONS[name], rows),
    "map_batched": lambda rows, name: map(FUNCTIONS[name], rows),
    "filter": lambda rows, m, r: (row for row in rows if keeps(row, m, r)),
    "filter_batched": lambda rows, m, r: (row for row in rows if keeps(row, m, r)),
    "take_while": lambda rows, m, r: itertools.takewhile(lambda row: keeps(row, m, r), rows),
    "batch": _batch,
    "unbatch": _unbatch,
    "flat_map": _flat_map,
    "prefetch": lambda rows, n: rows,
}


def total(row: Any) -> int:
    """One number that stands for everything in the element."""
    return sum(_leaf_total(leaf) for leaf in leaves(row))


def _leaf_total(leaf: Any) -> int:
    if isinstance(leaf, list):
        return len(leaf) + sum(map(_leaf_total, leaf))
    return len(leaf) if isinstance(leaf, str) else leaf


def keeps(row: Any, modulus: int, remainder: int) -> bool:
    return total(row) % modulus != remainder


def _add(leaf: Any) -> Any:
    if isinstance(leaf, list):
        return list(map(_add, leaf))
    return leaf + "+" if isinstance(leaf, str) else leaf + 1


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda row: over_leaves(_add, row),
    "pair": lambda row: (row, row),
    "label": lambda row: {"v": row, "n": total(row)},
    "first": lambda row: row[0] if isinstance(row, tuple) else next(iter(row.values())),
    "total": total,
    "text": lambda row: "\0" * (total(row) % 3) + f"{total(row)}🎏"[: total(row) % 5],
    "ragged": lambda row: list(range(row % 4)),
}


def leaves(row: Any) -> Iterator[Any]:
    if isinstance(row, (tuple, dict)):
        for part in row.values() if isinstance(row, dict) else row:
            yield from leaves(part)
    else:
        yield row


def over_leaves(function: Callable[[Any], Any], row: Any) -> Any:
    """The same structure, the function applied to each leaf."""
    if isinstance(row, dict):
        return {key: over_leaves(function, part) for key, part in row.items()}
    if isinstance(row, tuple):
        return tuple(over_leaves(function, part) for part in row)
    return function(row)


def stack(rows: list[Any]) -> Any:
    """One element out of several: each leaf a list of theirs, which have to be alike in shape."""
    first = rows[0]
    if isinstance(first, dict):
        return {key: stack([row[key] for row in rows]) for key in first}
    if isinstance(first, tuple):
        return tuple(stack([row[i] for row in rows]) for i in range(len(first)))
    if len({_shape(row) for row in rows}) > 1:
        raise ModelError("leaves of unequal shape")
    return rows


def _shape(leaf: Any) -> tuple[int, ...]:
    if not isinstance(leaf, list):
        return ()
    return (len(leaf), *(_shape(leaf[0]) if leaf else ()))


def fits_buffer(inputs: list[Any], outputs: list[Any], buffer_size: int) -> bool:
    """Whether a buffer of that size can turn the inputs into the outputs: output t came in before t + size.

    Equal elements cannot be told apart, so each output takes the earliest one that is left; if that one came
    in too late, so did the others.
    """
    places: dict[str, list[int]] = {}
    for i in reversed(range(len(inputs))):
        places.setdefault(repr(inputs[i]), []).append(i)
    if len(inputs) != len(outputs):
        return False
    return all(bool(left := places.get(repr(row))) and left.pop() < t + buffer_size for t, row in enumerate(outputs))
