"""States of other datasets are refused, and the reason named; states of the same dataset never are."""

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import CursorError, Dataset
from unit.support import SETTINGS, plain, resumed, saved

# Other datasets

OTHERS: list[tuple[Callable[[], Dataset[Any]], Callable[[], Dataset[Any]], str]] = [
    (
        lambda: Dataset.range(9),
        lambda: Dataset.range(10),
        r"step 1 was range\(start=0, stop=9, step=1\), here it is range\(start=0, stop=10, step=1\)",
    ),
    (
        lambda: Dataset.range(9).skip(1).take(3),
        lambda: Dataset.range(9).skip(1).take(4),
        r"step 3 was take\(count=3\), here it is take\(count=4\)",
    ),
    (
        lambda: Dataset.range(9).batch(2),
        lambda: Dataset.range(9).batch(2, drop_remainder=True),
        r"step 2 was batch\(batch_size=2, drop_remainder=False\), here it is .*drop_remainder=True",
    ),
    (
        lambda: Dataset.range(9).shuffle(5, seed=1),
        lambda: Dataset.range(9).shuffle(5, seed=2),
        r"step 2 was shuffle\(buffer_size=5, seed=1\), here it is shuffle\(buffer_size=5, seed=2\)",
    ),
    (lambda: Dataset.range(9).shuffle(5, seed=1), lambda: Dataset.range(9).shuffle(5), r"seed=1"),
    (
        lambda: Dataset.range(9).shuffle(5, seed=1),
        lambda: Dataset.range(9).shuffle(5, 1, reshuffle_each_iteration=False),
        r"reshuffle_each_iteration=False",
    ),
    (
        lambda: Dataset.range(9).map(abs),
        lambda: Dataset.range(9).filter(bool),
        r"step 2 was map\(map_func=abs\), here it is filter\(predicate=",
    ),
    (
        lambda: Dataset.range(9).batch(2),
        lambda: Dataset.range(9),
        r"the saved one goes on with batch\(batch_size=2, drop_remainder=False\), this one ends",
    ),
    (
        lambda: Dataset.range(9),
        lambda: Dataset.range(9).batch(2),
        r"this one goes on with batch\(batch_size=2, drop_remainder=False\), the saved one ends",
    ),
    (
        lambda: Dataset.zip(Dataset.range(9), Dataset.range(8)),
        lambda: Dataset.zip(Dataset.range(9), Dataset.range(7)),
        r"step 2 was range\(start=0, stop=8",
    ),
    (lambda: Dataset.zip(Dataset.range(9)), lambda: Dataset.zip({"a": Dataset.range(9)}), r"zip\(structure="),
    (
        lambda: Dataset.range(9).concatenate(Dataset.range(9)),
        lambda: Dataset.zip(Dataset.range(9), Dataset.range(9)).map(lambda a, b: a),
        r"concatenate\(\).*zip\(",
    ),
    (
        lambda: Dataset.from_tensor_slices(np.zeros(9)),
        lambda: Dataset.from_tensor_slices(np.zeros((9, 1))),
        r"float64\[\].*float64\[1\]",
    ),
    (
        lambda: Dataset.range(9).map(lambda x, rng: x, rng=True, seed=1),
        lambda: Dataset.range(9).map(lambda x, rng: x, rng=True, seed=2),
        r"seed=1.*seed=2",
    ),
    (lambda: Dataset.random(seed=1), lambda: Dataset.random(seed=2), r"random\(seed=1.*random\(seed=2"),
    (lambda: Dataset.counter(1), lambda: Dataset.counter(2), r"counter\(start=1.*counter\(start=2"),
]


@pytest.mark.parametrize(("there", "here", "reason"), OTHERS, ids=[str(i) for i in range(len(OTHERS))])
def test_a_state_of_another_dataset_is_refused_and_the_step_named(
    there: Callable[[], Dataset[Any]], here: Callable[[], Dataset[Any]], reason: str
) -> None:
    state = saved(there(), 2)
    for strict in (True, False):
        with pytest.raises(CursorError, match=f"saved by another dataset: .*{reason}"):
            resumed(here(), state, strict=strict)
    resumed(there(), state)


SCALE = 1


def scaled(x: Any) -> Any:
    return x * SCALE


def adding(amount: Any) -> Callable[[Any], Any]:
    return lambda x: x + amount


def with_default(amount: Any) -> Callable[[Any], Any]:
    def add(x: Any, by: Any = amount) -> Any:
        return x + by

    return add


def calling(helper: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: helper(x)


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


def more_numbers(count: int) -> Iterator[int]:
    yield from range(0, count)  # noqa: PIE808 - another function, if hardly


more_numbers.__qualname__ = "numbers"

CHANGED: list[tuple[Callable[[], Dataset[Any]], Callable[[], Dataset[Any]]]] = [
    (lambda: Dataset.range(9).map(lambda x: x + 1), lambda: Dataset.range(9).map(lambda x: x + 2)),
    (lambda: Dataset.range(9).map(lambda x: x + 1), lambda: Dataset.range(9).map(lambda x: x - 1)),
    (lambda: Dataset.range(9).map(adding(1)), lambda: Dataset.range(9).map(adding(2))),
    (lambda: Dataset.range(9).map(adding((1, 2))), lambda: Dataset.range(9).map(adding((1, 3)))),
    (lambda: Dataset.range(9).map(adding(np.zeros(3))), lambda: Dataset.range(9).map(adding(np.zeros(4)))),
    (lambda: Dataset.range(9).map(adding(np.zeros(3))), lambda: Dataset.range(9).map(adding(np.zeros(3, np.float32)))),
    (lambda: Dataset.range(9).map(adding(np.int8(1))), lambda: Dataset.range(9).map(adding(np.int16(1)))),
    (lambda: Dataset.range(9).map(with_default(1)), lambda: Dataset.range(9).map(with_default(2))),
    (lambda: Dataset.range(9).map(calling(adding(1))), lambda: Dataset.range(9).map(calling(adding(2)))),
    (
        lambda: Dataset.range(9).map(functools.partial(max, 1)),
        lambda: Dataset.range(9).map(functools.partial(max, 2)),
    ),
    (lambda: Dataset.range(9).filter(lambda x: x > 1), lambda: Dataset.range(9).filter(lambda x: x > 2)),
    (lambda: Dataset.from_tensor_slices([1, 2, 3]), lambda: Dataset.from_tensor_slices([1, 2, 4])),
    (lambda: Dataset.from_tensor_slices(["a", "b"]), lambda: Dataset.from_tensor_slices(["a", "c"])),
    (
        lambda: Dataset.from_tensor_slices(([1, 2], [[1], [2, 3]])),
        lambda: Dataset.from_tensor_slices(([1, 2], [[1], [2, 4]])),
    ),
    (
        lambda: Dataset.from_tensor_slices(([None, 1], [None, 2])),
        lambda: Dataset.from_tensor_slices(([None, 1], [None, 3])),
    ),
    (
        lambda: Dataset.from_generator(numbers, args=(5,)),
        lambda: Dataset.from_generator(more_numbers, args=(5,)),
    ),
    (lambda: Dataset.from_generator(numbers, args=(5,)), lambda: Dataset.from_generator(numbers, args=(6,))),
]


@pytest.mark.parametrize(("there", "here"), CHANGED, ids=[str(i) for i in range(len(CHANGED))])
def test_changed_functions_and_data_are_refused_unless_asked_otherwise(
    there: Callable[[], Dataset[Any]], here: Callable[[], Dataset[Any]]
) -> None:
    state = saved(there(), 1)
    with pytest.raises(
        CursorError,
        match=r"step \d, .* at test_resume_errors.py:\d+, is not what it was .* or data has changed.*strict=Fa",
    ):
        resumed(here(), state)
    rest = list(here())[1:]
    assert len(list(resumed(here(), state, strict=False))) == len(rest)
    # The very same code and data are accepted, wherever they were made.
    resumed(there(), state)


def test_a_changed_global_is_a_changed_function(monkeypatch: pytest.MonkeyPatch) -> None:
    state = saved(Dataset.range(9).map(scaled), 1)
    resumed(Dataset.range(9).map(scaled), state)
    monkeypatch.setitem(globals(), "SCALE", 2)
    with pytest.raises(CursorError, match="changed"):
        resumed(Dataset.range(9).map(scaled), state)


def test_what_a_program_changes_as_it_runs_does_not_count() -> None:
    seen: list[int] = []
    tally = {"calls": 0}
    scratch = np.zeros(3)

    def watch(x: Any) -> Any:
        seen.append(int(x))
        tally["calls"] += 1
        scratch[:] = x
        return x

    state = saved(Dataset.range(9).map(watch), 3)
    assert list(resumed(Dataset.range(9).map(watch), state)) == [3, 4, 5, 6, 7, 8]


def test_steps_that_do_not_change_rows_may_differ() -> None:
    plain_one = Dataset.range(50).map(abs).batch(4)
    state = saved(plain_one, 5)
    expected = plain(list(plain_one))[5:]
    for other in (
        Dataset.range(50).prefetch(3).map(abs).batch(4).prefetch(fb.AUTOTUNE),
        Dataset.range(50).map(abs).with_options(fb.Options(block_bytes=1)).batch(4),
        Dataset.range(50, name="numbers").map(abs, name="absolute").batch(4, name="fours"),
    ):
        assert plain(list(resumed(other, state))) == expected


@pytest.mark.parametrize("position", [0, 1, 5, 9, 14])
def test_steps_that_change_nothing_may_come_and_go_within_a_chain(position: int) -> None:
    def build(between: Callable[[Dataset[Any]], Dataset[Any]]) -> Dataset[Any]:
        first = between(Dataset.range(5).shuffle(3).concatenate(Dataset.range(5, 10).map(abs)))
        return between(first.concatenate(Dataset.range(10, 13))).concatenate(Dataset.range(13, 16).shuffle(seed=2))

    ways: list[Callable[[Dataset[Any]], Dataset[Any]]] = [
        lambda ds: ds,
        lambda ds: ds.prefetch(2),
        lambda ds: ds.with_options(fb.Options(block_bytes=1)).prefetch(1),
    ]
    for there in ways:
        with iter(build(there)) as it:
            for _ in range(position):
                next(it)
            state = it.state_dict()
            expected = plain(list(it))
        for here in ways:
            assert plain(list(resumed(build(here), state))) == expected
    with pytest.raises(fb.CursorError, match="was saved by another dataset"):
        resumed(Dataset.range(5).shuffle(3).concatenate(Dataset.range(5, 10).map(abs)).prefetch(2), state)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Dataset.range(40).map(abs).skip(3).shard(2, 1),
        lambda: Dataset.range(40).shuffle(7, seed=1).batch(3),
        lambda: Dataset.range(40).shuffle(seed=1).map(abs).map(abs),
        lambda: Dataset.range(40).map(abs).shuffle(7).take(30).repeat(2),
        lambda: Dataset.range(40).filter(lambda x: x % 3 > 0).shuffle(7).batch(2).unbatch(),
    ],
)
def test_a_state_is_good_under_any_options(build: Callable[[], Dataset[Any]]) -> None:
    dataset = build()
    for there in SETTINGS[::2]:
        for position in (0, 1, 12):
            it = iter(dataset.with_options(there))
            for _ in range(position):
                next(it)
            state = json.loads(json.dumps(it.state_dict()))
            expected = plain(list(it))
            for here in SETTINGS:
                assert plain(list(resumed(dataset.with_options(here), state))) == expected


def test_a_state_without_a_seed_holds_the_seed_of_its_run() -> None:
    def build() -> Dataset[Any]:
        return Dataset.range(40).shuffle().map(lambda x, rng: x + rng.integers(9), rng=True)

    it = iter(build())
    for _ in range(7):
        next(it)
    state = it.state_dict()
    assert list(resumed(build(), state)) == list(it)
