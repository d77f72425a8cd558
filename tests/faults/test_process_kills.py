"""Workers and parents of process executors, killed and interrupted at arbitrary points."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forebay.block import LEAF, Block, Cursor
from forebay.block.dense import Dense
from forebay.run.process import ProcessExecutor
from processes.support import DEADLINE, alive, fds, threads, wait_for

pytestmark = pytest.mark.slow

PARENT = """
import os, sys, time
import numpy as np
from forebay.run.process import ProcessExecutor

def function(x, array):
    os.write(1, b"worker %d\\n" % os.getpid())  # At once, or the lines of two workers mix.
    if x == 0:
        time.sleep(MIDDLE)
    return array

executor = ProcessExecutor(lambda: function, 2, "test")
try:
    print("started", flush=True)
    for _ in range(10_000_000):
        jobs = [executor.submit(x, np.ones(300_000)) for x in range(6)]
        for job in jobs:
            job.result()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    executor.close()
    print("closed", flush=True)
"""


def descendants(root: int) -> set[int]:
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found, new = set(), {root}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return found


class Parent:
    """A script that runs jobs until it is killed, in a process group of its own."""

    def __init__(self, tmp_path: Path, middle: float) -> None:
        script = tmp_path / "parent.py"
        script.write_text(PARENT.replace("MIDDLE", str(middle)))
        self.output = tmp_path / "output"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(script)], stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def text(self) -> str:
        return self.output.read_text()

    @property
    def workers(self) -> set[int]:
        lines = self.text.split("\n")[:-1]
        return {int(line.split()[1]) for line in lines if line.startswith("worker ")}


@pytest.fixture(scope="module")
def executor() -> Iterator[ProcessExecutor[Any]]:
    def function(block: Block, indices: Any, add: int) -> tuple[Block, None]:
        values = block.take(indices).columns[0].values  # type: ignore[attr-defined]
        return Block(LEAF, [Dense(values + add)], len(indices), block.cursor), None

    made: ProcessExecutor[Any] = ProcessExecutor(lambda: function, 2, "shared")
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(50))
def test_killed_workers_change_nothing(executor: ProcessExecutor[Any], seed: int) -> None:
    draw = random.Random(seed)
    # By the number of jobs, not by the clock, so that kills fall on all stages of a worker's life.
    kills = {draw.randrange(40) for _ in range(draw.choice([1, 2]))}
    jobs = []
    for i in range(40):
        size = draw.randrange(9, 200_000)
        block = Block(LEAF, [Dense(np.arange(size) * i)], size, Cursor({"i": i}))
        jobs.append(executor.submit(block, np.arange(9), i))
        if i in kills:
            for child in list(executor._dispatcher._children)[: draw.choice([1, 2])]:
                child.process.send_signal(signal.SIGKILL)
        if draw.random() < 0.5:
            jobs[draw.randrange(len(jobs))].result()
    for i, job in enumerate(jobs):
        block, error = job.result()
        assert error is None
        assert block.cursor == Cursor({"i": i})
        np.testing.assert_array_equal(block.columns[0].values, np.arange(9) * i + i)


@pytest.mark.parametrize("middle", [0, 1000], ids=["moving", "in a call"])
@pytest.mark.parametrize("when", ["at once", "working"])
def test_a_killed_parent_leaves_nothing(tmp_path: Path, middle: float, when: str) -> None:
    parent = Parent(tmp_path, middle)
    if when == "at once":
        wait_for(lambda: descendants(parent.process.pid), "a worker to be started")
    else:
        wait_for(lambda: len(parent.workers) == 2, "both workers at work")
    children = descendants(parent.process.pid) | parent.workers
    parent.process.kill()
    parent.process.wait()
    wait_for(lambda: not any(map(alive, children | parent.workers)), "the workers to die")


@pytest.mark.parametrize("seed", range(20))
def test_interrupts_reach_the_parent_alone(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    parent = Parent(tmp_path, draw.choice([0, 0, 1000]))
    point = draw.choice(["started", "worker"])
    wait_for(lambda: point in parent.text, point)
    lines = len(parent.text.splitlines()) + draw.randrange(30) * (draw.random() < 0.5)
    until = time.monotonic() + draw.random()
    wait_for(lambda: len(parent.text.splitlines()) >= lines or time.monotonic() > until, "the seeded point")
    children = descendants(parent.process.pid)
    os.killpg(parent.process.pid, signal.SIGINT)
    assert parent.process.wait(DEADLINE) == 0, parent.text
    assert parent.text.endswith("closed\n")
    assert "interrupted\n" in parent.text
    assert "Traceback" not in parent.text
    assert not any(map(alive, children | parent.workers))


def test_thirty_lives_leave_nothing() -> None:
    before = fds()
    for _ in range(30):
        executor: ProcessExecutor[int] = ProcessExecutor(lambda: lambda: os.getpid(), 1, "test")
        pid = executor.submit().result()
        executor.close()
        assert not alive(pid)
    assert fds() == before
    assert threads() == []
