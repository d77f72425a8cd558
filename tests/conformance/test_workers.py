"""On any workers, in any number: the same elements in the same order, and states that lead to the same place."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.case import Case, drain, record, recorded, resume, run_epoch, save, some_steps, steps
from conformance.compare import assert_same_elements, assert_same_run
from conformance.parametrize import every_case
from conformance.pools import Pools
from conformance.workers import can_use_processes, ends_in_function, has_function, last_on_threads, on_workers

# Calls at once, on what, and how large blocks are: single rows make as many chunks as there can be.
WAYS = {
    "inline": (7, "inline", 1),
    "one_thread": (1, "thread", 1),
    "two_threads": (2, "thread", 40),
    "seven_threads": (7, "thread", 1),
    "auto": (2, "auto", 1),
}
# Processes take a while to start: most cases share some.
SEVERAL = {"map.to_structure", "map.of_map", "filter.batched"}


@every_case(lambda case: has_function(case) and case.seeded)
def test_same_epochs(case: Case) -> None:
    default = case.build()
    expected = [run_epoch(default, case) for _ in range(2)]
    for name, way in WAYS.items():
        other = on_workers(case.build(), *way)
        for epoch in range(2):
            assert_same_run(run_epoch(other, case), expected[epoch], f"{name}, epoch {epoch}:")


@every_case(has_function)
def test_a_state_saved_without_workers_resumes_on_them(case: Case) -> None:
    recording = recorded(case.id)
    for name, way in WAYS.items():
        for k in steps(len(recording.run.elements), at_most=5):
            with resume(on_workers(case.build(), *way), recording.states[k]) as it:
                assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"{name}, from step {k}:")


@every_case(has_function)
def test_a_state_saved_on_workers_resumes_without_or_on_others(case: Case) -> None:
    for name, way in WAYS.items():
        recording = record(on_workers(case.build(), *way), case)
        for k in steps(len(recording.run.elements), at_most=5):
            for dataset in (case.build(), on_workers(case.build(), 3, "thread", 20)):
                with resume(dataset, recording.states[k]) as it:
                    assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"{name}, from step {k}:")


@pytest.fixture(scope="module")
def pools() -> Iterator[Pools]:
    made = Pools()
    yield made
    made.close()


@pytest.fixture
def shared_processes(pools: Pools) -> Iterator[None]:
    with pools.lent():
        yield


@pytest.mark.usefixtures("shared_processes")
@every_case(can_use_processes)
def test_processes(case: Case) -> None:
    """A whole run with the state of every step, then from the middle of a run without processes and the reverse."""
    recording = recorded(case.id)
    middle = len(recording.run.elements) // 2
    dataset = on_workers(case.build(), 2, "process", 40)
    with resume(dataset, recording.states[0]) as it:
        states = []
        for _ in range(middle):
            states.append(save(it))
            next(it)
        states.append(save(it))
        assert_same_run(drain(it, case, done=middle), recording.run.tail(middle), f"after step {middle}:")
        it.load_state_dict(json.loads(recording.states[middle]))
        assert_same_run(drain(it, case, done=middle), recording.run.tail(middle), f"loaded at step {middle}:")
    for k in some_steps(middle):
        with resume(case.build(), states[k]) as it:
            assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"saved at step {k}:")


@pytest.mark.usefixtures("shared_processes")
@every_case(lambda case: can_use_processes(case) and case.seeded)
def test_same_epochs_on_any_number_of_processes(case: Case) -> None:
    default = case.build()
    expected = [run_epoch(default, case) for _ in range(2)]
    for calls in (1, 2, 7):
        dataset = on_workers(case.build(), calls, "process", 1)
        for epoch in range(2):
            assert_same_run(run_epoch(dataset, case), expected[epoch], f"{calls} processes, epoch {epoch}:")


@every_case(lambda case: case.id in SEVERAL)
def test_processes_of_its_own(case: Case) -> None:
    dataset = on_workers(case.build(), 2, "process", 1)
    default = case.build()
    for epoch in range(2):
        assert_same_run(run_epoch(dataset, case), run_epoch(default, case), f"epoch {epoch}:")


@pytest.mark.parametrize("calls", [1, 2, 7])
@every_case(lambda case: ends_in_function(case) and case.finite)
def test_a_free_order_loses_and_repeats_nothing(case: Case, calls: int) -> None:
    recording = recorded(case.id)
    expected = _sorted(recording.run.elements)
    n = len(recording.run.elements)
    for k in some_steps(n):
        with resume(last_on_threads(case.build(), calls, deterministic=False), recording.states[0]) as it:
            before = [copy.deepcopy(element) for element in itertools.islice(it, k)]
            state = save(it)
            after = drain(it, case, done=k).elements
            assert_same_elements(_sorted(before + after), expected, "without a stop:")
        # It may go on freely, or in order again.
        for deterministic in (False, True):
            with resume(last_on_threads(case.build(), 3, deterministic), state) as it:
                rest = drain(it, case, done=k).elements
            assert_same_elements(_sorted(before + rest), expected, f"stopped at {k}:")


def _sorted(elements: list[Any]) -> list[Any]:
    return sorted(elements, key=repr)
