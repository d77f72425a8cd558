"""The prefetch thread: that it is one, works ahead within bounds, and ends. Events order the threads, never a clock."""

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
from forebay import AUTOTUNE, Dataset, FunctionError
from unit.support import python, until_error

ROW_BY_ROW = fb.Options(block_bytes=1)
PATIENCE = 300  # Seconds after which something that must happen is held not to.


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("forebay")]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    gc.collect()
    assert workers() == []
    yield
    gc.collect()
    assert workers() == []


class Producer:
    """A generator of numbers that tells how far it has come and on which threads it ran."""

    def __init__(self, count: int, size: int | None = None) -> None:
        self.count = count
        self.size = size
        self.threads: set[int] = set()
        self.consumed = 0
        self.lead = 0
        self._made = 0
        self._changed = threading.Condition()

    def __call__(self) -> Iterator[Any]:
        for i in range(self.count):
            with self._changed:
                self.threads.add(threading.get_ident())
                self.lead = max(self.lead, i - self.consumed)
                self._made = i + 1
                self._changed.notify_all()
            yield i if self.size is None else np.full(self.size, i % 256, np.uint8)

    def wait_until_made(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._made >= count, PATIENCE)


def test_the_input_runs_on_another_thread() -> None:
    ahead, here = Producer(5), Producer(5)
    assert list(Dataset.from_generator(ahead).prefetch(2)) == [0, 1, 2, 3, 4]
    assert list(Dataset.from_generator(here).prefetch(0)) == [0, 1, 2, 3, 4]
    assert here.threads == {threading.get_ident()}
    assert len(ahead.threads) == 1
    assert ahead.threads != here.threads


@pytest.mark.parametrize("size", [1, 2, 5])
def test_it_works_ahead_and_not_too_far(size: int) -> None:
    producer = Producer(40)
    with iter(Dataset.from_generator(producer).prefetch(size).with_options(ROW_BY_ROW)) as it:
        for i in range(40):
            assert next(it) == i
            # The next ones are made while nobody asks for them.
            assert producer.wait_until_made(min(i + 1 + size, 40))
            producer.consumed = i + 1
    # An element is begun while fewer than `size` wait, and one may have been taken but not yet counted.
    assert producer.lead == size


@pytest.mark.parametrize("size", [AUTOTUNE, None])
def test_without_a_size_it_is_bounded_by_bytes(size: int | None) -> None:
    producer = Producer(1500, size=1000)
    options = fb.Options(block_bytes=10_000)
    options.autotune.enabled = False
    dataset = Dataset.from_generator(producer).prefetch(size).with_options(options)
    with iter(dataset) as it:
        for i, element in enumerate(it):
            assert element[0] == i % 256
            producer.consumed = i + 1
            if i == 100:
                # It does work ahead: these are made while the consumer stands still.
                assert producer.wait_until_made(130)
    # Four blocks of ten rows wait, one is in the consumer's hands and one is being made.
    assert producer.lead <= 70


def test_bytes_bound_a_count_of_elements_too() -> None:
    producer = Producer(300, size=1000)
    dataset = Dataset.from_generator(producer).prefetch(200, max_bytes=20_000)
    with iter(dataset.with_options(fb.Options(block_bytes=1000))) as it:
        for i, _ in enumerate(it):
            producer.consumed = i + 1
            if i == 100:
                assert producer.wait_until_made(115)
    assert producer.lead <= 24


def test_it_works_ahead_across_the_end_of_a_round() -> None:
    rounds = [threading.Event(), threading.Event()]
    begun = iter(rounds)

    def numbers() -> Iterator[int]:
        next(begun).set()
        yield from range(10)

    with iter(Dataset.from_generator(numbers).prefetch(5).repeat(2).with_options(ROW_BY_ROW)) as it:
        for _ in range(10):
            next(it)
        # The second round begins while nobody has asked for it.
        assert rounds[1].wait(PATIENCE)
        assert [int(x) for x in it] == list(range(10))


def test_nothing_starts_before_the_first_element_is_asked_for() -> None:
    producer = Producer(5)
    it = iter(Dataset.from_generator(producer).prefetch(2))
    state = it.state_dict()
    it.load_state_dict(state)
    assert workers() == []
    assert producer.threads == set()
    next(it)
    it.close()


def test_iterators_have_threads_of_their_own() -> None:
    dataset = Dataset.counter().prefetch(2)
    with iter(dataset) as one, iter(dataset) as other:
        assert (next(one), next(one), next(other)) == (0, 1, 0)
        assert len(workers()) == 2
        one.close()
        assert len(workers()) == 1
        assert next(other) == 1


def test_several_in_a_row() -> None:
    dataset = Dataset.counter().prefetch(2).map(lambda x: x + 1).prefetch(3).batch(2).prefetch(AUTOTUNE)
    with iter(dataset) as it:
        assert [next(it).tolist() for _ in range(3)] == [[1, 2], [3, 4], [5, 6]]
        assert len(workers()) == 3


@pytest.mark.parametrize(
    "step",
    [
        lambda ds: ds.take(50),
        lambda ds: ds.skip(3),
        lambda ds: ds.shard(2, 1),
        lambda ds: ds.shuffle(10, seed=1),
        lambda ds: ds.shuffle(seed=1),
        lambda ds: ds.batch(2).take(5),
        lambda ds: ds.enumerate().skip(1).batch(3),
        lambda ds: ds.repeat(2).take(150),
    ],
    ids=["take", "skip", "shard", "buffered shuffle", "shuffle", "batch, take", "enumerate, skip", "repeat, take"],
)
@pytest.mark.parametrize("optimize", [True, False])
def test_steps_behind_a_prefetch_leave_the_work_to_its_thread(step: Any, optimize: bool) -> None:
    threads: set[int] = set()

    def watch(x: np.int64) -> np.int64:
        threads.add(threading.get_ident())
        return x

    dataset = Dataset.range(100).map(watch).prefetch(2)
    assert len(list(step(dataset).with_options(fb.Options(optimize=optimize)))) > 0
    assert threads
    assert threading.get_ident() not in threads


# Ends


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
