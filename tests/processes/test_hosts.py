"""Executors of one budget: where it has no room for workers of each, one of them works for the others too."""

import gc
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forebay.errors import ClosedError, FunctionError
from forebay.ledger import Ledger
from forebay.run.process import ProcessExecutor
from processes.support import alive, fds, wait_for

TIGHT = 32 << 20
"""Room for one worker."""


def tagged(tag: str) -> Any:
    """What makes a function of its own, sent as a whole: a worker need not import this file."""
    return lambda: lambda value: (tag, os.getpid(), value)


class Street:
    """Executors on one ledger."""

    def __init__(self, budget: int) -> None:
        self.ledger = Ledger(budget)
        self._stack = ExitStack()

    def executor(self, make: Any, name: str, workers: int = 1) -> ProcessExecutor[Any]:
        executor: ProcessExecutor[Any] = ProcessExecutor(make, workers, name)
        self._stack.callback(executor.close)
        executor.count_in(self.ledger)
        return executor

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def street() -> Iterator[Street]:
    made = Street(TIGHT)
    yield made
    made.close()


def pid_of(executor: ProcessExecutor[Any]) -> int:
    return int(executor.submit("which").result()[1])


def test_one_worker_does_what_several_ask_for(street: Street) -> None:
    executors = [street.executor(tagged(tag), tag, workers=2) for tag in ("a", "b", "c")]
    host = pid_of(executors[0])
    jobs = [(tag, i, executors["abc".index(tag)].submit(np.full(5000, i))) for i in range(30) for tag in "abc"]
    for tag, i, job in jobs:
        answered, pid, value = job.result()
        assert (answered, pid) == (tag, host)
        np.testing.assert_array_equal(value, np.full(5000, i))
    assert street.ledger.held <= TIGHT


def test_where_there_is_room_each_has_its_own() -> None:
    street = Street(1 << 30)
    try:
        executors = [street.executor(tagged(tag), tag) for tag in ("a", "b")]
        assert pid_of(executors[0]) != pid_of(executors[1])
    finally:
        street.close()


def test_those_that_start_at_once_have_one_worker_together(street: Street) -> None:
    """Neither does each start one, nor does each wait for the other's."""
    executors = [street.executor(tagged(str(i)), str(i)) for i in range(6)]
    jobs = [executor.submit(0) for executor in executors]
    assert len({job.result()[1] for job in jobs}) == 1


def test_a_guest_goes_on_without_its_host(street: Street) -> None:
    host, guest = (street.executor(tagged(tag), tag) for tag in ("host", "guest"))
    before = pid_of(host)
    jobs = [guest.submit(i) for i in range(200)]
    assert jobs[0].result()[1] == before
    host.close()
    assert [job.result()[::2] for job in jobs] == [("guest", i) for i in range(200)]
    assert pid_of(guest) != before
    assert not alive(before)


def test_a_guest_that_is_closed_leaves_nothing(street: Street, tmp_path: Path) -> None:
    """Its function hangs; the host's tasks behind that are done all the same."""

    def hang() -> None:
        (tmp_path / "begun").touch()
        time.sleep(1000)

    host = street.executor(tagged("host"), "host")
    pid_of(host)
    guest = street.executor(lambda: hang, "guest")
    stuck = [guest.submit() for _ in range(3)]
    wait_for((tmp_path / "begun").exists, "the function to be called")
    behind = [host.submit(i) for i in range(3)]
    guest.close()
    assert all(job.done for job in stuck)
    for job in stuck:
        with pytest.raises(ClosedError, match="guest is closed"):
            job.result()
    assert [job.result()[::2] for job in behind] == [("host", i) for i in range(3)]


def test_the_host_forgets_functions_of_guests_that_are_gone(street: Street) -> None:
    def count(name: str) -> int:
        gc.collect()
        return sum(type(each).__name__ == name for each in gc.get_objects())

    def make() -> Any:
        class Marked:
            """Something that is in no worker unless a function brings it."""

        marked = Marked()
        marked.itself = marked  # type: ignore[attr-defined]
        return lambda: type(marked).__name__

    host = street.executor(lambda: count, "host")
    assert host.submit("Marked").result() == 0
    before = fds()
    for _ in range(3):
        guest = street.executor(make, "guest")
        assert guest.submit().result() == "Marked"
        assert host.submit("Marked").result() == 1
        guest.close()
        wait_for(lambda: host.submit("Marked").result() == 0, "the function to be forgotten")
    assert fds() == before


def test_errors_are_those_of_whoever_asked(street: Street) -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    host = street.executor(tagged("host"), "host")
    before = pid_of(host)
    failing = street.executor(lambda: fail, "failing")
    dying = street.executor(lambda: lambda: os.kill(os.getpid(), signal.SIGKILL), "dying")
    with pytest.raises(ValueError, match="no good"):
        failing.submit("no good").result()
    assert pid_of(host) == before
    with pytest.raises(FunctionError, match=r"^dying: the worker process died 3 times on the call with no arguments"):
        dying.submit().result()
    assert host.submit(1).result()[::2] == ("host", 1)


def test_a_worker_too_many_goes_where_a_neighbour_has_one() -> None:
    """Two fit at first. They grow, and one of the executors does without from then on."""

    def make() -> Any:
        kept = []

        def keep(size: int) -> int:
            kept.append(b"1" * size)
            return os.getpid()

        return keep

    street = Street(80 << 20)
    try:
        one, other = street.executor(make, "one"), street.executor(make, "other")
        first, second = one.submit(0).result(), other.submit(0).result()
        assert first != second
        for _ in range(10):
            one.submit(4 << 20).result()
        wait_for(lambda: one.submit(0).result() == other.submit(0).result(), "one worker to be left")
        wait_for(lambda: alive(first) != alive(second), "the other one to end")
    finally:
        street.close()
