"""What several threads do with one dispatcher at once: there is one thread that has its workers, whatever the order."""

import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forebay.errors import ClosedError, InternalError
from forebay.ledger import Ledger
from forebay.run.executor import Job
from forebay.run.process import ProcessExecutor
from forebay.run.process.child import Child, Launch, Task
from forebay.run.process.dispatcher import STARTS
from forebay.run.process.hosts import Guests
from processes.support import DEADLINE, fds, run_script, threads, wait_for

TIGHT = 32 << 20
"""Room for one worker."""


class SlowStart:
    """The first thread of a name: its ``start`` does not return, or not even begin, until it is released."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()
        self.entering: list[str] = []
        start = threading.Thread.start

        def slow(thread: threading.Thread) -> None:
            if thread.name == name:
                self.entering.append(name)
            if thread.name != name or len(self.entering) > 1:
                start(thread)
                return
            self.entered.set()
            if before:
                assert self.release.wait(DEADLINE)
            start(thread)
            assert self.release.wait(DEADLINE)

        monkeypatch.setattr(threading.Thread, "start", slow)


class Home:
    """Where tasks come from that a test hands to a worker by itself."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.name = "home"
        self.launch = Launch(make, "home")

    def task(self, *arguments: Any) -> Task:
        return Task(Job(arguments), self)


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), name="caller")
    thread.start()
    return thread, found


def is_in(thread: threading.Thread, function: str) -> bool:
    """Whether the thread is at this place, where it waits for a lock."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_name == function


class Pair(NamedTuple):
    """A host, and a guest that has no room for workers of its own."""

    host: ProcessExecutor[Any]
    guest: ProcessExecutor[Any]
    ledger: Ledger


@pytest.fixture
def pair() -> Iterator[Pair]:
    ledger = Ledger(TIGHT)
    made = [ProcessExecutor[Any](lambda name=name: lambda x: (name, x), 1, name) for name in ("host", "guest")]
    for executor in made:
        executor.count_in(ledger)
    yield Pair(made[0], made[1], ledger)
    for executor in made:
        executor.close()


def test_a_host_that_is_still_being_started_gets_no_second_thread(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread has a worker already, and is lent tasks, while whoever starts it has not been told so."""
    host, guest, _ = pair
    slow = SlowStart("forebay host", monkeypatch, before=False)
    starter, found = in_thread(lambda: host.submit(0))
    wait_for(lambda: host._dispatcher.hosting, "the host to have workers")
    assert guest.submit(0).result() == ("guest", 0)
    assert not found
    slow.release.set()
    starter.join()
    assert slow.entering == ["forebay host"]
    jobs = [executor.submit(i) for i in range(50) for executor in (host, guest)]
    assert [job.result() for job in [*found, *jobs]] == [
        ("host", 0),
        *((who, i) for i in range(50) for who in ("host", "guest")),
    ]


def test_two_that_submit_at_once_start_one_thread(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = start(lambda: lambda x: x + 1)
    slow = SlowStart("forebay test", monkeypatch, before=True)
    callers = [in_thread(lambda x=x: executor.submit(x)) for x in range(2)]
    assert slow.entered.wait(DEADLINE)
    wait_for(lambda: len(slow.entering) == 2 or any(is_in(caller, "_start") for caller, _ in callers), "the other one")
    slow.release.set()
    for caller, _ in callers:
        caller.join()
    assert [found[0].result() for _, found in callers] == [1, 2]
    assert slow.entering == ["forebay test"]


def test_closed_while_it_is_being_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever closes waits for what is about to be there."""
    before = fds()
    executor: ProcessExecutor[Any] = ProcessExecutor(lambda: len, 1, "test")
    slow = SlowStart("forebay test", monkeypatch, before=True)
    starter, found = in_thread(lambda: executor.submit("abc"))
    assert slow.entered.wait(DEADLINE)
    closer, _ = in_thread(lambda: (executor.close(), slow.release.is_set()))

    wait_for(lambda: not closer.is_alive() or is_in(closer, "_end_unstarted"), "the lock to be waited for")
    assert closer.is_alive()
    slow.release.set()
    closer.join()
    starter.join()
    with pytest.raises(ClosedError, match="test is closed"):
        found[0].result()
    assert threads() == []
    assert fds() == before


def test_a_job_that_comes_after_the_end_is_not_left_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread has closed it between the look at whether it is closed and the job."""
    executor: ProcessExecutor[Any] = ProcessExecutor(lambda: len, 1, "test")

    def made(*arguments: Any) -> Task:
        executor.close()
        return Task(*arguments)

    monkeypatch.setattr("forebay.run.process.dispatcher.Task", made)
    with pytest.raises(ClosedError, match="test is closed"):
        executor.submit("abc").result()
    assert threads() == []


def test_a_thread_that_cannot_be_had_is_asked_for_again(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    executor = start(lambda: len)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            executor.submit("abc")
    assert executor.submit("abcd").result() == 4


def test_moving_to_another_ledger_does_not_cut_a_decision_in_two(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread has found who is to do its tasks, and goes by that."""
    host, guest, ledger = pair
    host.submit(0).result()
    add = Guests.add

    def interrupted(guests: Guests, who: Any) -> None:
        add(guests, who)
        guest.count_in(ledger)

    def no_more(launch: Launch) -> Child:
        raise AssertionError("the guest has started a worker")

    monkeypatch.setattr(Guests, "add", interrupted)
    monkeypatch.setattr("forebay.run.process.dispatcher.Child", no_more)
    assert guest.submit(1).result() == ("guest", 1)
    assert not guest._dispatcher.hosting


def test_what_is_held_moves_along(pair: Pair) -> None:
    host, guest, _ = pair
    host.submit(0).result()
    there = Ledger(TIGHT)
    host.count_in(there)
    assert there.held > 0
    # Nobody is left where it was, so that the other one has a worker now.
    assert host.submit(1).result() == ("host", 1)
    assert guest.submit(1).result() == ("guest", 1)
    assert guest._dispatcher.hosting
    host.close()
    assert there.held == 0


def test_workers_refuse_other_threads(start: Any) -> None:
    executor = start(lambda: len)
    executor.submit("abc").result()
    (child,) = executor._dispatcher._children
    for use in (child.receive, child.bury, lambda: child.send(Task(Job(("abc",)), executor._dispatcher))):
        with pytest.raises(InternalError, match="a thread that it does not belong to"):
            use()
    assert executor.submit("abcd").result() == 4


@pytest.fixture
def child() -> Iterator[tuple[Home, Child]]:
    """A worker of this very thread."""
    home = Home(lambda: lambda call, *arguments: call(*arguments))
    made = Child(home.launch)
    yield home, made
    made.stop(signal.SIGKILL)
    assert made.ended(DEADLINE)
    made.bury()
    home.launch.close()


def test_an_answer_names_what_it_answers(child: tuple[Home, Child]) -> None:
    home, worker = child
    task = home.task(len, "abc")
    worker.send(task)
    task.number += 1

    assert select.select([worker.socket], [], [], DEADLINE)[0]
    with pytest.raises(InternalError, match="has answered what it was not asked"):
        worker.receive()
    assert not task.job.done


def test_whoever_leaves_takes_along_what_has_begun_behind_an_answer(child: tuple[Home, Child], tmp_path: Path) -> None:
    """The worker is on its second task, and nobody has taken the first one's answer yet."""

    def hang() -> None:
        (tmp_path / "begun").touch()
        time.sleep(1000)

    home, worker = child
    guest = Home(lambda: hang)
    first, second = home.task(len, "abc"), guest.task()
    worker.send(first)
    worker.send(second)
    wait_for((tmp_path / "begun").exists, "the function to be called")
    worker.part_from(guest, ClosedError("guest is closed"))
    assert worker.ended(DEADLINE)
    assert worker.stopped
    assert worker.receive()
    assert first.job.result() == 3
    with pytest.raises(ClosedError):
        second.job.result()
    guest.launch.close()


def test_what_nobody_waits_for_ends_when_its_turn_comes(child: tuple[Home, Child], tmp_path: Path) -> None:
    """It may go on for ever; what somebody waits for is done before that."""

    def wait() -> str:
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        return "waited"

    home, worker = child
    guest = Home(lambda: lambda: time.sleep(1000))
    first, second = home.task(wait), guest.task()
    worker.send(first)
    worker.send(second)
    worker.part_from(guest, ClosedError("guest is closed"))
    assert not worker.stopped
    (tmp_path / "go").touch()
    wait_for(worker.receive, "the first answer")
    assert first.job.result() == "waited"
    assert worker.ended(DEADLINE)
    guest.launch.close()


def test_a_worker_that_was_stopped_for_a_guest_is_held_against_nobody(pair: Pair, tmp_path: Path) -> None:
    """More often than it takes for a job to fail, at every stage of the worker's life."""
    host, _, ledger = pair
    host.submit(0).result()
    for _ in range(STARTS + 1):
        guest: ProcessExecutor[Any] = ProcessExecutor(lambda: lambda: time.sleep(1000), 1, "hanging")
        guest.count_in(ledger)
        stuck = guest.submit()
        behind = host.submit(1)
        guest.close()
        with pytest.raises(ClosedError, match="hanging is closed"):
            stuck.result()
    assert behind.result() == ("host", 1)


def test_a_forked_child_does_not_rely_on_workers_of_its_parent(tmp_path: Path) -> None:
    """Its copy of the ledger names dispatchers that have no thread there."""
    out = run_script(
        tmp_path,
        "import os, signal\n"
        "from forebay import Ledger\n"
        "ledger = Ledger('32MiB')\n"
        "def made(name):\n"
        "    executor = ProcessExecutor(lambda: lambda x: (name, x), 1, name)\n"
        "    executor.count_in(ledger)\n"
        "    return executor\n"
        "host = made('host')\n"
        "print(host.submit(0).result(), flush=True)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(100)\n"
        "    other = made('other')\n"
        "    print(other.submit(1).result(), flush=True)\n"
        "    other.close()\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "print(host.submit(2).result())\n"
        "host.close()\n",
    )
    assert out == "('host', 0)\n('other', 1)\n('host', 2)\n"


def test_a_dataset_goes_on_in_a_forked_child(tmp_path: Path) -> None:
    """The workers that are parked for the next iteration are not its own."""
    out = run_script(
        tmp_path,
        "import os, signal\n"
        "import forebay as fb\n"
        "ds = fb.Dataset.range(4).map(lambda x: x + 1, num_parallel_calls=1, executor='process')\n"
        "print(list(map(int, ds)), flush=True)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(100)\n"
        "    print(list(map(int, ds)), flush=True)\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "print(list(map(int, ds)))\n",
    )
    assert out == "[1, 2, 3, 4]\n" * 3
