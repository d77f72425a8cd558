"""However an iteration is left, and in the middle of whatever, its threads and processes are gone."""

import gc
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from faults.support import Script, assert_nothing_runs, collect, forebay_threads, workers_of
from forebay import Dataset
from processes.support import alive, wait_for
from unit.support import python

ENDLESS = 10**6


def slow_on_processes(tmp_path: Path) -> Dataset[Any]:
    """After the first elements every call would take for ever."""

    def work(x: Any) -> Any:
        if x > 3:
            (tmp_path / f"{os.getpid()}").touch()
            time.sleep(1000)
        return x

    return Dataset.range(ENDLESS).map(work, num_parallel_calls=2, executor="process")


def slow_on_threads(tmp_path: Path) -> Dataset[Any]:
    """A thread cannot be ended in the middle of a call, so calls do end here."""

    def work(x: Any) -> Any:
        if x > 3:
            (tmp_path / f"{x}").touch()
            time.sleep(0.1)
        return x

    def inner(x: Any) -> Dataset[Any]:
        return Dataset.from_tensors(x).map(work)

    numbers = Dataset.range(ENDLESS).interleave(inner, 2, 1, num_parallel_calls=2)
    return numbers.map(work, num_parallel_calls=2, executor="thread").prefetch(2)


def free_order(tmp_path: Path) -> Dataset[Any]:
    def work(x: Any) -> Any:
        if x > 3:
            (tmp_path / f"{x}").touch()
            time.sleep(0.1)
        return x

    return Dataset.range(ENDLESS).map(work, num_parallel_calls=4, executor="thread", deterministic=False)


PIPELINES = {"processes": slow_on_processes, "threads": slow_on_threads, "free order": free_order}


@pytest.fixture(params=PIPELINES)
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> Dataset[Any]:
    assert_nothing_runs()
    made: Dataset[Any] = PIPELINES[request.param](tmp_path)
    return made


@pytest.fixture
def in_the_middle(dataset: Dataset[Any], tmp_path: Path) -> Any:
    """An iterator whose workers are at slow calls."""
    it = iter(dataset)
    assert {next(it) for _ in range(3)} <= {0, 1, 2, 3}
    wait_for(lambda: os.listdir(tmp_path), "a slow call")
    assert forebay_threads()
    return it


def test_close(in_the_middle: Any) -> None:
    in_the_middle.close()
    assert_nothing_runs()
    in_the_middle.close()
    with pytest.raises(fb.errors.ClosedError):
        next(in_the_middle)


def test_leaving_with(in_the_middle: Any) -> None:
    with in_the_middle:
        pass
    assert_nothing_runs()


def test_leaving_with_by_an_exception(in_the_middle: Any) -> None:
    with pytest.raises(ZeroDivisionError), in_the_middle:
        _ = 1 / 0
    assert_nothing_runs()


def test_an_exception_in_the_loop(dataset: Dataset[Any]) -> None:
    def loop() -> None:
        for x in dataset:
            if x == 2:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    assert_nothing_runs()


def test_leaving_a_loop(dataset: Dataset[Any]) -> None:
    for x in dataset:
        if x == 2:
            break
    assert_nothing_runs()


def test_deleting_the_iterator(dataset: Dataset[Any], tmp_path: Path) -> None:
    it = iter(dataset)
    assert {next(it) for _ in range(3)} <= {0, 1, 2, 3}
    wait_for(lambda: os.listdir(tmp_path), "a slow call")
    del it
    assert_nothing_runs()


def test_deleting_a_circle(dataset: Dataset[Any]) -> None:
    it: Any = iter(dataset)
    next(it)
    circle: list[Any] = [it]
    circle.append(circle)
    gone = weakref.ref(it)
    del it, circle
    collect(lambda: gone() is None, "the circle to be collected")
    # Whichever thread the collection fell on: one of the dataset's own cannot wait for all to be gone.
    wait_for(lambda: not workers_of() and not forebay_threads(), "the end of all workers")


CIRCLES = """
import gc, time
import forebay as fb

def slow(x):
    time.sleep(0.001)
    return [x][0]

def slow_inside(x):
    return fb.Dataset.from_tensors(x).map(slow)

numbers = fb.Dataset.range(10**6)
DATASETS = {
    "threads": numbers.interleave(slow_inside, 2, 1, num_parallel_calls=2).map(slow, 2, executor="thread").prefetch(2),
    "processes": numbers.map(slow, num_parallel_calls=2, executor="process").prefetch(2),
}
ledger = fb.Ledger("64MiB")
dataset = DATASETS[NAME].with_options(fb.Options(memory=ledger))
gc.set_threshold(5, 2, 2)
for _ in range(20):
    it = iter(dataset)
    next(it)
    circle = [it]
    circle.append(circle)
    del it, circle
while ledger.held:
    gc.collect()
print("done", flush=True)
"""


@pytest.mark.parametrize("name", ["threads", "processes"])
def test_collections_on_all_threads(tmp_path: Path, name: str) -> None:
    """Also on those that work for what is collected, and that hold what others wait for."""
    with Script(tmp_path, CIRCLES.replace("NAME", repr(name))) as script:
        assert script.end() == 0, script.text
        assert script.lines == ["done"]


def fails(x: Any) -> Any:
    if np.any(x == 20):
        raise ValueError("of the user")
    return x


def failing_numbers() -> Iterator[int]:
    yield from range(20)
    raise ValueError("of the user")


def fails_inside(x: Any) -> Dataset[Any]:
    return Dataset.range(x, x + 1).map(fails)


NUMBERS = Dataset.range(1000)
FAILING: dict[str, Callable[[], Dataset[Any]]] = {
    "threads": lambda: NUMBERS.map(fails, num_parallel_calls=2, executor="thread"),
    "processes": lambda: NUMBERS.map(fails, num_parallel_calls=2, executor="process"),
    "auto": lambda: NUMBERS.map(fails, num_parallel_calls=2, executor="auto"),
    "free order": lambda: NUMBERS.map(fails, num_parallel_calls=2, executor="thread", deterministic=False),
    "prefetch": lambda: NUMBERS.map(fails).prefetch(2),
    "several": lambda: NUMBERS.map(fails, 2, executor="thread").filter(bool, num_parallel_calls=2).batch(2).prefetch(1),
    "batched": lambda: NUMBERS.map(fails, num_parallel_calls=2, executor="thread", batched=True),
    "interleave": lambda: NUMBERS.interleave(fails_inside, 4, 1, num_parallel_calls=2),
    "flat_map": lambda: NUMBERS.flat_map(fails_inside, num_parallel_calls=2),
    "input": lambda: Dataset.from_generator(failing_numbers).map(abs, num_parallel_calls=2, executor="thread"),
}


@pytest.mark.parametrize("name", FAILING)
def test_an_error_of_the_pipeline(name: str) -> None:
    """Once it has been dealt with nothing is left, though no garbage was collected."""
    gc.collect()
    gc.disable()
    try:
        with suppress(fb.FunctionError):
            for _ in FAILING[name]():
                pass
            raise AssertionError("no error")
        assert_nothing_runs()
    finally:
        gc.enable()
        gc.collect()


WAITING: dict[str, Callable[[Dataset[Any]], Dataset[Any]]] = {
    "threads": lambda ds: ds.map(abs, num_parallel_calls=2, executor="thread"),
    "processes": lambda ds: ds.map(abs, num_parallel_calls=2, executor="process"),
    "steps between": lambda ds: ds.shuffle(2).batch(1).map(np.abs, num_parallel_calls=2, executor="thread"),
    "interleave": lambda ds: ds.interleave(Dataset.from_tensors, 2, 1, num_parallel_calls=2),
    "inner": lambda ds: Dataset.range(2).flat_map(lambda _: ds.map(abs, num_parallel_calls=2, executor="thread")),
}


@pytest.mark.parametrize("name", WAITING)
@pytest.mark.parametrize("source", ["function", "generator"])
def test_an_error_that_waits_for_its_turn(name: str, source: str) -> None:
    """It was met ahead of need, and nobody will ever hear of it: the iterator is let go of before."""
    numbers = NUMBERS.take(40).map(fails) if source == "function" else Dataset.from_generator(failing_numbers)
    dataset = WAITING[name](numbers)

    def begin() -> None:
        it = iter(dataset)
        for _ in range(5):
            next(it)

    begin()
    collect(lambda: not workers_of() and not forebay_threads(), "the end of all workers")


class Stop(BaseException):
    """Neither an error nor an interrupt."""


@pytest.mark.parametrize("kind", [Stop, KeyboardInterrupt, SystemExit])
def test_what_a_function_on_threads_raises_keeps_nothing(kind: type[BaseException]) -> None:
    """Its traceback leads to the iterator, and so may not stay with a thread that waits for work."""

    def stops(x: Any) -> Any:
        if x == 60:
            raise kind
        return x

    with pytest.raises(kind):
        list(Dataset.range(61).map(stops, num_parallel_calls=2, executor="thread"))
    collect(lambda: not forebay_threads(), "the threads to end")


START = """
import os, sys, threading, time
import forebay as fb

def work(x):
    if x > 0:
        os.write(1, b"slow\\n")
        time.sleep(1000)
    return x

ds = fb.Dataset.range(10**6).map(work, num_parallel_calls=CALLS, executor=EXECUTOR).prefetch(1)
it = iter(ds)
next(it)
while open(sys.argv[0] + ".out").read().count("slow") < CALLS:
    time.sleep(0.01)
print("leaving", flush=True)
"""

ENDINGS = {
    "end": ("", 0),
    "exit": ("sys.exit(3)", 3),
    "exception": ("1 / 0", 1),
    "held": ("sys.keep = it, ds", 0),
    "deleted": ("del ds", 0),
    "from a thread": ("t = threading.Thread(target=lambda: time.sleep(0.1)); t.start()", 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("executor", "calls"), [("process", 2), ("thread", 8)])
def test_the_interpreter_ends(tmp_path: Path, ending: str, executor: str, calls: int) -> None:
    """Though calls that never end are under way, also on threads."""
    (tmp_path / "script.py.out").symlink_to(tmp_path / "output")
    text, code = ENDINGS[ending]
    begin = START.replace("CALLS", str(calls)).replace("EXECUTOR", repr(executor))
    with Script(tmp_path, begin + text + "\n") as script:
        script.wait_for_line("slow", calls)
        workers = workers_of(script.process.pid)
        script.wait_for_line("leaving")
        # The calls take far longer than anybody waits here.
        assert script.end() == code, script.text
        assert not any(map(alive, workers))
        assert script.errors.read_text().count("Traceback") == (ending == "exception")


def test_a_fork_leaves_the_parents_workers_alone(tmp_path: Path) -> None:
    text = """
import os
import forebay as fb
ds = fb.Dataset.range(2000).map(lambda x: x + 1, num_parallel_calls=2, executor="process")
it = iter(ds)
found = [next(it)]
child = os.fork()
if child == 0:
    it.close()
    os._exit(0)
os.waitpid(child, 0)
found.extend(it)
print(found == list(range(1, 2001)), flush=True)
"""
    with Script(tmp_path, text) as script:
        assert script.end() == 0, script.text
        assert script.lines == ["True"]


_INTERRUPTED_JOIN = """
import signal, threading
from forebay.run.leaving import join

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
go_on, ended = threading.Event(), []

def work():
    go_on.wait()
    ended.append(True)

thread = threading.Thread(target=work, daemon=True)
thread.start()
try:
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    join(thread)
except KeyboardInterrupt:
    print("interrupted")
threading.Timer(0.2, go_on.set).start()
join(thread)
print(ended, thread in threading.enumerate())
"""


def test_a_join_after_one_that_was_interrupted_waits_too() -> None:
    assert python(_INTERRUPTED_JOIN) == "interrupted\n[True] False\n"
