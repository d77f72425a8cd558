"""Operators that make datasets of elements and take turns or read ahead: interleave, flat_map on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformance.case import Case
from conformance.cases.common import Dataset, batches, i64, range_, scalars, slices

LENGTHS = (7, 3, 0, 9, 1, 1, 12, 2, 0, 0, 5)


def _inner(index: Any, length: Any) -> Dataset:
    return range_(100 * index, 100 * index + length)


def _elements(lengths: Sequence[int] = LENGTHS) -> Dataset:
    return slices((np.arange(len(lengths)), i64(lengths)))


def _turns(rows: Sequence[Sequence[Any]], cycle: int, block: int) -> list[Any]:
    """tf.data's order: a slot whose dataset has ended gives its turn up and is filled when its next one comes."""
    unread = list(rows)
    slots: list[list[Any] | None] = [None] * cycle
    found: list[Any] = []
    slot = 0
    while unread or any(one is not None for one in slots):
        if slots[slot] is None and unread:
            slots[slot] = list(unread.pop(0))
        mine = slots[slot]
        if mine is not None:
            found += mine[:block]
            # Rows short of a whole turn show the end at once; otherwise it shows in the next turn.
            slots[slot] = mine[block:] if len(mine) >= block else None
        slot = (slot + 1) % cycle
    return found


def _expected(cycle: int, block: int, lengths: Sequence[int] = LENGTHS) -> Callable[[], list[Any]]:
    return lambda: scalars(_turns([range(100 * i, 100 * i + n) for i, n in enumerate(lengths)], cycle, block))


def _woven(cycle: int | None, block: int | None, calls: int | None = None) -> Callable[[], Dataset]:
    return lambda: _elements().interleave(_inner, cycle, block, calls)


def _nested(i: Any) -> Dataset:
    return range_(3).map(lambda r: {"id": (i, r), "text": f"{i}/{r}", "row": np.full(int(i) + 1, r)})


def _nested_rows(i: int) -> list[Any]:
    return [
        {"id": (np.int64(i), np.int64(r)), "text": f"{i}/{r}", "row": np.full(i + 1, r, np.int64)} for r in range(3)
    ]


def _odd(i: Any) -> Dataset:
    return range_(100 * i, 100 * i + 9).filter(lambda x: x % 2 == 1)


def _odd_rows(count: int) -> list[list[int]]:
    return [[100 * i + r for r in (1, 3, 5, 7)] for i in range(count)]


def _flat(lengths: Sequence[int] = LENGTHS) -> list[Any]:
    return scalars(100 * i + r for i, n in enumerate(lengths) for r in range(n))


CASES = [
    *(
        Case(
            f"interleave.cycle_{cycle}_block_{block}{'_threads' if calls else ''}",
            _woven(cycle, block, calls),
            _expected(cycle, block),
            unknown_length=True,
        )
        for cycle, block, calls in (
            (1, 1, None),
            (1, 3, 1),
            (2, 1, None),
            (2, 3, 2),
            (3, 1, 2),
            (3, 3, None),
            (16, 1, 4),
            (16, 3, None),
        )
    ),
    Case("interleave.default", _woven(None, None), _expected(16, 1), unknown_length=True),
    Case("interleave.of_nothing", lambda: range_(0).interleave(lambda i: range_(3), 2), [], unknown_length=True),
    Case("interleave.all_empty", lambda: range_(7).interleave(lambda i: range_(0), 2, 1, 2), [], unknown_length=True),
    Case(
        "interleave.structures",
        lambda: range_(4).interleave(_nested, 3),
        lambda: _turns([_nested_rows(i) for i in range(4)], 3, 1),
        unknown_length=True,
    ),
    Case(
        "interleave.structures_on_threads",
        lambda: range_(4).interleave(_nested, 2, 2, 2),
        lambda: _turns([_nested_rows(i) for i in range(4)], 2, 2),
        unknown_length=True,
    ),
    Case(
        "interleave.inner_filter",
        lambda: range_(6).interleave(_odd, 4, 3, 2),
        lambda: scalars(_turns(_odd_rows(6), 4, 3)),
        unknown_length=True,
    ),
    Case(
        "interleave.endless_inner",
        lambda: range_(3).interleave(lambda i: Dataset.counter(100 * i), 2, 2, 2),
        scalars(100 * (k // 2 % 2) + k // 4 * 2 + k % 2 for k in range(22)),
        limit=22,
        threaded=True,
        unknown_length=True,
    ),
    Case(
        "interleave.of_itself",
        lambda: range_(3).interleave(lambda i: range_(i, i + 3).interleave(lambda j: _inner(j, 2), 2), 2),
        lambda: scalars(
            _turns([_turns([[100 * j, 100 * j + 1] for j in range(i, i + 3)], 2, 1) for i in range(3)], 2, 1)
        ),
        unknown_length=True,
    ),
    Case(
        "interleave.then_batch",
        lambda: _elements().interleave(_inner, 3, 2, 3).batch(4),
        lambda: batches(i64(_expected(3, 2)()), 4),
        unknown_length=True,
    ),
    Case(
        "interleave.repeated",
        lambda: _elements().interleave(_inner, 3, 1, 2).repeat(2),
        lambda: _expected(3, 1)() * 2,
        unknown_length=True,
    ),
    Case(
        "interleave.then_skip_shard",
        lambda: _elements().interleave(_inner, 3).skip(5).shard(3, 1),
        lambda: _expected(3, 1)()[6::3],
        unknown_length=True,
    ),
    Case(
        "flat_map.threads",
        lambda: _elements().flat_map(_inner, num_parallel_calls=3),
        _flat,
        unknown_length=True,
    ),
    Case(
        "flat_map.threads_inner_filter",
        lambda: range_(6).flat_map(_odd, num_parallel_calls=2),
        lambda: scalars(x for rows in _odd_rows(6) for x in rows),
        unknown_length=True,
    ),
    Case(
        "flat_map.threads_structures",
        lambda: range_(4).flat_map(_nested, num_parallel_calls=4),
        lambda: [row for i in range(4) for row in _nested_rows(i)],
        unknown_length=True,
    ),
    Case(
        "flat_map.threads_then_batch_repeated",
        lambda: _elements().flat_map(_inner, num_parallel_calls=2).batch(4).repeat(2),
        lambda: batches(i64(_flat()), 4) * 2,
        unknown_length=True,
    ),
    Case(
        "flat_map.threads_endless",
        lambda: Dataset.counter(1).flat_map(lambda i: range_(i % 4), num_parallel_calls=2),
        scalars([0, 0, 1, 0, 1, 2] * 4),
        limit=24,
        threaded=True,
        unknown_length=True,
    ),
]
