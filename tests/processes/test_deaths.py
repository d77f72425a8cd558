"""Workers that die, by themselves or by force."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forebay.errors import FunctionError
from processes.support import alive, wait_for


@pytest.mark.parametrize(
    ("die", "how"),
    [
        (lambda: os._exit(0), "exit code 0"),
        (lambda: os._exit(3), "exit code 3"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), "SIGTERM"),
        (lambda: __import__("ctypes").string_at(1), "SIGSEGV"),
    ],
)
def test_three_deaths_fail_the_job(start: Any, die: Any, how: str, capfd: Any) -> None:
    executor = start(lambda: lambda x: die() if x == 3 else x, describe=lambda x: f"element {x}")
    jobs = [executor.submit(x) for x in range(6)]
    with pytest.raises(FunctionError) as caught:
        jobs[3].result()
    assert str(caught.value).startswith(f"test: the worker process died 3 times on element 3: {how}")
    assert str(caught.value).endswith("(3 times)")
    assert [job.result() for job in jobs if job is not jobs[3]] == [0, 1, 2, 4, 5]


def test_arguments_are_described(start: Any) -> None:
    executor = start(lambda: lambda *_: os._exit(1))
    with pytest.raises(FunctionError, match=r"on the call with 5 \(builtins.int\), array\(\[0, 1, 2\]\)"):
        executor.submit(5, np.arange(3)).result()
    executor = start(lambda: lambda *_: os._exit(1), describe=lambda: "takes no argument")
    with pytest.raises(FunctionError, match="could not be described"):
        executor.submit(5).result()


def test_a_death_in_the_middle_repeats_the_job(start: Any, tmp_path: Path) -> None:
    def function(x: int) -> tuple[int, int]:
        marks = tmp_path / str(x)
        with marks.open("a") as file:
            file.write("begun\n")
        if x % 4 == 1 and len(marks.read_text().splitlines()) < 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return x, len(marks.read_text().splitlines())

    executor = start(lambda: function, workers=2)
    jobs = [executor.submit(x) for x in range(12)]
    results = [job.result() for job in jobs]
    assert [x for x, _ in results] == list(range(12))
    assert [times for x, times in results if x % 4 == 1] == [3, 3, 3]


def test_workers_that_cannot_start(start: Any) -> None:
    executor = start(lambda: os._exit(5))
    with pytest.raises(FunctionError, match=r"died 10 times before it could begin with .*: exit code 5 \(10 times\)"):
        executor.submit(1).result()


def test_an_idle_worker_is_replaced(start: Any) -> None:
    executor = start(lambda: lambda: os.getpid())
    pid = executor.submit().result()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive(pid), "the worker's death")
    assert executor.submit().result() != pid


def test_a_worker_that_closes_everything_is_a_death(start: Any) -> None:
    executor = start(lambda: lambda: (os.closerange(3, 100), time.sleep(1000)))
    with pytest.raises(FunctionError, match="died 3 times"):
        executor.submit().result()


def test_a_death_is_noticed_though_a_child_of_the_worker_lives(start: Any, tmp_path: Path) -> None:
    def function() -> None:
        pid = os.fork()
        if pid == 0:
            time.sleep(1000)
            os._exit(0)
        with (tmp_path / "pids").open("a") as file:
            file.write(f"{pid}\n")
        os._exit(9)

    try:
        with pytest.raises(FunctionError, match="exit code 9"):
            start(lambda: function).submit().result()
    finally:
        for pid in (tmp_path / "pids").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
