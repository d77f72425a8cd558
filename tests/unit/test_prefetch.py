"""The prefetch thread: that it is one, and works ahead within bounds. Events order the threads, never a clock."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import AUTOTUNE, Dataset
from unit.prefetching import PATIENCE, ROW_BY_ROW, Producer, assert_no_thread_is_left, workers


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    assert_no_thread_is_left()
    yield
    assert_no_thread_is_left()


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


def test_of_blocks_with_more_elements_than_asked_for_there_are_two() -> None:
    producer = Producer(1500, size=1000)
    dataset = Dataset.from_generator(producer).prefetch(2).with_options(fb.Options(block_bytes=10_000))
    with iter(dataset) as it:
        for i, _ in enumerate(it):
            producer.consumed = i + 1
            if i == 100:
                assert producer.wait_until_made(120)
    # Two blocks of ten rows wait, one is in the consumer's hands and one is being made.
    assert producer.lead <= 40


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
