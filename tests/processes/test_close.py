"""What is left when an executor is gone."""

import gc
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forebay import Dataset
from forebay.errors import ClosedError
from forebay.run.process import ProcessExecutor
from processes.support import alive, fds, run_script, threads, wait_for


def test_nothing_is_left(tmp_path: Path) -> None:
    before = fds()
    for _ in range(3):
        executor: ProcessExecutor[Any] = ProcessExecutor(lambda: lambda: os.getpid(), 2, "test")
        pid = executor.submit().result()
        executor.close()
        executor.close()
        assert not alive(pid)
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    assert fds() == before
    assert threads() == []


def test_unused_executors_leave_nothing() -> None:
    before = fds()
    for _ in range(100):
        ProcessExecutor(lambda: len, 2, "test").close()
    assert fds() == before


def test_in_the_middle_of_a_call(tmp_path: Path) -> None:
    def function(x: int) -> None:
        if x == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (tmp_path / f"{os.getpid()}").touch()
        time.sleep(1000)

    executor: ProcessExecutor[Any] = ProcessExecutor(lambda: function, 2, "test")
    jobs = [executor.submit(x) for x in range(5)]
    wait_for(lambda: len(os.listdir(tmp_path)) == 2, "both calls to begin")
    executor.close()
    assert not any(alive(int(pid)) for pid in os.listdir(tmp_path))
    assert threads() == []
    for job in jobs:
        with pytest.raises(ClosedError, match="test is closed"):
            job.result()
    with pytest.raises(ClosedError):
        executor.submit(1)


def test_while_workers_are_starting() -> None:
    before = fds()
    executor: ProcessExecutor[Any] = ProcessExecutor(lambda: len, 3, "test")
    jobs = [executor.submit("abc") for _ in range(3)]
    executor.close()
    assert fds() == before
    assert all(job.done for job in jobs)


def test_idle_workers_clean_up_after_themselves(start: Any, tmp_path: Path) -> None:
    def make() -> Callable[[], None]:
        import atexit

        atexit.register((tmp_path / "cleaned").touch)
        return lambda: None

    executor = start(make)
    executor.submit().result()
    executor.resize(1)
    executor._dispatcher._children[0].hang_up()
    wait_for((tmp_path / "cleaned").exists, "the worker's own clean-up")


def test_garbage_collection_closes(tmp_path: Path) -> None:
    executor: ProcessExecutor[Any] = ProcessExecutor(lambda: lambda: os.getpid(), 1, "test")
    pid = executor.submit().result()
    circle: list[Any] = [executor]
    circle.append(circle)
    del executor, circle

    def is_over() -> bool:
        gc.collect()
        return not alive(pid) and not threads()

    wait_for(is_over, "the worker to end")


def test_a_forked_child_of_the_parent_leaves_the_workers_alone(tmp_path: Path) -> None:
    out = run_script(
        tmp_path,
        "import os, sys\n"
        "executor = ProcessExecutor(lambda: lambda: os.getpid(), 1, 'x')\n"
        "pid = executor.submit().result()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    executor.close()\n"
        "    sys.exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(executor.submit().result() == pid)\n"
        "executor.close()\n",
    )
    assert out == "True\n"


@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "import threading; del executor"])
def test_interpreter_exit(tmp_path: Path, ending: str) -> None:
    out = run_script(
        tmp_path,
        "import os, time\n"
        "executor = ProcessExecutor(lambda: lambda x: (os.getpid(), time.sleep(x))[0], 2, 'x')\n"
        "print(executor.submit(0).result(), flush=True)\n"
        "jobs = [executor.submit(1000) for _ in range(4)]\n" + ending,
    )
    assert not alive(int(out))


def _own_process(row):
    return row * 0 + os.getpid()


def _inner(_):
    return Dataset.range(8).map(_own_process, num_parallel_calls=1, executor="process")


def test_inner_datasets_share_their_workers_one_after_another():
    dataset = Dataset.range(4).flat_map(_inner)
    assert len({int(pid) for pid in dataset}) == 1


def test_workers_of_inner_datasets_end_with_a_run_that_is_broken_off():
    it = iter(Dataset.range(4).flat_map(_inner))
    pids = {int(next(it)) for _ in range(20)}
    del it
    gc.collect()
    wait_for(lambda: not any(alive(pid) for pid in pids), "the workers to end")


def _sleeps_from_30_on(row):
    if row >= 30:
        time.sleep(600)
    return row


def _on_processes(_=None):
    return Dataset.range(200).map(_sleeps_from_30_on, num_parallel_calls=2, executor="process")


@pytest.mark.parametrize(
    "build",
    [
        lambda: _on_processes().prefetch(4),
        lambda: Dataset.range(3).flat_map(_on_processes).prefetch(4),
        lambda: Dataset.range(3).interleave(_on_processes, cycle_length=2, num_parallel_calls=2),
        lambda: Dataset.range(3).interleave(_on_processes, cycle_length=2, num_parallel_calls=2).prefetch(4),
    ],
    ids=["prefetch", "flat_map and prefetch", "interleave", "interleave and prefetch"],
)
def test_a_thread_that_waits_for_processes_does_not_wait_for_the_function(build):
    with iter(build()) as it:
        next(it)
    assert threads() == []
