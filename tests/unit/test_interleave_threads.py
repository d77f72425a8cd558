"""Interleave on threads: the same output, so many at once, ahead within bounds, and in any order."""

import itertools
import threading
import time
from collections import Counter

import numpy as np
import pytest

import forebay as fb
from unit.interleaving import LENGTHS, dataset, expected, inner, numbers, our_threads


@pytest.mark.parametrize("calls", [1, 2, 3, fb.AUTOTUNE])
def test_threads_do_not_change_the_output(calls):
    for lengths, turn, size in itertools.product(LENGTHS, [1, 4], [1, 100, 1 << 20]):
        assert numbers(dataset(lengths, 3, turn, calls, block_bytes=size)) == expected(lengths, 3, turn)
    assert not our_threads()


def test_unseeded_inner_shuffles_differ_and_are_the_same_with_threads():
    def shuffled(i):
        return fb.Dataset.range(30).shuffle(30)

    def woven(calls):
        return fb.Dataset.range(4).interleave(shuffled, 2, 1, calls)

    with iter(woven(None)) as one, iter(woven(2)) as other:
        state = one.state_dict()
        other.load_state_dict(state)
        first, second = numbers(one), numbers(other)
    assert first == second
    assert first[0:60:2] != first[1:60:2]


def test_threads_are_shown_but_are_not_part_of_the_plan(capsys):
    ds = dataset([1], 3, 1, 2)
    ds.explain()
    assert "cycle_length=3, block_length=1, num_parallel_calls=2" in capsys.readouterr().out


@pytest.mark.parametrize("deterministic", [True, False])
def test_no_thread_is_left(deterministic):
    ds = dataset([5000] * 8, 4, 3, 3, deterministic)
    iterator = iter(ds)
    assert not our_threads()
    for _ in range(10):
        next(iterator)
    assert 1 <= len(our_threads()) <= 3
    state = iterator.state_dict()
    iterator.close()
    assert not our_threads()
    with iter(ds) as iterator:
        iterator.load_state_dict(state)
        assert not our_threads()
        assert len(list(iterator)) == 8 * 5000 - 10
        assert not our_threads()


def test_so_many_threads_work_at_once_and_no_more():
    lock = threading.Lock()
    meeting = threading.Barrier(2, timeout=300)
    working, most = 0, 0

    def slow(x):
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        if x % 1000 == 0:
            # Passes only with another thread in it at the same time; rows 0 of six datasets make three pairs.
            meeting.wait()
        with lock:
            working -= 1
        return x

    lengths = [20] * 6
    ds = dataset(lengths, 4, 1, 2, make=lambda i, n: inner(i, n).map(slow), block_bytes=64)
    assert numbers(ds) == expected(lengths, 4, 1)
    assert most == 2


def test_the_next_datasets_are_opened_ahead():
    opened = {index: threading.Event() for index in range(9)}

    def make(i):
        opened[int(i)].set()
        return inner(i, 1000)

    with iter(fb.Dataset.range(9).interleave(make, 2, 1000, 2)) as iterator:
        next(iterator)
        # Element 1 has the next turn, in a thousand rows; element 2 has none before a dataset ends.
        assert opened[1].wait(300)
        assert opened[2].wait(300)
        assert not any(opened[index].is_set() for index in range(3, 9))


@pytest.mark.parametrize(("calls", "ahead"), [(None, 0), (2, 2)])
def test_inner_datasets_are_opened_when_needed(calls, ahead):
    opened, ended = [], []

    def make(i):
        opened.append(int(i))
        last = 1000 * int(i) + 9
        return inner(i, 10).filter(lambda x: ended.append(i) is None if x == last else True)

    with iter(fb.Dataset.range(30).interleave(make, 4, 1, calls).with_options(fb.Options(block_bytes=8))) as iterator:
        for count, _ in enumerate(iterator, 1):
            assert len(opened) <= min(count, 4) + len(ended) + ahead
    assert sorted(opened) == list(range(30))


def test_reading_ahead_is_bounded():
    lock = threading.Lock()
    produced = 0

    def rows(i):
        def generate():
            nonlocal produced
            for _ in range(2000):
                with lock:
                    produced += 1
                yield np.full(128, i)

        return fb.Dataset.from_generator(generate, output_signature=fb.TensorSpec((128,), np.int64))

    # A block holds 16 rows of 1 KiB. A slot has one in use, one that waits and one being made; there are four slots,
    # two opened ahead, and a block of the output.
    most = (4 + 2) * 3 * 16 + 16
    ds = fb.Dataset.range(5).interleave(rows, 4, 1, 2).with_options(fb.Options(block_bytes=1 << 14))
    with iter(ds) as iterator:
        for consumed, _ in enumerate(iterator, 1):
            with lock:
                assert produced - consumed <= most


def test_whatever_is_ready_comes_first():
    release = threading.Event()

    def make(index, length):
        def late(x):
            release.wait(300)
            return x

        return inner(index, length).map(late) if index == 0 else inner(index, length)

    lengths = [5, 50, 50]
    with iter(dataset(lengths, 2, 1, 2, False, make=make)) as iterator:
        # Everything but the first dataset comes while that one waits.
        found = [int(next(iterator)) for _ in range(100)]
        assert all(value >= 1000 for value in found)
        release.set()
        found += numbers(iterator)
    assert sorted(found) == sorted(expected(lengths, 2, 1))


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_any_order_loses_and_repeats_nothing(size):
    for lengths, turn in itertools.product(LENGTHS, [1, 3]):
        whole = Counter(expected(lengths, 3, turn))
        ds = dataset(lengths, 3, turn, 3, False, block_bytes=size)
        iterator = iter(ds)
        taken: list[int] = []
        for element in iterator:
            taken.append(int(element))
            state = iterator.state_dict()
            if len(taken) % 5 == 1:
                with iter(ds) as resumed:
                    resumed.load_state_dict(state)
                    assert Counter(taken + numbers(resumed)) == whole
        assert Counter(taken) == whole
    assert not our_threads()


def test_autotune_begins_without_threads():
    with iter(dataset([5000] * 8, 4, 3, fb.AUTOTUNE)) as iterator:
        next(iterator)
        assert not our_threads()
    with iter(fb.Dataset.range(8).interleave(fb.Dataset.range, 4, 3, fb.AUTOTUNE, executor="thread")) as iterator:
        next(iterator)
        assert our_threads()


def test_autotune_starts_threads_for_datasets_that_are_slow(capsys):
    def slow(i):
        return fb.Dataset.range(40).map(lambda x: time.sleep(0.003) or x + 100 * i)

    ds = fb.Dataset.range(4).interleave(slow, 2, 1, fb.AUTOTUNE)
    with iter(ds) as iterator:
        while not our_threads():
            next(iterator)
        state = iterator.state_dict()
        rest = numbers(iterator)
    with iter(ds) as iterator:
        # What the last iteration has found out is known from the start.
        iterator.load_state_dict(state)
        first = next(iterator)
        assert our_threads()
        assert [int(first), *numbers(iterator)] == rest
    ds.explain()
    assert "thread: a block takes" in capsys.readouterr().out
