"""Exact resume: from any step, any number of times, whatever the iterator did before."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import forebay as fb
from conformance.case import Case, Run, drain, record_iterator, recorded, resume, save, some_steps, steps
from conformance.compare import assert_same_run
from conformance.parametrize import every_case


@every_case()
def test_at_every_step(case: Case) -> None:
    recording = recorded(case.id)
    for k in steps(len(recording.run.elements)):
        with resume(case.build(), recording.states[k]) as it:
            assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"from step {k}:")


@every_case(lambda case: case.finite)
def test_after_the_end(case: Case) -> None:
    with resume(case.build(), recorded(case.id).exhausted) as it:
        for _ in range(2):
            with pytest.raises(StopIteration):
                next(it)


@every_case()
def test_into_an_iterator_that_has_been_used(case: Case) -> None:
    recording = recorded(case.id)
    n = len(recording.run.elements)
    for used in some_steps(n):
        dataset = case.build()
        with iter(dataset) as it:
            for _ in range(used):
                next(it)
            # Forwards, backwards, and again from where the last run ended.
            for k in (n // 2, 0, n):
                it.load_state_dict(json.loads(recording.states[k]))
                assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"used {used}, then to {k}:")


@every_case(lambda case: case.finite)
def test_back_into_an_iterator_that_has_ended(case: Case) -> None:
    recording = recorded(case.id)
    with iter(case.build()) as it:
        drain(it, case)
        it.load_state_dict(json.loads(recording.states[0]))
        assert_same_run(drain(it, case), recording.run)


@every_case()
def test_in_a_chain(case: Case) -> None:
    """Resume, go on a little, save, resume from that, and so on to the end."""
    recording = recorded(case.id)
    n = len(recording.run.elements)
    for stride in (1, 3, 7):
        state = recording.states[0]
        elements: list[object] = []
        for k in range(0, n, stride):
            with resume(case.build(), state) as it:
                wanted = min(stride, n - k)
                elements += [next(it) for _ in range(wanted)]
                state = save(it)
        with resume(case.build(), state) as it:
            rest = drain(it, case, done=n)
        assert_same_run(Run(elements + rest.elements, rest.end), recording.run, f"{stride} at a time:")


@every_case()
def test_saved_again_at_once(case: Case) -> None:
    """A state loaded and saved before any element is read leads to the same place."""
    recording = recorded(case.id)
    for k in some_steps(len(recording.run.elements)):
        state = recording.states[k]
        for _ in range(3):
            with resume(case.build(), state) as it:
                state = save(it)
        with resume(case.build(), state) as it:
            assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"from step {k}:")


@every_case()
def test_resumed_iterator_saves_states_as_good_as_the_first(case: Case) -> None:
    recording = recorded(case.id)
    n = len(recording.run.elements)
    start = n // 2
    rest = replace(case, limit=None if case.limit is None else case.limit - start)
    with resume(case.build(), recording.states[start]) as it:
        again = record_iterator(it, rest)
    for k in some_steps(len(again.run.elements)):
        with resume(case.build(), again.states[k]) as it:
            done = start + k
            assert_same_run(drain(it, case, done=done), recording.run.tail(done), f"from step {done}:")


@every_case()
def test_in_a_later_epoch(case: Case) -> None:
    """The state carries the epoch: a new dataset, at its first epoch, goes on in the saved one."""
    dataset = case.build()
    for _ in range(2):
        iter(dataset).close()
    with iter(dataset) as it:
        assert it.epoch == 2
        recording = record_iterator(it, case)
    for k in some_steps(len(recording.run.elements)):
        with resume(case.build(), recording.states[k]) as it:
            assert it.epoch == 2
            assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"epoch 2 from step {k}:")


@every_case(lambda case: case.seeded)
def test_the_epoch_after_a_resumed_one_is_the_next(case: Case) -> None:
    """A training loop that was resumed in epoch 2 goes on with epoch 3, not with epoch 1."""
    original = case.build()
    for _ in range(2):
        iter(original).close()
    with iter(original) as it:
        state = save(it)
    dataset = case.build()
    resume(dataset, state).close()
    with iter(original) as expected, iter(dataset) as it:
        assert it.epoch == expected.epoch == 3
        assert_same_run(drain(it, case), drain(expected, case))


@every_case()
def test_state_of_another_plan_is_refused(case: Case) -> None:
    recording = recorded(case.id)
    n = len(recording.run.elements)
    foreign = fb.Dataset.range(977).enumerate(3).batch(11).unbatch().shuffle(5, seed=0).batch(2)
    with iter(foreign) as other:
        next(other)
        state = save(other)
    with resume(case.build(), recording.states[n // 2]) as it:
        with pytest.raises(fb.CursorError):
            it.load_state_dict(json.loads(state))
        assert_same_run(drain(it, case, done=n // 2), recording.run.tail(n // 2), "after the refusal:")


@every_case()
def test_what_is_no_state_is_refused(case: Case) -> None:
    with iter(case.build()) as it:
        for nonsense in ({}, {"version": -1}, {"version": "1", "cursor": []}, [], None, "state", np.int64(3)):
            with pytest.raises(fb.CursorError):
                it.load_state_dict(nonsense)
