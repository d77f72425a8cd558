"""Pipelines on threads of their own that share a ledger and so workers, which are killed, and some break off."""

import gc
import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forebay import Dataset, Ledger, Options
from forebay.errors import FunctionError
from processes.support import DEADLINE, fds, wait_for

pytestmark = pytest.mark.slow

MADE = 200
"""Elements of each pipeline. Those of different ones have nothing in common."""


def small(i: int) -> Callable[[Any], Any]:
    return lambda x: int(x) + i * MADE


def large(i: int) -> Callable[[Any], Any]:
    return lambda x: np.full(3000, int(x) + i * MADE)


def failing(i: int) -> Callable[[Any], Any]:
    def function(x: int) -> int:
        if x == MADE // 2:
            raise ValueError(f"no good: {i}")
        return int(x) + i * MADE

    return function


class Consumer:
    """Iterates one pipeline on a thread, and keeps what it saw."""

    def __init__(self, i: int, draw: random.Random, ledger: Ledger) -> None:
        self.i = i
        self.kind = draw.choice([small, small, large, failing])
        self.in_order = draw.random() < 0.5
        self.stops_at = draw.choice([None, None, draw.randrange(MADE)])
        # Of all together at most two: on the third death the job would be held to be the reason.
        self.kills_at = {draw.randrange(MADE) for _ in range(draw.choice([0, 2]))} if i == 0 else set()
        self.found: list[int] = []
        self.error: BaseException | None = None
        dataset = Dataset.range(MADE).map(
            self.kind(i), num_parallel_calls=2, executor="process", deterministic=self.in_order
        )
        self.dataset = dataset.with_options(Options(memory=ledger))
        self.thread = threading.Thread(target=self._run, name=f"consumer {i}", daemon=True)

    def _run(self) -> None:
        rows = iter(self.dataset)
        try:
            for row in rows:
                self.found.append(int(np.ravel(row)[0]))
                if len(self.found) in self.kills_at:
                    kill_one()
                if len(self.found) == self.stops_at:
                    break
        except BaseException as raised:
            self.error = raised
        finally:
            rows.close()

    def check(self) -> None:
        expected = range(self.i * MADE, (self.i + 1) * MADE)
        assert not set(self.found) - set(expected)
        assert len(set(self.found)) == len(self.found)
        if self.in_order:
            assert self.found == list(expected)[: len(self.found)]
        if isinstance(self.error, FunctionError):
            assert self.kind is failing
            assert isinstance(self.error.__cause__, ValueError)
            assert str(self.error.__cause__) == f"no good: {self.i}"
        elif self.error is not None:
            raise self.error
        else:
            assert len(self.found) == (MADE if self.stops_at in (None, 0) else self.stops_at)


def workers() -> list[int]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def kill_one() -> None:
    for pid in workers()[:1]:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("seed", range(20))
def test_each_gets_what_is_its_own(seed: int) -> None:
    draw = random.Random(seed)
    # What tests before have left is not to go meanwhile.
    gc.collect()
    before = fds()
    ledger = Ledger(draw.choice(["1MiB", "1MiB", "60MiB", "120MiB"]))
    consumers = [Consumer(i, draw, ledger) for i in range(draw.choice([2, 3, 4]))]
    for consumer in consumers:
        consumer.thread.start()
    for consumer in consumers:
        consumer.thread.join(DEADLINE)
        assert not consumer.thread.is_alive(), consumer.i
    for consumer in consumers:
        consumer.check()
    del consumer, consumers
    wait_for(lambda: not workers(), "the workers to end")
    wait_for(lambda: fds() <= before, "nothing to be left open")
    assert ledger.held == 0
