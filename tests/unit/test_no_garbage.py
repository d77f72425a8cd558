"""Blocks go when nobody needs them, not when the garbage collector comes by: it counts objects, not bytes."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset


def fails(x: Any) -> Any:
    if x == 700:
        raise ValueError("bad")
    return np.full(64, x, np.float32)


def inner(x: Any) -> Any:
    return Dataset.range(x, x + 2).map(fails)


def generated() -> Iterator[Any]:
    yield from map(fails, range(2000))


FAILING: dict[str, Callable[[], Dataset[Any]]] = {
    "map": lambda: Dataset.range(2000).map(fails),
    "batched": lambda: Dataset.range(2000).batch(100).map(lambda x: fails(x[0]), batched=False),
    "generator": lambda: Dataset.from_generator(generated).batch(16),
    "filter": lambda: Dataset.range(2000).filter(lambda x: bool(fails(x)[0] >= 0)),
    "threads": lambda: Dataset.range(2000).map(fails, num_parallel_calls=3, executor="thread").batch(16),
    "processes": lambda: Dataset.range(2000).map(fails, num_parallel_calls=2, executor="process").batch(16),
    "interleave": lambda: Dataset.range(1000).interleave(inner, 4),
    "interleave on threads": lambda: Dataset.range(1000).interleave(inner, 4, num_parallel_calls=2).prefetch(2),
    "flat_map": lambda: Dataset.range(0, 1000, 2).flat_map(inner),
    "shuffle": lambda: Dataset.range(2000).map(fails).filter(lambda x: True).shuffle(50).prefetch(2),
    "external shuffle": lambda: Dataset.range(2000).map(fails).filter(lambda x: True).shuffle(),
    "cache": lambda: Dataset.range(2000).map(fails).cache().batch(16).prefetch(2),
    "zip": lambda: Dataset.zip((Dataset.range(2000), Dataset.range(2000).map(fails).prefetch(2))).batch(16),
    "skipped": lambda: Dataset.range(2000).map(fails, on_error="skip").prefetch(2),
    "ignored": lambda: Dataset.range(1000).interleave(inner, 4).ignore_errors(),
}


@pytest.fixture
def garbage() -> Iterator[Callable[[], list[Any]]]:
    """Blocks that only the collector found, since the test began, and with whatever else they were."""

    def found() -> list[Any]:
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        kinds = [type(each).__qualname__ for each in gc.garbage]
        return kinds if "Block" in kinds else []

    gc.collect()
    gc.disable()
    try:
        yield found
    finally:
        gc.enable()
        gc.set_debug(0)
        gc.garbage.clear()
        gc.collect()


def go_through(dataset: Dataset[Any]) -> None:
    try:
        for _ in dataset:
            pass
    except fb.FunctionError:
        return


@pytest.mark.parametrize("name", FAILING)
def test_an_error_that_was_seen_to_leaves_nothing(name: str, garbage: Callable[[], list[Any]]) -> None:
    dataset = FAILING[name]()
    # What is imported, compiled and remembered for good the first time.
    go_through(dataset)
    gc.collect()
    go_through(dataset)
    assert garbage() == []


LEFT: dict[str, Callable[[], Dataset[Any]]] = {
    "prefetch": lambda: Dataset.range(10**6).map(lambda x: np.zeros(64) + x).batch(500).prefetch(8),
    "zip": lambda: Dataset.zip(
        (Dataset.range(10**6).batch(64).prefetch(2), Dataset.range(10**6).batch(64).prefetch(2))
    ),
    "unbatch": lambda: Dataset.range(1000).map(lambda i: np.zeros((500, 4))).unbatch().batch(64).prefetch(4),
    "threads": lambda: Dataset.range(10**6).map(lambda x: x + 1, num_parallel_calls=3, executor="thread").prefetch(4),
    "interleave": lambda: Dataset.range(10**6).interleave(inner, 4, num_parallel_calls=2).prefetch(4),
    "shuffle": lambda: Dataset.range(10**6).filter(lambda x: True).shuffle(100).batch(10).prefetch(4),
}


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "dropped"])
@pytest.mark.parametrize("name", LEFT)
def test_leaving_early_leaves_nothing(name: str, closed: bool, garbage: Callable[[], list[Any]]) -> None:
    dataset = LEFT[name]()

    def leave() -> None:
        it = iter(dataset)
        for _ in range(4):
            next(it)
        if closed:
            it.close()

    leave()
    gc.collect()
    for _ in range(5):
        leave()
    assert garbage() == []


def test_frames_of_the_users_functions_stay_as_they_are() -> None:
    def function(x: Any) -> Any:
        mine = f"kept {x}"
        raise ValueError(mine)

    with pytest.raises(fb.FunctionError) as caught:
        list(Dataset.range(3).map(function))
    assert caught.value.__cause__ is not None
    trace = caught.value.__cause__.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    assert trace.tb_frame.f_code is function.__code__
    assert trace.tb_frame.f_locals["mine"] == "kept 0"
