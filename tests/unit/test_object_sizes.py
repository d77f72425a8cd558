"""What Python objects take up with all that belongs to them, and what a budget makes of that."""

import collections
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import forebay as fb
from forebay.block.leaf import held_bytes
from unit.support import assert_same

LARGE = 100_000


class Plain:
    def __init__(self, content: Any) -> None:
        self.content = content


class Slotted:
    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content


def large() -> Any:
    return np.zeros(LARGE, np.uint8)


def array_of(*items: Any) -> Any:
    array = np.empty(len(items), object)
    array[:] = items
    return array


HOLDERS = {
    "attribute": lambda: Plain(large()),
    "slot": lambda: Slotted(large()),
    "list": lambda: [1, [large()]],
    "dict": lambda: {"a": {"b": bytes(LARGE)}},
    "key": lambda: {bytes(LARGE): 1},
    "set": lambda: {"x" * LARGE},
    "deque": lambda: collections.deque(["x" * LARGE]),
    "array of text": lambda: array_of("x" * LARGE, None),
    "array of lists": lambda: array_of(["x" * LARGE], None),
    "array of an object": lambda: Plain(array_of("x" * LARGE, None)),
    "view": lambda: [large()[1:]],
}


@pytest.mark.parametrize("name", list(HOLDERS))
def test_all_that_belongs_to_an_object_counts(name: str) -> None:
    held = HOLDERS[name]()
    assert LARGE - 1 <= held_bytes([held]) <= LARGE + 2000
    assert held_bytes([held, held]) == held_bytes([held])


def test_what_others_refer_to_does_not_count() -> None:
    vocabulary = large()
    assert held_bytes([Plain(vocabulary), [vocabulary], {"a": vocabulary}]) < 1000
    # Neither do classes, modules, and the variables of functions.
    assert held_bytes([Plain, np, json.loads, lambda: vocabulary]) < 20_000


def test_rows_that_were_copied_count_as_before() -> None:
    array = array_of(["x" * LARGE], None)
    assert held_bytes([array.copy()]) == held_bytes([array]) > LARGE


def test_circles_end() -> None:
    alone: list[Any] = []
    alone.append(alone)
    pair: list[Any] = [["x" * LARGE]]
    pair[0].append(pair)
    assert held_bytes([alone]) < 1000
    assert held_bytes([pair]) > LARGE


@pytest.mark.parametrize("holder", [Plain, Slotted, lambda content: array_of([content], None)])
def test_an_object_that_is_larger_than_the_budget_is_an_error(holder: Any) -> None:
    rows = fb.Dataset.from_generator(lambda: (holder(bytes(n)) for n in (10, 4 << 20)))
    with pytest.raises(fb.errors.DataError, match=r"one element takes 4,\d+,\d+ bytes, and the budget is 1,048,576"):
        list(rows.with_options(fb.Options(memory="1MiB")))


def test_objects_that_a_cache_has_no_room_for_go_to_disk() -> None:
    rows = fb.Dataset.from_generator(lambda: (Plain(np.full(LARGE, i, np.uint8)) for i in range(100)))
    cached = rows.cache().with_options(fb.Options(memory=fb.Ledger("4MiB")))
    for _ in range(2):
        with iter(cached) as it:
            assert [int(row.content[-1]) for row in it] == list(range(100))
            # Half of the budget, less what waits to be written; it had all of them, and took them for nothing.
            assert 1 << 20 < it.ledger.holders()["cache"] < 2 << 20


@pytest.mark.parametrize("budget", ["1MiB", "1GiB"])
def test_lists_and_dicts_of_json_go_through_a_shuffle(tmp_path: Path, budget: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(json.dumps({"id": i, "tags": [{"n": j} for j in range(i % 5)]}) + "\n" for i in range(9000))
    )
    rows = fb.Dataset.from_json(str(path)).with_options(fb.Options(memory=budget))
    found = list(rows.shuffle(8000, seed=1))
    assert_same(sorted(found, key=lambda row: int(row["id"])), list(rows))


class Strange:
    """Neither its size nor its class can be asked for."""

    def __sizeof__(self) -> int:
        raise RuntimeError("asked for its size")

    @property
    def __class__(self) -> Any:
        raise RuntimeError("asked for its class")


def test_what_a_class_does_when_it_is_asked_ends_no_pipeline() -> None:
    assert LARGE < held_bytes([Plain([Strange(), bytes(LARGE)])]) < LARGE + 2000
    assert held_bytes([Plain(Mock(spec=np.ndarray))]) > 0
    rows = fb.Dataset.range(3).map(lambda i: Plain(Strange()))
    assert len(list(rows.cache().shuffle(2))) == 3


def test_what_all_rows_have_is_not_looked_through_for_each() -> None:
    asked: list[int] = []

    class Part:
        def __sizeof__(self) -> int:
            asked.append(1)
            return 1000

    shared = Plain([Part() for _ in range(1000)])
    rows = fb.Dataset.range(200).map(lambda i: (i, shared)).with_options(fb.Options(block_bytes=1))
    assert len(list(rows)) == 200
    assert len(asked) <= 10 * 1000
    # Nor is it taken for what it was before, until it has been the same for long.
    growing = Plain([Plain(i) for i in range(1000)])
    for i in range(5):
        growing.content.append(large())
        assert held_bytes([growing]) > (i + 1) * LARGE


def test_what_a_view_keeps_alone_counts() -> None:
    """A part of an array that a function has made, in an object: all of the array stays with it."""
    assert LARGE <= held_bytes([Plain(large()[::1000])]) < LARGE + 2000
    whole = large()
    views = [Plain(whole[::1000]), Plain(whole[1::1000])]
    assert held_bytes(views) < LARGE // 10
    del whole
    assert held_bytes(views) < LARGE // 10
