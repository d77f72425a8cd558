"""How a plan is run may change everything but what comes out of it, and where a state leads."""

from __future__ import annotations

from typing import Any

import forebay as fb
from conformance.case import Case, Run, drain, record, recorded, resume, run_epoch, steps
from conformance.compare import assert_same_elements, assert_same_run
from conformance.parametrize import every_case

# By default most cases are one block or two. One row per block and a few rows per block move every boundary.
WAYS: dict[str, dict[str, Any]] = {
    "as_written": {"optimize": False},
    "single_rows": {"block_bytes": 1},
    "few_rows": {"block_bytes": 40},
    "as_written_in_single_rows": {"optimize": False, "block_bytes": 1},
    "on_a_tight_budget": {"memory": 30_000},
}


@every_case(lambda case: case.seeded)
def test_same_epochs(case: Case) -> None:
    default = case.build()
    expected = [run_epoch(default, case) for _ in range(2)]
    for name, way in WAYS.items():
        other = case.build_with(**way)
        for epoch in range(2):
            assert_same_run(run_epoch(other, case), expected[epoch], f"{name}, epoch {epoch}:")


@every_case()
def test_state_saved_by_default_resumes_in_another_way(case: Case) -> None:
    # Step 0 is the whole run, compared with the default one also where there is no seed.
    recording = recorded(case.id)
    for name, way in WAYS.items():
        for k in steps(len(recording.run.elements), at_most=8):
            with resume(case.build_with(**way), recording.states[k]) as it:
                assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"{name}, from step {k}:")


@every_case()
def test_state_saved_in_another_way_resumes_by_default(case: Case) -> None:
    for name, way in WAYS.items():
        recording = record(case.build_with(**way), case)
        for k in steps(len(recording.run.elements), at_most=8):
            with resume(case.build(), recording.states[k]) as it:
                assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"{name}, from step {k}:")


@every_case(lambda case: case.seeded)
def test_skip_is_the_tail(case: Case) -> None:
    run = recorded(case.id).run
    for k in steps(len(run.elements), at_most=8):
        for optimize in (True, False):
            dataset = case.build().skip(k).with_options(_options(optimize))
            assert_same_run(run_epoch_after(dataset, case, k), run.tail(k), f"skip({k}):")


@every_case(lambda case: case.seeded)
def test_take_is_the_head(case: Case) -> None:
    run = recorded(case.id).run
    for k in steps(len(run.elements), at_most=8):
        for optimize in (True, False):
            dataset = case.build().take(k).with_options(_options(optimize))
            assert_same_elements(list(dataset), run.elements[:k], f"take({k}):")


@every_case(lambda case: case.seeded and case.raises is None)
def test_shards_are_a_partition(case: Case) -> None:
    elements = recorded(case.id).run.elements
    for count in (1, 2, 5):
        for index in range(count):
            expected = elements[index::count]
            dataset = case.build().shard(count, index).take(len(expected) if case.limit is not None else -1)
            for optimize in (True, False):
                found = list(dataset.with_options(_options(optimize)))
                assert_same_elements(found, expected, f"shard({count}, {index}):")


@every_case(lambda case: case.seeded)
def test_prefetch_changes_nothing(case: Case) -> None:
    recording = recorded(case.id)
    dataset = case.build().prefetch(2)
    mine = record(dataset, case)
    assert_same_run(mine.run, recording.run)
    for k in steps(len(mine.run.elements), at_most=8):
        with resume(case.build().prefetch(2), mine.states[k]) as it:
            assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"from step {k}:")


@every_case(lambda case: case.finite and case.seeded)
def test_rounds_of_repeat_are_epochs(case: Case) -> None:
    epochs = case.build()
    expected = [element for _ in range(3) for element in run_epoch(epochs, case).elements]
    for optimize in (True, False):
        dataset = case.build().repeat(3).with_options(_options(optimize))
        assert_same_run(run_epoch(dataset, case), Run(expected, "stop"))


def run_epoch_after(dataset: Any, case: Case, done: int) -> Run:
    with iter(dataset) as it:
        return drain(it, case, done=done)


def _options(optimize: bool) -> Any:
    return fb.Options(optimize=optimize)
