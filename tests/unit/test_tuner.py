"""The tuner: what it makes of what it sees. Time is what the test says it is."""

from __future__ import annotations

import pytest

from forebay.run import tuner as module
from forebay.run.meter import Meter
from forebay.run.tuner import Tuner


class Step:
    """Stands for a parallel step: a meter, and a number of workers that may be changed."""

    def __init__(self, workers: int, most: int = 64) -> None:
        self.meter = Meter()
        self.tuned_workers = workers
        self.most_workers = most


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    return now


def intervals(tuner: Tuner, clock: list[float], step: Step, number: int, rate, share: float, waited: float = 0.9):
    """Let time pass, with all workers busy; `rate` says how many rows a second so many workers do."""
    seen = []
    for _ in range(number):
        clock[0] += 0.2
        step.meter.rows += int(rate(step.tuned_workers) * 0.2)
        step.meter.worked += 0.2 * step.tuned_workers
        step.meter.cpu += 0.2 * step.tuned_workers * share
        step.meter.waited += 0.2 * waited
        tuner.tick()
        seen.append(step.tuned_workers)
    return seen


def test_a_step_that_computes_gets_as_many_workers_as_there_are_processors(clock):
    tuner, step = Tuner(4, enabled=True), Step(2)
    tuner.add(step)
    seen = intervals(tuner, clock, step, 40, lambda workers: 1000 * min(workers, 4), share=1.0)
    assert seen[-1] == max(seen) == 4


def test_workers_that_are_starting_do_not_look_like_a_reason_for_more(clock):
    tuner, step = Tuner(2, enabled=True), Step(2)
    tuner.add(step)
    # Little comes while the processes start, and what they compute is little, too.
    clock[0] += 0.2
    tuner.tick()
    for rows in (1, 5, 300, 2000, 2000, 2000):
        clock[0] += 0.2
        step.meter.rows += rows
        step.meter.worked += 0.2 * 2
        step.meter.cpu += 0.2 * 2 * 0.95
        step.meter.waited += 0.19
        tuner.tick()
        assert step.tuned_workers == 2


def test_a_step_that_waits_gets_more_while_that_helps(clock):
    tuner, step = Tuner(2, enabled=True), Step(2, most=64)
    tuner.add(step)
    seen = intervals(tuner, clock, step, 24, lambda workers: 100 * min(workers, 16), share=0.05)
    assert 16 in seen
    assert seen[-1] == 16


def test_more_workers_that_bring_nothing_are_taken_back_for_a_while(clock):
    tuner, step = Tuner(8, enabled=True), Step(2)
    tuner.add(step)
    seen = intervals(tuner, clock, step, 20, lambda workers: 1000, share=1.0)
    assert max(seen) == 3
    assert seen[-10:] == [2] * 10


def test_other_steps_leave_only_the_rest_of_the_processors(clock):
    tuner, step, other = Tuner(4, enabled=True), Step(1), Step(3, most=3)
    tuner.add(step)
    tuner.add(other)
    for _ in range(30):
        for each in (step, other):
            each.meter.rows += 100 * each.tuned_workers
            each.meter.worked += 0.2 * each.tuned_workers
            each.meter.cpu += 0.2 * each.tuned_workers
            each.meter.waited += 0.19
        clock[0] += 0.2
        tuner.tick()
        assert step.tuned_workers == 1


def test_a_pause_of_whoever_asks_for_rows_costs_no_worker(clock):
    tuner, step = Tuner(2, enabled=True), Step(2)
    tuner.add(step)
    intervals(tuner, clock, step, 5, lambda workers: 1000 * workers, share=0.95)
    for _ in range(3):
        clock[0] += 5.0  # An evaluation, say, with the workers' results waiting.
        step.meter.worked += 0.1
        tuner.tick()
        assert step.tuned_workers == 2
        assert set(intervals(tuner, clock, step, 5, lambda workers: 1000 * workers, share=0.95)) == {2}


def test_workers_that_idle_are_let_go_but_never_the_last(clock):
    tuner, step = Tuner(4, enabled=True), Step(4)
    tuner.add(step)
    for _ in range(20):
        clock[0] += 0.2
        step.meter.rows += 10
        step.meter.worked += 0.02
        tuner.tick()
    assert step.tuned_workers == 1


def test_one_that_is_not_enabled_changes_nothing(clock):
    tuner, step = Tuner(4, enabled=False), Step(2)
    tuner.add(step)
    assert set(intervals(tuner, clock, step, 20, lambda workers: 1000 * workers, share=0.0)) == {2}


def test_one_step_is_tried_at_a_time(clock):
    tuner, first, second = Tuner(8, enabled=True), Step(2), Step(2)
    tuner.add(first)
    tuner.add(second)
    changed = []
    for _ in range(12):
        before = first.tuned_workers, second.tuned_workers
        clock[0] += 0.2
        for step in (first, second):
            # Whatever either does, what comes out is what the first lets through.
            step.meter.rows += 100 * first.tuned_workers
            step.meter.worked += 0.2 * step.tuned_workers
            step.meter.cpu += 0.2 * step.tuned_workers * 0.4
            step.meter.waited += 0.18
        tuner.tick()
        after = first.tuned_workers, second.tuned_workers
        changed.append(sum(a > b for a, b in zip(after, before)))
    assert max(changed) == 1
    assert first.tuned_workers > 4
    assert second.tuned_workers == 2


def test_a_gain_that_may_be_chance_is_no_reason_to_take_another_processor(clock):
    tuner, step = Tuner(4, enabled=True), Step(2)
    tuner.add(step)
    seen = intervals(tuner, clock, step, 20, lambda workers: 1000 * (1.0 if workers == 2 else 1.08), share=0.6)
    assert max(seen) == 3
    assert seen[-1] == 2


def test_two_steps_that_hold_each_other_up_get_more_together(clock):
    # One waits for 5 ms a row and one computes for 150 us: with 32 and 1 workers they are about even, and more of
    # either alone brings next to nothing.
    tuner, waits, computes = Tuner(2, enabled=True), Step(32, most=64), Step(1, most=64)
    tuner.add(computes)
    tuner.add(waits)
    for _ in range(12):
        clock[0] += 0.2
        could = {waits: waits.tuned_workers / 0.005, computes: min(computes.tuned_workers, 2) / 0.00015}
        rate = min(could.values())
        for step, seconds, share in ((waits, 0.005, 0.004), (computes, 0.00015, 1.0)):
            step.meter.rows += int(rate * 0.2)
            step.meter.worked += rate * 0.2 * seconds
            step.meter.cpu += rate * 0.2 * seconds * share
            step.meter.waited += 0.18 if rate > 0.9 * could[step] else 0.0
        tuner.tick()
    assert (waits.tuned_workers, computes.tuned_workers) == (64, 2)


def test_a_step_that_ends_while_it_is_tried_does_not_stop_the_others(clock):
    tuner, step, ending = Tuner(4, enabled=True), Step(1), Step(1)
    tuner.add(ending)
    tuner.add(step)
    seen = intervals(tuner, clock, ending, 2, lambda workers: 100 * workers, share=0.0)
    assert seen[-1] == 2
    del ending
    seen = intervals(tuner, clock, step, 20, lambda workers: 100 * workers, share=0.0)
    assert seen[-1] > 8
