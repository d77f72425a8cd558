"""Processes that bring less than no workers at all are given up, by what comes out in turns of both."""

from types import SimpleNamespace
from typing import Any

import pytest

from forebay.run.auto import AutoExecutor
from forebay.run.comparison import Comparison
from forebay.run.crew import Choice
from forebay.run.executor import Executor, InlineExecutor, Job, ThreadExecutor
from forebay.run.gil_probe import GilProbe, Seen

KNOWN = 1000.0


class Course:
    """Runs a comparison against rates of both, with chunks of 10 rows."""

    def __init__(self, waits: float = 1.0) -> None:
        self.comparison = Comparison()
        self.now = self.waited = 0.0
        self.waits = waits
        self.turns: list[bool] = []

    def run(self, processes: Any, alone: Any, seconds: float = 30.0) -> str | None:
        end = self.now + seconds
        while self.comparison.verdict is None and self.now < end:
            rate = (alone if self.comparison.alone else processes)(self.now)
            self.now += 10 / rate
            self.waited += 0.0 if self.comparison.alone else self.waits * 10 / rate
            if self.comparison.observe(self.now, 10, self.waited, KNOWN):
                self.turns.append(self.comparison.alone)
                self.comparison.begin(4)
        return self.comparison.verdict


def steady(rate: float) -> Any:
    return lambda now: rate


def test_processes_that_make_more_than_one_thread_did_are_not_put_to_the_test() -> None:
    course = Course()
    assert course.run(steady(KNOWN * 1.01), steady(KNOWN * 9)) == ""
    assert course.turns == []
    assert 1.0 < course.now < 1.1


def test_processes_that_lose_every_turn_are_given_up() -> None:
    course = Course()
    verdict = course.run(steady(400), steady(800))
    assert (
        verdict == "it holds the interpreter lock, but processes give 0.50 times as many elements a second as none do"
    )
    assert course.turns == [True, False, True, False, True, True]
    assert course.now < 3


@pytest.mark.parametrize("alone", [200, 400, 450])
def test_one_turn_is_enough_to_keep_them(alone: float) -> None:
    """On a busy machine, where both are slower than what was measured."""
    course = Course()
    assert course.run(steady(400), steady(alone)) == ""
    assert course.turns == [True, False]


def test_a_passing_load_does_not_decide_against_them() -> None:
    course = Course()
    assert course.run(lambda now: 100 if now < 1.3 else 900, lambda now: 600) == ""
    assert course.turns == [True, False, True, False]


def test_nothing_is_decided_while_the_consumer_is_the_slow_part() -> None:
    course = Course(waits=0.3)
    assert course.run(steady(400), steady(800)) is None
    assert course.turns == []
    course.waits = 0.9
    assert course.run(steady(400), steady(800))


def test_large_chunks_have_as_long_as_they_take() -> None:
    course = Course()
    assert course.run(steady(5), steady(9), 1000.0)
    assert course.now > 3 * 3 * 10 / 5


class Processes(Executor[str]):
    kind = "process"

    def __init__(self) -> None:
        self.workers = 2
        self.closed = False

    def submit(self, *arguments: Any) -> Job[str]:
        assert not self.closed
        job: Job[str] = Job(arguments, self.bell)
        job.finish("process", None)
        return job

    def resize(self, workers: int) -> None:
        self.workers = workers

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("slow", [True, False])
def test_the_executor_goes_back_once_and_for_all(slow: bool) -> None:
    clock = SimpleNamespace(now=0.0)
    settled: list[Choice] = []
    processes = Processes()
    seen = Seen(rows=1000, cpu=1.0, wall=1.0)
    comparison = Comparison()

    def executor(choice: Choice) -> AutoExecutor[str]:
        threads = ThreadExecutor(lambda: lambda *_: "thread", 2, "map")
        return AutoExecutor(
            2,
            threads,
            GilProbe(seen),
            lambda: InlineExecutor(lambda: lambda *_: "inline"),
            lambda: processes,
            settled.append,
            choice,
            comparison,
            lambda: clock.now,
        )

    auto = executor(Choice("process", "told to"))
    made: list[str] = []
    waited = 0.0
    try:
        ahead: list[Job[str]] = []
        for _ in range(500):
            while len(ahead) < max(1, 2 * auto.workers):
                ahead.append(auto.submit(SimpleNamespace(rows=10), 0))
            made.append(ahead.pop(0).result())
            seconds = 0.01 if made[-1] == "inline" else 0.02 if slow else 0.005
            clock.now += seconds
            waited += 0.0 if made[-1] == "inline" else seconds
            auto.observe(10, waited)
        assert processes.closed is slow
        assert auto.kind == made[-1] == ("inline" if slow else "process")
        assert ("inline" in made) is slow
        assert auto.workers == (0 if slow else 2)
    finally:
        auto.close()
    assert len(settled) == (2 if slow else 1)
    if slow:
        assert str(settled[-1]).startswith("inline: it holds the interpreter lock, but processes give 0.50 times")
        again = executor(settled[-1])
        assert again.submit(SimpleNamespace(rows=10), 0).result() == "inline"
        again.close()
