"""``executor="auto"``: going over from threads to something else loses no call."""

import io
import threading
import time
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from forebay.run.auto import AutoExecutor
from forebay.run.crew import Choice, Parking
from forebay.run.executor import Executor, InlineExecutor, Job, ThreadExecutor
from forebay.run.gil_probe import GilProbe, Seen


class Warm(Executor):
    """Stands for processes: there at once, and as quick."""

    kind = "process"
    workers = 2

    def submit(self, *arguments):
        job = Job(arguments, self.bell)
        job.finish("process", None)
        return job

    def resize(self, workers):
        self.workers = workers

    def close(self):
        pass


def test_calls_that_wait_for_a_thread_are_made_after_the_processes_have_taken_over():
    gate = threading.Event()

    def make():
        def call(*arguments):
            gate.wait()
            return "thread"

        return call

    threads = ThreadExecutor(make, 2, "map")
    auto = AutoExecutor(2, threads, GilProbe(Seen()), lambda: InlineExecutor(make), Warm, lambda choice: None, None)
    try:
        waiting = [auto.submit(SimpleNamespace(rows=1)) for _ in range(4)]
        auto._settle(Choice("process", "told to"))
        after = auto.submit(SimpleNamespace(rows=1))
        assert after.result() == "process"
        gate.set()
        assert [job.result() for job in waiting] == ["thread"] * 4
        assert auto.submit(SimpleNamespace(rows=1)).result() == "process"
        assert threads.workers == 0
    finally:
        gate.set()
        auto.close()


def computes(x: np.int64) -> np.int64:
    total = 0
    for i in range(600):
        total += i * i
    return x + total


def unpacks(x: np.int64) -> np.int64:
    return x + len(zlib.decompress(PACKED))


def calculates(x: np.float64) -> np.float64:
    """Lets go of the interpreter lock twenty times, for an instant."""
    values = NUMBERS
    for _ in range(20):
        values = values * 0.5 + x
    return values[0]


def waits(x: np.int64) -> np.int64:
    time.sleep(0.002)
    return x


NUMBERS = np.arange(600.0)
# Takes long for its size: memory for large results comes and goes with the lock in hand, slowly where it is short.
PACKED = zlib.compress(np.random.default_rng(1).integers(0, 64, 100_000, np.uint8).tobytes())


def found(function) -> str:
    dataset = Dataset.range(300 if function in (unpacks, waits) else 3000).map(function, fb.AUTOTUNE).batch(10)
    # How many rows it takes to know depends on how often the probe is given a processor.
    for _ in range(100):
        assert sum(map(len, dataset)) == dataset.cardinality() * 10
        printed = io.StringIO()
        dataset.explain(file=printed)
        _, _, notes = printed.getvalue().partition("Found so far:")
        if ": it " in notes:
            return notes  # What is known of the function, and not only how many workers there were.
    pytest.fail("100 epochs were not enough to find out")


@pytest.mark.parametrize(
    ("function", "kind"), [(computes, "process"), (calculates, "process"), (unpacks, "thread"), (waits, "thread")]
)
def test_it_tells_functions_apart(function, kind):
    # On a machine with several times more to do than processors to do it, one finding in a hundred is wrong.
    notes = [found(function), found(function)]
    if sum(f"{kind}: it " in each for each in notes) == 1:
        notes.append(found(function))
    assert sum(f"{kind}: it " in each for each in notes) >= 2, notes


def test_two_steps_on_one_line_have_a_finding_each():
    parking = Parking()
    for calls, dataset in enumerate((Dataset.range(3).map(waits, 2), Dataset.range(3).map(waits, 3)), 2):
        site = dataset.plan.site
        assert site.key not in parking.choices
        parking.choices[site.key] = Choice("thread", "told to")
        parking.workers[site.key] = calls
    name = str(site)
    assert parking.found() == [(name, "2 workers, thread: told to"), (name, "3 workers, thread: told to")]
