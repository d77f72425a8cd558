"""deterministic=False: any order, but after any resume nothing is lost and nothing comes twice."""

import itertools
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset

LENGTHS = [7, 3, 0, 19, 1, 1, 12, 2, 5, 0, 8]


class Gates:
    """Lets rows pass one at a time, in an order that is another in every run: no clock decides what is ready."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(0)

    def __call__(self, x: Any) -> Any:
        with self._lock:
            yields = self._random.randrange(4)
        # Giving the interpreter away so many times lets other threads overtake this one, or not.
        for _ in range(yields):
            self._turns.acquire(timeout=0.0002)
        return x


def inner(seed: int) -> Callable[[Any, Any], Dataset[Any]]:
    gate = Gates(seed)
    return lambda index, length: Dataset.range(1000 * index, 1000 * index + length).map(gate)


def elements(count: int | None = None) -> Dataset[Any]:
    lengths = LENGTHS[:count]
    return Dataset.from_tensor_slices((np.arange(len(lengths)), np.array(lengths, np.int64)))


def woven(seed: int, cycle: int = 4, block_length: int = 1, free: bool = True, calls: int | None = 4) -> Dataset[Any]:
    return elements().interleave(inner(seed), cycle, block_length, calls, not free)


def flat(seed: int) -> Dataset[Any]:
    return elements().flat_map(inner(seed), num_parallel_calls=3, deterministic=False)


CHAINS: dict[str, Callable[[int], Dataset[Any]]] = {
    "alone": woven,
    "turns of three": lambda seed: woven(seed, 3, 3, calls=3),
    "one slot": lambda seed: woven(seed, 1, 2, calls=1),
    "batch": lambda seed: woven(seed).batch(3),
    "large batch": lambda seed: woven(seed).batch(25),
    "shuffle": lambda seed: woven(seed).shuffle(10, seed=1),
    "large shuffle": lambda seed: woven(seed).shuffle(1000, seed=1),
    "repeat": lambda seed: woven(seed).repeat(2),
    "repeat and batch": lambda seed: woven(seed).repeat(3).batch(4),
    "batch and shuffle": lambda seed: woven(seed).batch(2).shuffle(5, seed=1).unbatch(),
    "filter": lambda seed: woven(seed).filter(lambda x: x % 3 != 1).batch(2),
    "map and prefetch": lambda seed: woven(seed).map(lambda x: x + 1).prefetch(2).batch(3),
    "concatenate": lambda seed: woven(seed).concatenate(woven(seed + 1)).batch(4),
    "skip": lambda seed: Dataset.range(2).flat_map(lambda i: woven(seed)).skip(0).batch(3),
    "enumerate": lambda seed: woven(seed).enumerate().map(lambda i, x: x).batch(3),
    "flat_map": flat,
    "flat_map and batch": lambda seed: flat(seed).batch(3),
    "flat_map and repeat": lambda seed: flat(seed).repeat(2).shuffle(10, seed=1),
    "inside flat_map": lambda seed: Dataset.range(3).flat_map(lambda i: woven(seed)).batch(4),
    "inside flat_map on threads": lambda seed: (
        Dataset.range(3).flat_map(lambda i: woven(seed), num_parallel_calls=2).batch(4)
    ),
    "inside interleave": lambda seed: Dataset.range(4).interleave(lambda i: woven(seed), 2, 1, 2).batch(4),
    "inside itself": lambda seed: Dataset.range(4).interleave(lambda i: woven(seed), 2, 1, 2, False).batch(4),
    "input of interleave": lambda seed: (
        woven(seed).interleave(lambda x: Dataset.range(x, x + 3).map(Gates(seed)), 3, 1, 2, False).batch(5)
    ),
    "input of ordered interleave": lambda seed: woven(seed).interleave(lambda x: Dataset.range(x, x + 3), 3).batch(5),
    "input of flat_map": lambda seed: woven(seed).flat_map(lambda x: Dataset.range(x, x + 2)).batch(5),
}


def numbers(found: Iterable[Any]) -> list[int]:
    return [int(x) for element in found for x in np.atleast_1d(element)]


def reload(state: dict[str, Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(state))
    return loaded


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@pytest.mark.parametrize("name", CHAINS)
def test_nothing_is_lost_and_nothing_comes_twice(name: str, block_bytes: int) -> None:
    build = CHAINS[name]
    options = fb.Options(block_bytes=block_bytes)
    seeds = itertools.count()
    whole = Counter(numbers(build(next(seeds)).with_options(options)))
    iterator = iter(build(next(seeds)).with_options(options))
    taken: list[int] = []
    steps = 0
    while True:
        if steps % 7 == 0 or steps < 3:
            state = reload(iterator.state_dict())
            with iter(build(next(seeds)).with_options(options)) as resumed:
                resumed.load_state_dict(state, strict=False)
                assert Counter(taken + numbers(resumed)) == whole, f"resumed at {steps}"
        try:
            taken += numbers([next(iterator)])
        except StopIteration:
            break
        steps += 1
    assert Counter(taken) == whole
    assert steps > 1


@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
@pytest.mark.parametrize("name", CHAINS)
def test_resumed_again_and_again(name: str, block_bytes: int) -> None:
    """Every iterator but the first goes on from another's state, a few elements at a time."""
    build = CHAINS[name]
    options = fb.Options(block_bytes=block_bytes)
    whole = Counter(numbers(build(0).with_options(options)))
    some = random.Random(name)
    taken: list[int] = []
    state = None
    for seed in itertools.count(1):
        with iter(build(seed).with_options(options)) as iterator:
            if state is not None:
                iterator.load_state_dict(state, strict=False)
            part = list(itertools.islice(iterator, some.randrange(1, 9)))
            state = reload(iterator.state_dict())
        taken += numbers(part)
        if not part:
            break
    assert Counter(taken) == whole


@pytest.mark.parametrize("kind", ["interleave", "flat_map"])
def test_a_state_of_any_order_goes_on_in_any_mode(kind: str) -> None:
    def build(free: bool, calls: int | None) -> Dataset[Any]:
        if kind == "interleave":
            return woven(calls or 0, free=free, calls=calls).batch(3)
        return elements().flat_map(inner(0), num_parallel_calls=calls, deterministic=not free).batch(3)

    modes = [(True, 4), (False, None), (True, 2), (False, 3), (True, 1)]
    whole = Counter(numbers(build(True, 4)))
    for first, second, third in itertools.permutations(modes, 3):
        taken: list[int] = []
        state = None
        for (free, calls), count in zip([first, second, third], [5, 4, None]):
            with iter(build(free, calls)) as iterator:
                if state is not None:
                    iterator.load_state_dict(state, strict=False)
                taken += numbers(itertools.islice(iterator, count))
                state = reload(iterator.state_dict())
        assert Counter(taken) == whole


def test_the_log_is_followed_exactly() -> None:
    """Rows between the cursor and the place come in the order in which they came before."""
    opened = threading.Event()
    others: set[int] = set()

    def make(index: Any, length: Any) -> Dataset[Any]:
        def wait(x: Any) -> Any:
            assert opened.wait(300)
            return x

        def count(x: Any) -> Any:
            others.add(int(x))
            if len(others) == 12:
                opened.set()
            return x

        return Dataset.range(1000 * index, 1000 * index + length).map(count if index else wait)

    def build() -> Dataset[Any]:
        lengths = (np.arange(3), np.array([6, 6, 6]))
        return Dataset.from_tensor_slices(lengths).interleave(make, 2, 1, 2, False).batch(15)

    # The first dataset is not ready before the other two have been read to their end.
    with iter(build()) as iterator:
        first = numbers([next(iterator)])
        state = reload(iterator.state_dict())
    # This time all are ready at once.
    with iter(build()) as resumed:
        resumed.load_state_dict(state, strict=False)
        assert sorted(first + numbers(resumed)) == sorted(1000 * i + r for i in range(3) for r in range(6))


def test_the_state_stays_small() -> None:
    iterator = iter(Dataset.range(40).interleave(lambda i: Dataset.range(500), 4, 1, 4, False).shuffle(4000).batch(10))
    most = 0
    for count, _ in enumerate(iterator):
        if count % 50 == 0:
            most = max(most, len(json.dumps(iterator.state_dict())))
    assert most < 1 << 16


def test_no_log_in_order() -> None:
    for dataset in (woven(0, free=False).repeat(2), elements().flat_map(inner(0)).concatenate(Dataset.range(3))):
        iterator = iter(dataset.batch(3))
        for _ in iterator:
            assert '"log"' not in json.dumps(iterator.state_dict())


def double(x: Any) -> Any:
    return x * 2


# How each of two maps is called: with the same settings they are fused, with others they are not.
SETTINGS = [((2, False), (2, False)), ((2, False), (3, False)), ((2, True), (None, None))]


@pytest.mark.parametrize(("saved", "loaded"), list(itertools.permutations(SETTINGS, 2)))
def test_a_state_goes_on_where_functions_are_fused_in_another_way(saved: Any, loaded: Any) -> None:
    gate = Gates(0)

    def dataset(first: tuple[Any, Any], second: tuple[Any, Any]) -> Dataset[Any]:
        kind: Any = "thread" if second[0] else "inline"
        steps = Dataset.range(40).map(gate, first[0], first[1], executor="thread")
        return steps.map(double, second[0], second[1], executor=kind).with_options(fb.Options(block_bytes=40))

    with iter(dataset(*saved)) as it:
        before = [int(next(it)) for _ in range(17)]
        state = json.loads(json.dumps(it.state_dict()))
    with iter(dataset(*loaded)) as it:
        it.load_state_dict(state)
        rest = [int(x) for x in it]
    assert sorted(before + rest) == list(range(0, 80, 2))
