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
