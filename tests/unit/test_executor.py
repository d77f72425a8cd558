"""Executors in one process: threads, and none at all."""

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from forebay.errors import ClosedError
from forebay.run.executor import InlineExecutor, ThreadExecutor

Start = Callable[..., ThreadExecutor[Any]]


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[ThreadExecutor[Any]] = []

    def make(make: Any, workers: int) -> ThreadExecutor[Any]:
        made.append(ThreadExecutor(make, workers, "test"))
        return made[-1]

    yield make
    for executor in made:
        executor.close()
    assert not running()


def running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "forebay test"]


def meeting(parties: int) -> Callable[[Any], Any]:
    """A function that returns only once that many calls of it run at the same time."""
    barrier = threading.Barrier(parties)
    return lambda _: (barrier.wait(300), threading.current_thread())[1]


@pytest.mark.parametrize("make", [InlineExecutor, lambda make: ThreadExecutor(make, 3, "test")])
def test_every_job_gets_its_own_outcome(make: Any) -> None:
    executor = make(lambda: lambda x: 60 // x)
    jobs = [executor.submit(x) for x in (1, 2, 0, 3)]
    for job, wanted in zip(jobs, (60, 30, ZeroDivisionError, 20)):
        for _ in range(2):
            if isinstance(wanted, int):
                assert job.result() == wanted
            else:
                with pytest.raises(wanted):
                    job.result()
        assert job.done
    executor.close()


def test_as_many_threads_as_there_is_work(start: Start) -> None:
    executor = start(lambda: lambda x: x, 4)
    assert not running()
    for x in range(20):
        assert executor.submit(x).result() == x
    assert 1 <= len(running()) <= 4
    together = start(lambda: meet, 3)
    meet = meeting(3)
    assert len({job.result() for job in [together.submit(x) for x in range(3)]}) == 3


def test_each_thread_has_a_function_of_its_own(start: Start) -> None:
    made = []
    meet = meeting(2)

    def make() -> Callable[[Any], Any]:
        made.append(threading.current_thread())
        return meet

    executor = start(make, 2)
    jobs = [executor.submit(x) for x in range(4)]
    assert {job.result() for job in jobs} == set(made)
    assert len(made) == 2


def test_up_and_down(start: Start) -> None:
    executor = start(lambda: lambda meet: meet(0), 1)
    executor.submit(meeting(1)).result()
    executor.resize(3)
    meet = meeting(3)
    threads = {job.result() for job in [executor.submit(meet) for _ in range(3)]}
    assert len(threads) == 3
    executor.resize(1)
    until = time.monotonic() + 300
    while sum(thread.is_alive() for thread in threads) > 1:
        assert time.monotonic() < until
        time.sleep(0.001)
    assert executor.submit(meeting(1)).result() in threads


def test_jobs_that_nobody_has_begun_fail_at_close(start: Start) -> None:
    begun, go = threading.Event(), threading.Event()
    executor = start(lambda: lambda: (begun.set(), go.wait(300)), 1)
    jobs = [executor.submit() for _ in range(3)]
    begun.wait(300)
    closing = threading.Thread(target=executor.close)
    closing.start()
    while not executor._closed:
        time.sleep(0.001)
    go.set()
    closing.join(300)
    assert jobs[0].result() == (None, True)
    for job in jobs[1:]:
        with pytest.raises(ClosedError, match="test is closed"):
            job.result()
    with pytest.raises(ClosedError):
        executor.submit()


def test_functions_that_cannot_be_made(start: Start) -> None:
    executor = start(lambda: 1 // 0, 2)
    for job in [executor.submit(x) for x in range(5)]:
        with pytest.raises(ZeroDivisionError):
            job.result()


def test_who_rings_a_bell_keeps_no_result_alive() -> None:
    """Somebody who always finds a job done never waits for the bell, and so never takes anything from it."""

    class Result:
        pass

    executor = InlineExecutor(lambda: lambda: Result())
    executor.bell = SimpleQueue()
    job = executor.submit()
    result = weakref.ref(job.result())
    del job
    assert result() is None
    assert executor.bell.qsize() == 1
