"""How a prefetch thread ends: with its iterator, by an error, with the process. Events order it, never a clock."""

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, FunctionError
from unit.prefetching import PATIENCE, ROW_BY_ROW, Producer, assert_no_thread_is_left, workers
from unit.support import python, until_error


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    assert_no_thread_is_left()
    yield
    assert_no_thread_is_left()


def test_the_end_ends_the_thread() -> None:
    it = iter(Dataset.range(10).prefetch(3))
    assert list(it) == list(range(10))
    assert workers() == []
    assert next(it, None) is None
    assert workers() == []


def test_close_ends_a_thread_that_waits_for_room() -> None:
    producer = Producer(1000)
    it = iter(Dataset.from_generator(producer).prefetch(2).with_options(ROW_BY_ROW))
    next(it)
    assert producer.wait_until_made(3)
    it.close()
    assert workers() == []


def test_close_waits_for_the_function_that_is_running() -> None:
    entered, release = threading.Event(), threading.Event()

    def slow(x: np.int64) -> np.int64:
        if x == 1:
            entered.set()
            assert release.wait(PATIENCE)
        return x

    it = iter(Dataset.range(5).map(slow).prefetch(5).with_options(ROW_BY_ROW))
    assert next(it) == 0
    assert entered.wait(PATIENCE)
    closer = threading.Thread(target=it.close)
    closer.start()
    assert len(workers()) == 1
    release.set()
    closer.join(PATIENCE)
    assert not closer.is_alive()
    assert workers() == []


@pytest.mark.parametrize(
    "wrap",
    [
        lambda ds: ds,
        lambda ds: ds.map(lambda x: x),
        lambda ds: ds.shuffle(5, seed=1),
        lambda ds: ds.batch(3).repeat(),
        lambda ds: Dataset.zip(ds, Dataset.counter().prefetch(1)),
        lambda ds: Dataset.range(9).flat_map(lambda x: ds),
        lambda ds: ds.concatenate(ds),
        lambda ds: ds.prefetch(1),
    ],
    ids=["alone", "map", "shuffle", "repeat", "zip", "flat_map", "concatenate", "prefetch"],
)
@pytest.mark.parametrize("optimize", [True, False])
def test_threads_below_other_steps_end_too(wrap: Any, optimize: bool) -> None:
    dataset = wrap(Dataset.from_generator(lambda: iter(range(100))).prefetch(4))
    dataset = dataset.with_options(fb.Options(optimize=optimize, block_bytes=1))
    with iter(dataset) as it:
        next(it)
        next(it)
        assert workers()
    assert workers() == []
    it = iter(dataset)
    next(it)
    assert workers()
    del it
    gc.collect()
    assert workers() == []


def test_leaving_a_loop_ends_the_thread() -> None:
    for x in Dataset.counter().prefetch(4):
        if x == 5:
            break
    gc.collect()
    assert workers() == []


def test_an_iterator_dropped_half_way_frees_its_elements() -> None:
    class Thing:
        pass

    alive: list[weakref.ref[Thing]] = []

    def things() -> Iterator[Thing]:
        for _ in range(100):
            thing = Thing()
            alive.append(weakref.ref(thing))
            yield thing
            del thing

    it = iter(Dataset.from_generator(things).prefetch(10).with_options(ROW_BY_ROW))
    last = weakref.ref(it)
    next(it)
    del it
    gc.collect()
    assert last() is None
    assert alive
    assert [ref for ref in alive if ref() is not None] == []


def test_loading_a_state_replaces_the_thread() -> None:
    it = iter(Dataset.counter().prefetch(2))
    assert [next(it) for _ in range(3)] == [0, 1, 2]
    state = it.state_dict()
    before = workers()
    assert [next(it) for _ in range(3)] == [3, 4, 5]
    it.load_state_dict(state)
    assert [next(it) for _ in range(3)] == [3, 4, 5]
    after = workers()
    assert len(before) == len(after) == 1
    assert before != after
    it.close()


def test_the_state_does_not_count_what_was_made_ahead() -> None:
    producer = Producer(50)
    dataset = Dataset.from_generator(producer).prefetch(20).with_options(ROW_BY_ROW)
    it = iter(dataset)
    assert [next(it) for _ in range(3)] == [0, 1, 2]
    assert producer.wait_until_made(20)
    state = it.state_dict()
    it.close()
    resumed = iter(dataset)
    resumed.load_state_dict(state)
    assert list(resumed) == list(range(3, 50))


# Errors


def test_an_error_crosses_over_behind_the_elements_before_it() -> None:
    def fail(x: np.int64) -> np.int64:
        if x == 6:
            raise ValueError("six")
        return x

    it = iter(Dataset.range(10).map(fail).prefetch(3))
    elements, error = until_error(it)
    assert elements == [0, 1, 2, 3, 4, 5]
    assert isinstance(error, FunctionError)
    assert isinstance(error.__cause__, ValueError)
    it.close()
    assert workers() == []


def test_an_error_nobody_fetches_does_no_harm() -> None:
    raised = threading.Event()

    def fail(x: np.int64) -> np.int64:
        if x == 2:
            raised.set()
            raise ValueError("two")
        return x

    with iter(Dataset.range(10).map(fail).prefetch(5).with_options(ROW_BY_ROW)) as it:
        assert next(it) == 0
        assert raised.wait(PATIENCE)
    assert workers() == []


# Whole processes


def test_the_interpreter_ends_with_a_live_prefetch() -> None:
    code = """
import forebay as fb
it = iter(fb.Dataset.counter().map(lambda x: x + 1).prefetch(5).batch(3).prefetch(2))
print(next(it).tolist())
"""
    assert python(code) == "[1, 2, 3]\n"


def test_a_function_that_never_returns_does_not_keep_the_process() -> None:
    code = """
import threading
import forebay as fb

def stuck():
    yield 1
    threading.Event().wait()
    yield 2

it = iter(fb.Dataset.from_generator(stuck).prefetch(2))
print(next(it))
"""
    assert python(code) == "1\n"


def test_an_uncaught_error_ends_a_process_with_a_live_prefetch() -> None:
    code = """
import forebay as fb
kept = iter(fb.Dataset.counter().prefetch(5))
next(kept)
for x in fb.Dataset.counter().prefetch(5):
    raise OSError("the user's own")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("OSError: the user's own\n")
    assert done.stderr.count("Traceback") == 1


def test_an_interrupt_while_waiting_loses_nothing() -> None:
    code = """
import os, signal, threading
import forebay as fb

asked, go_on = threading.Event(), threading.Event()

def slow(x):
    if x == 3 and not go_on.is_set():
        asked.wait()
        os.kill(os.getpid(), signal.SIGINT)
        go_on.wait()
    return x

it = iter(fb.Dataset.range(6).map(slow).prefetch(1).with_options(fb.Options(block_bytes=1)))
found = []
interrupts = 0
while len(found) < 6:
    try:
        if len(found) == 3:
            asked.set()
        found.append(int(next(it)))
    except KeyboardInterrupt:
        interrupts += 1
        go_on.set()
print(found, interrupts)
"""
    assert python(code) == "[0, 1, 2, 3, 4, 5] 1\n"
