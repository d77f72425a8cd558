"""Random chains at budgets that hold hardly more than an element: they move, and give the same elements."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from forebay import AUTOTUNE, Dataset

# No run takes a second; one that takes this long will never end.
HANGS = 300

Step = Callable[[Dataset[Any]], Dataset[Any]]


def rows(count: int, width: int, ragged: bool) -> Dataset[Any]:
    def make() -> Any:
        for i in range(count):
            yield np.full(width - (i % 3 if ragged else 0), i)

    return Dataset.from_generator(make)


def inner(x: Any) -> Dataset[Any]:
    first = int(x.reshape(-1)[0])
    return Dataset.from_generator(lambda: (x + k for k in range(1 + first % 3)))


def step(name: str, *arguments: Any, **options: Any) -> st.SearchStrategy[tuple[str, Step]]:
    def add(dataset: Dataset[Any]) -> Dataset[Any]:
        return getattr(dataset, name)(*arguments, **options)

    shown = ", ".join([*map(str, arguments), *(f"{key}={value}" for key, value in options.items())])
    return st.just((f"{name}({shown})", add))


THREADS = {"num_parallel_calls": 3, "executor": "thread"}
STEPS = st.one_of(
    step("shuffle", 7, seed=1),
    step("shuffle", 1000, seed=2),
    step("shuffle", seed=3),
    step("prefetch", 5),
    step("prefetch", AUTOTUNE),
    step("cache"),
    step("map", lambda x: x + 1),
    step("map", lambda x: x * 2, **THREADS),
    step("map", lambda x: np.concatenate([x, x]), num_parallel_calls=AUTOTUNE, executor="thread"),
    step("filter", lambda x: x.reshape(-1)[0] % 4 != 1),
    step("flat_map", inner),
    step("flat_map", inner, num_parallel_calls=2),
    step("interleave", inner, cycle_length=3, block_length=2),
    step("interleave", inner, cycle_length=4, num_parallel_calls=3),
    step("interleave", lambda x: inner(x).prefetch(3).shuffle(2, seed=4), cycle_length=2, num_parallel_calls=2),
    step("repeat", 2),
    step("take", 50),
)


def run(dataset: Dataset[Any], epochs: int) -> list[list[Any]]:
    """All elements of some epochs; fails if they never come."""
    found: list[list[Any]] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            found.extend([x.tolist() for x in dataset] for _ in range(epochs))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(HANGS)
    assert not thread.is_alive(), f"hangs: {dataset.plan.describe()}"
    if errors:
        raise errors[0]
    return found


def build(chosen: list[tuple[str, Step]], count: int, width: int, batch: int | None, ragged: bool) -> Dataset[Any]:
    dataset = rows(count, width, ragged and batch is None)
    for _, add in chosen:
        dataset = add(dataset)
    # Last, or maps that join rows would make them too many for a test.
    return dataset if batch is None else dataset.batch(batch).prefetch(2)


@pytest.mark.filterwarnings("ignore:cache at")
@settings(max_examples=80)
@given(
    chosen=st.lists(STEPS, min_size=1, max_size=4),
    count=st.integers(0, 40),
    width=st.integers(3, 60),
    batch=st.none() | st.integers(1, 5),
    ragged=st.booleans(),
    elements=st.sampled_from([1.0, 1.5, 3.0, 10.0]),
)
def test_a_budget_of_some_elements_is_enough(
    chosen: list[tuple[str, Step]], count: int, width: int, batch: int | None, ragged: bool, elements: float
) -> None:
    free = build(chosen, count, width, batch, ragged)
    expected = run(free, 2)
    largest = max((_bytes(x) for epoch in expected for x in epoch), default=1)
    ledger = fb.Ledger(int(elements * largest) + 64)
    tight = build(chosen, count, width, batch, ragged).with_options(fb.Options(memory=ledger))
    assert run(tight, 2) == expected
    del tight
    assert ledger.held == 0


def _bytes(element: Any) -> int:
    # A row of uneven length has an offset and a shape beside its values.
    return np.array(element).nbytes + 32


@pytest.mark.parametrize(
    ("name", "add"),
    [
        ("from_generator", lambda ds: ds),
        ("map", lambda ds: ds.map(lambda x: np.zeros(10_000), num_parallel_calls=2, executor="thread")),
        ("batch", lambda ds: ds.prefetch(2).batch(40)),
        ("from_generator", lambda ds: Dataset.range(3).interleave(lambda i: ds, cycle_length=2, num_parallel_calls=2)),
        ("flat_map", lambda ds: Dataset.range(3).flat_map(lambda i: ds.map(lambda x: x)).batch(60).unbatch()),
    ],
    ids=["source", "map", "batch", "inner", "batch behind flat_map"],
)
def test_an_element_that_no_budget_holds_is_an_error_that_names_the_step(name: str, add: Step) -> None:
    width = 10_000 if name == "from_generator" else 100
    dataset = add(rows(100, width, False)).with_options(fb.Options(memory=20_000))
    expected = "batch" if name == "flat_map" else name
    with pytest.raises(
        fb.DataError, match=rf"^{expected} at .*: one element takes [\d,]+ bytes, and the budget is 20,0"
    ):
        run(dataset, 1)
