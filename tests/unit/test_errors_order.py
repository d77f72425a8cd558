"""What an error leaves behind: elements before it come first, and nothing is lost or repeated after it."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, FunctionError
from unit.support import SETTINGS, assert_same, until_error

N, BAD = 60, 37


class Fault:
    """The identity, except that it raises for element BAD the first `times` times; -1 for ever.

    An object, so that it counts by its type in a saved state and may be healed in between.
    """

    def __init__(self, times: int = -1, error: type[BaseException] = ValueError) -> None:
        self.left = times
        self.error = error

    def __call__(self, x: Any, *rest: Any) -> Any:
        if self.left != 0 and BAD in np.ravel(x):
            self.left -= 1
            raise self.error("bad")
        return x


def numbers(fault: Fault) -> Callable[[], Iterator[Any]]:
    return lambda: (fault(np.int64(i)) for i in range(N))


def strip(fault: Fault) -> Callable[[Any], Dataset[Any]]:
    return lambda x: Dataset.range(x, x + 1).map(fault)


# Every chain passes its faulty function element BAD once.
CHAINS: dict[str, Callable[[Fault], Dataset[Any]]] = {
    "map": lambda f: Dataset.range(N).map(f),
    "map batched": lambda f: Dataset.range(N).map(f, batched=True),
    "map rng": lambda f: Dataset.range(N).map(f, rng=True, seed=1),
    "fused maps": lambda f: Dataset.range(N).map(abs).map(f).map(abs),
    "map of tuples": lambda f: Dataset.range(N).enumerate().map(f),
    "filter": lambda f: Dataset.range(N).filter(lambda x: f(x) >= 0),
    "filter that drops": lambda f: Dataset.range(N).filter(lambda x: f(x) % 5 == 2),
    "filter batched": lambda f: Dataset.range(N).filter(lambda x: f(x) >= 0, batched=True),
    "take_while": lambda f: Dataset.range(N).take_while(lambda x: f(x) < 50),
    "flat_map": lambda f: Dataset.range(N).flat_map(lambda x: Dataset.range(f(x) % 3)),
    "inside flat_map": lambda f: Dataset.range(N).flat_map(strip(f)),
    "generator": lambda f: Dataset.from_generator(numbers(f)),
    "batch": lambda f: Dataset.range(N).map(f).batch(4),
    "batch of a generator": lambda f: Dataset.from_generator(numbers(f)).batch(7, drop_remainder=True),
    "unbatch": lambda f: Dataset.range(N).batch(3).map(f).unbatch(),
    "take": lambda f: Dataset.range(N).map(f).take(50),
    "skip": lambda f: Dataset.range(N).map(f).skip(10),
    "shard": lambda f: Dataset.range(N).map(f).shard(3, 1),
    "skip, shard, take": lambda f: Dataset.range(N).map(f).skip(4).shard(3, 0).take(18),
    "enumerate": lambda f: Dataset.range(N).map(f).enumerate(),
    "zip": lambda f: Dataset.zip(Dataset.range(N).map(f), Dataset.range(N)),
    "zip with the fault behind": lambda f: Dataset.zip(Dataset.range(N), Dataset.range(N).map(f)),
    "concatenate": lambda f: Dataset.range(20).concatenate(Dataset.range(20, N).map(f)),
    "repeat": lambda f: Dataset.range(N).map(f).repeat(2),
    "repeat of a filter": lambda f: Dataset.range(N).filter(lambda x: f(x) >= 0).repeat(2),
    "shuffle": lambda f: Dataset.range(N).map(f).shuffle(seed=4),
    "shuffle, then map": lambda f: Dataset.range(N).shuffle(seed=4).map(f),
    "buffered shuffle, then map": lambda f: Dataset.range(N).shuffle(5, seed=4).map(f).batch(4),
    "batches shuffled": lambda f: Dataset.range(N).map(f).batch(3).shuffle(seed=2),
}
READ_AHEAD: dict[str, Callable[[Fault], Dataset[Any]]] = {
    "buffered shuffle": lambda f: Dataset.range(N).map(f).shuffle(5, seed=4),
    "buffered shuffle of a stream": lambda f: Dataset.from_generator(numbers(f)).shuffle(5, seed=4),
    "buffered shuffle in batches": lambda f: Dataset.range(N).map(f).shuffle(8, seed=4).batch(3),
    "two shuffles": lambda f: Dataset.range(N).filter(lambda x: f(x) >= 0).shuffle(5, seed=4).shuffle(3, seed=5),
}
ALL = CHAINS | READ_AHEAD

# Options and how many elements to prefetch: every block size, optimised and not, and a thread once.
RUNS = [(SETTINGS[0], 0), (SETTINGS[2], 0), (SETTINGS[4], 0), (SETTINGS[5], 0), (SETTINGS[1], 3)]
every_setting = pytest.mark.parametrize("options", SETTINGS, ids=lambda o: f"{o.optimize}-{o.block_bytes}")


def made(name: str, fault: Fault, options: fb.Options, prefetch: int) -> Dataset[Any]:
    return ALL[name](fault).prefetch(prefetch).with_options(options)


@cache
def expected(name: str) -> list[Any]:
    return list(ALL[name](Fault(0)))


@cache
def first_fault(name: str) -> int:
    """How many elements are made before the function sees the bad one, when they are made one at a time."""
    return len(until_error(ALL[name](Fault()).with_options(fb.Options(optimize=False, block_bytes=1)))[0])


@pytest.mark.parametrize("name", CHAINS)
def test_elements_before_the_fault_come_first(name: str) -> None:
    for options, prefetch in RUNS:
        elements, error = until_error(made(name, Fault(), options, prefetch))
        assert type(error) is FunctionError
        assert_same(elements, expected(name)[: first_fault(name)])
        assert 0 < len(elements) < len(expected(name))


@pytest.mark.parametrize("name", READ_AHEAD)
def test_a_shuffle_delivers_up_to_the_step_that_needs_the_bad_row(name: str) -> None:
    for options, prefetch in RUNS:
        elements, error = until_error(made(name, Fault(), options, prefetch))
        assert type(error) is FunctionError
        # Reading rows in the order they come out meets the bad one later than filling a buffer does.
        assert len(elements) >= first_fault(name)
        assert_same(elements, expected(name)[: len(elements)])


def test_a_buffer_is_filled_one_row_per_step() -> None:
    for options in SETTINGS:
        dataset = READ_AHEAD["buffered shuffle of a stream"](Fault()).with_options(options)
        assert len(until_error(dataset)[0]) == BAD - 5


@pytest.mark.parametrize("name", ALL)
def test_the_same_element_is_tried_again(name: str) -> None:
    for options, prefetch in RUNS:
        it = iter(made(name, Fault(), options, prefetch))
        _, error = until_error(it)
        for _ in range(2):
            again, second = until_error(it)
            assert again == []
            assert type(second) is FunctionError
            assert str(second) == str(error)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ALL)
def test_nothing_is_lost_when_it_works_the_next_time(name: str, error: type[BaseException]) -> None:
    for options, prefetch in RUNS:
        it = iter(made(name, Fault(2, error), options, prefetch))
        elements: list[Any] = []
        for _ in range(3):
            more, raised = until_error(it)
            elements += more
            if raised is None:
                break
            assert type(raised) is (FunctionError if error is ValueError else error)
        assert raised is None
        assert_same(elements, expected(name))


@pytest.mark.parametrize("name", ALL)
def test_a_state_saved_after_an_error_resumes_at_the_failing_element(name: str) -> None:
    for options, prefetch in RUNS:
        it = iter(made(name, Fault(), options, prefetch))
        elements, error = until_error(it)
        assert error is not None
        state = json.loads(json.dumps(it.state_dict()))
        for times, rest in ((-1, []), (0, expected(name)[len(elements) :])):
            resumed = iter(made(name, Fault(times), options, prefetch))
            resumed.load_state_dict(state)
            assert_same(until_error(resumed)[0], rest)


@every_setting
def test_an_error_at_the_very_first_element(options: fb.Options) -> None:
    class Never:
        def __call__(self, x: Any) -> Any:
            raise ValueError("never")

    for dataset in (
        Dataset.range(5).map(Never()),
        Dataset.range(5).map(abs).map(Never()).batch(2),
        Dataset.range(5).filter(Never()).shuffle(3, seed=1),
        Dataset.range(5).flat_map(Never()).prefetch(1),
    ):
        it = iter(dataset.with_options(options))
        start = it.state_dict()["position"]
        for _ in range(2):
            assert until_error(it)[0] == []
            assert it.state_dict()["position"] == start == 0


def test_a_fault_in_a_later_epoch() -> None:
    fault = Fault(0)
    dataset = Dataset.range(N).map(fault).repeat(3)
    for options in SETTINGS:
        fault.left = 0
        it = iter(dataset.with_options(options))
        elements = [next(it) for _ in range(N)]
        fault.left = -1
        more, error = until_error(it)
        assert "element 37: " in str(error)
        # What was made before the fault was switched on may include the bad element.
        assert [*elements, *more] == ([*range(N)] * 3)[: len(elements) + len(more)]


def test_rows_that_a_function_spoils_are_not_seen_again() -> None:
    def spoil(x: np.ndarray) -> np.ndarray:
        x += 1
        if (x == BAD).any():
            raise ValueError("bad")
        return x

    source = Dataset.from_tensor_slices(np.arange(N).reshape(N, 1))
    for dataset in (
        source,
        source.shuffle(2, seed=1),
        source.map(lambda c: c * 1, batched=True),
        source.shuffle(seed=2),
    ):
        for batched in (True, False):
            for options in SETTINGS:
                # Both are the first iteration, so they come in the same order.
                order = [int(x[0]) + 1 for x in dataset.take(-1).with_options(options)]
                it = iter(dataset.map(spoil, batched=batched).with_options(options))
                elements, _ = until_error(it)
                assert [int(x[0]) for x in elements] == order[: order.index(BAD)]
                assert until_error(it)[0] == []


@every_setting
def test_a_predicate_that_writes_changes_nothing(options: fb.Options) -> None:
    def vandal(x: np.ndarray) -> bool:
        keep = bool(x[0] < 50)
        x[...] = -1
        return keep

    source = Dataset.from_tensor_slices(np.arange(N).reshape(N, 1))
    for dataset in (source, source.shuffle(3, seed=1), source.batch(2).unbatch()):
        kept = sorted(int(x[0]) for x in dataset.filter(vandal).with_options(options))
        assert kept == list(range(50))
    assert [int(x[0]) for x in source.take_while(vandal).with_options(options)] == list(range(50))
