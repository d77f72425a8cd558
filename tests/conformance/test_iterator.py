"""Iterators as objects: closing, threads, several at once, and what the user does to what he received."""

from __future__ import annotations

import copy
import gc
import json
import threading
from dataclasses import replace
from typing import Any

import pytest

import forebay as fb
from conformance import data
from conformance.case import Case, Run, drain, recorded, resume, run_epoch, some_steps
from conformance.compare import arrays, assert_same, assert_same_elements, assert_same_run, scribble
from conformance.parametrize import every_case

# Long enough for a loaded machine to end a thread that was told to; a hung thread fails the test.
PATIENCE = 300


def _new_threads(before: list[threading.Thread]) -> list[threading.Thread]:
    known = set(map(id, before))
    return [thread for thread in threading.enumerate() if id(thread) not in known]


@every_case()
def test_close_leaves_no_thread(case: Case) -> None:
    for k in some_steps(len(recorded(case.id).run.elements)):
        before = threading.enumerate()
        it = iter(case.build())
        for _ in range(k):
            next(it)
        it.close()
        assert _new_threads(before) == [], f"closed after {k}"


@every_case()
def test_with_leaves_no_thread(case: Case) -> None:
    before = threading.enumerate()
    with iter(case.build()) as it:
        for _ in range(min(1, len(recorded(case.id).run.elements))):
            next(it)
    assert _new_threads(before) == []


@every_case()
def test_an_error_inside_with_leaves_no_thread(case: Case) -> None:
    before = threading.enumerate()

    def read_and_fail() -> None:
        with iter(case.build()) as it:
            for _ in range(min(1, len(recorded(case.id).run.elements))):
                next(it)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        read_and_fail()
    assert _new_threads(before) == []


@every_case()
def test_garbage_collection_leaves_no_thread(case: Case) -> None:
    before = threading.enumerate()
    it = iter(case.build())
    for _ in range(min(1, len(recorded(case.id).run.elements))):
        next(it)
    del it
    gc.collect()
    for thread in _new_threads(before):
        thread.join(PATIENCE)
    assert _new_threads(before) == []


@every_case(lambda case: case.finite)
def test_the_end_leaves_no_thread(case: Case) -> None:
    before = threading.enumerate()
    it = iter(case.build())
    drain(it, case)
    for thread in _new_threads(before):
        thread.join(PATIENCE)
    assert _new_threads(before) == []
    it.close()


@every_case(lambda case: case.threaded)
def test_threaded_cases_do_run_a_thread(case: Case) -> None:
    before = threading.enumerate()
    with iter(case.build()) as it:
        next(it)
        assert _new_threads(before)
    assert _new_threads(before) == []


@every_case()
def test_closed_is_closed(case: Case) -> None:
    state = json.loads(recorded(case.id).states[0])
    it = iter(case.build())
    it.close()
    it.close()
    with pytest.raises(fb.ForebayError, match="closed"):
        next(it)
    with pytest.raises(fb.ForebayError, match="closed"):
        it.load_state_dict(state)
    it.close()


@every_case()
def test_closing_one_iterator_leaves_others_alone(case: Case) -> None:
    recording = recorded(case.id)
    dataset = case.build()
    n = len(recording.run.elements)
    with resume(dataset, recording.states[0]) as it:
        other = iter(dataset)
        head = [next(it) for _ in range(n // 2)]
        other.close()
        rest = drain(it, case, done=n // 2)
    assert_same_run(Run(head + rest.elements, rest.end), recording.run)


@every_case()
def test_two_at_once(case: Case) -> None:
    """Each goes its own way, whatever the other does; an epoch's run alone is the measure."""
    for pace in ((1, 1), (2, 1), (1, 5)):
        _two_at_once(case, pace)


def _two_at_once(case: Case, pace: tuple[int, int]) -> None:
    dataset = case.build()
    its = [iter(dataset), iter(dataset)]
    states = [it.state_dict() for it in its]
    found: list[list[Any]] = [[], []]
    ends: list[str | None] = [None, None]
    one_element = replace(case, limit=1)
    while None in ends:
        for i in (0, 1):
            for _ in range(pace[i]):
                if ends[i] is None:
                    part = drain(its[i], one_element)
                    found[i] += part.elements
                    if part.end != "limit" or len(found[i]) == case.limit:
                        ends[i] = part.end
    for it in its:
        it.close()
    for i, state in enumerate(states):
        with iter(case.build()) as alone:
            alone.load_state_dict(state)
            assert_same_run(Run(found[i], ends[i] or ""), drain(alone, case), f"paces {pace}, iterator {i}:")
    if case.seeded:
        again = case.build()
        for i in (0, 1):
            assert_same_run(
                Run(found[i], ends[i] or ""), run_epoch(again, case), f"paces {pace}, iterator {i} against epoch {i}:"
            )


@every_case()
def test_iterating_an_iterator_is_itself(case: Case) -> None:
    with iter(case.build()) as it:
        assert iter(it) is it


@every_case()
def test_arrays_received_can_be_written_into(case: Case) -> None:
    with resume(case.build(), recorded(case.id).states[0]) as it:
        for k in range(len(recorded(case.id).run.elements)):
            for array in arrays(next(it)):
                assert array.flags.writeable, f"element {k}"


@every_case()
def test_writing_into_elements_changes_nothing_else(case: Case) -> None:
    recording = recorded(case.id)
    dataset = case.build()
    kept: list[tuple[Any, Any]] = []
    try:
        with resume(dataset, recording.states[0]) as it:
            for k, expected in enumerate(recording.run.elements):
                element = next(it)
                assert_same(element, expected, f"element {k} after writing into those before it")
                # Every second one is kept as it is: it must not change when a later one is written into.
                if k % 2:
                    kept.append((element, copy.deepcopy(element)))
                else:
                    scribble(element)
        for element, as_received in kept:
            assert_same(element, as_received, "an element received earlier")
        with resume(dataset, recording.states[0]) as it:
            assert_same_run(drain(it, case), recording.run, "second pass:")
        _assert_sources_untouched()
    finally:
        _restore_sources()


@every_case()
def test_elements_outlive_the_iterator(case: Case) -> None:
    recording = recorded(case.id)
    it = resume(case.build(), recording.states[0])
    elements = [next(it) for _ in recording.run.elements]
    it.close()
    del it
    gc.collect()
    assert_same_elements(elements, recording.run.elements)


def _assert_sources_untouched() -> None:
    for name, pristine in data.build().items():
        assert_same(data.ARRAYS[name], pristine, f"source array {name!r}")


def _restore_sources() -> None:
    for name, pristine in data.build().items():
        data.ARRAYS[name][...] = pristine
