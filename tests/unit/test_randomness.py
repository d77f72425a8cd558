"""Shuffles have the law they promise, and random numbers depend on what they are for and on nothing else.

Seeds are fixed, so every run sees the same numbers. The limits lie five standard deviations out.
"""

from collections import Counter
from itertools import permutations, product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay as fb
from forebay import Dataset
from forebay.run.keys import Generators, key_of, seed_of, uniforms, words
from forebay.run.picks import Picks
from forebay.run.spill_room import SpillStore
from unit.support import SETTINGS, assert_same, fixed

KEY = key_of(7, 0, "test")
MEMORY = 1 << 30
keys = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))


def excess(counts: Any, expected: float, freedom: int) -> float:
    """By how many standard deviations the chi-square statistic lies above its mean."""
    statistic = float((((np.asarray(counts, float) - expected) ** 2) / expected).sum())
    return (statistic - freedom) / sqrt(2 * freedom)


def orders(dataset: Dataset[Any], epochs: int) -> list[tuple[int, ...]]:
    whole = dataset.batch(1000)
    return [tuple(next(iter(whole)).tolist()) for _ in range(epochs)]


# Uniform over everything


def test_every_order_is_equally_likely_over_epochs() -> None:
    found = Counter(orders(Dataset.range(4).shuffle(seed=1), 1200))
    assert set(found) == set(permutations(range(4)))
    assert abs(excess(list(found.values()), 50, 23)) < 5


def test_every_order_is_equally_likely_over_seeds() -> None:
    found = Counter(orders(Dataset.range(4).shuffle(seed=seed), 1)[0] for seed in range(1200))
    assert set(found) == set(permutations(range(4)))
    assert abs(excess(list(found.values()), 50, 23)) < 5


@pytest.mark.parametrize("size", [7, 32])
def test_every_element_is_equally_likely_at_every_position(size: int) -> None:
    runs = np.array(orders(Dataset.range(size).shuffle(seed=2), 1500))
    counts = np.array([np.bincount(runs[:, position], minlength=size) for position in range(size)])
    # Rows and columns of the table have fixed sums.
    assert abs(excess(counts, 1500 / size, (size - 1) ** 2)) < 5


def large(seed: int, epoch: int = 0, size: int = 100_000) -> np.ndarray:
    dataset = Dataset.range(size).shuffle(seed=seed).batch(size)
    for _ in range(epoch):
        iter(dataset).close()
    return next(iter(dataset))


@pytest.mark.parametrize("size", [65_536, 65_537, 100_000, 2**17])
def test_large_orders_spread_evenly(size: int) -> None:
    bins = 40
    for seed in range(3):
        order = large(seed, size=size)
        assert np.array_equal(np.sort(order), np.arange(size))
        table = np.zeros((bins, bins))
        np.add.at(table, (np.arange(size) * bins // size, order * bins // size), 1)
        assert abs(excess(table, size / bins**2, (bins - 1) ** 2)) < 5


@pytest.mark.parametrize("size", [65_537, 100_000])
def test_large_orders_keep_no_neighbours(size: int) -> None:
    for seed in range(3):
        order = large(seed, size=size)
        steps = np.diff(order)
        # Neighbours stay neighbours, and elements stay where they are, about once or twice by chance.
        assert np.count_nonzero(np.abs(steps) == 1) < 15
        assert np.count_nonzero(order == np.arange(size)) < 10
        assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 5 / sqrt(size)
        assert abs(np.corrcoef(order, np.arange(size))[0, 1]) < 5 / sqrt(size)
        low_bits = np.bincount((order[:-1] % 8) * 8 + order[1:] % 8, minlength=64)
        assert abs(excess(low_bits, size / 64, 63)) < 5


# Buffers


def buffered_orders(size: int, rows: int) -> set[tuple[int, ...]]:
    """Every order that a buffer can give; each is a different series of picks, and so all are equally likely."""
    found = set()
    for picks in product(*[range(size)] * (rows - size), *[range(left) for left in range(size, 0, -1)]):
        buffer, out, coming = list(range(size)), [], iter(range(size, rows))
        for pick in picks:
            out.append(buffer[pick])
            new = next(coming, None)
            if new is None:
                buffer[pick] = buffer[-1]
                buffer.pop()
            else:
                buffer[pick] = new
        found.add(tuple(out))
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["by number", "through a buffer"])
def test_a_buffered_shuffle_has_the_law_of_a_buffer(stream: bool) -> None:
    possible = buffered_orders(2, 5)
    assert len(possible) == 16
    source = Dataset.from_generator(lambda: iter(range(5))) if stream else Dataset.range(5)
    found = Counter(orders(source.shuffle(2, seed=3), 800))
    assert set(found) == possible
    assert abs(excess(list(found.values()), 50, 15)) < 5


def test_picks_have_the_law_of_a_buffer() -> None:
    possible = buffered_orders(3, 6)
    assert len(possible) == 162
    found: Counter[tuple[int, ...]] = Counter()
    for epoch in range(162 * 20):
        picks = Picks(3, 11, epoch, MEMORY, SpillStore())
        picks.seek(0, 6)
        found[*picks.exchange(3).tolist(), *picks.drain(3).tolist()] += 1
    assert set(found) == possible
    assert abs(excess(list(found.values()), 20, 161)) < 5


def test_how_long_an_element_waits_in_a_buffer() -> None:
    # In a buffer of n an element leaves at each step with probability 1/n.
    size, runs = 10, 1500
    first = [order.index(0) for order in orders(Dataset.range(200).shuffle(size, seed=5), runs)]
    counts = np.bincount(np.minimum(first, 30), minlength=31)
    expected = np.array([runs * 0.9**t * 0.1 for t in range(30)] + [runs * 0.9**30])
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert abs(statistic - 30) / sqrt(60) < 5


@pytest.mark.parametrize("size", [1, 2, 7, 50, 99])
def test_no_element_leaves_a_buffer_before_it_can_be_in_it(size: int) -> None:
    for stream in (Dataset.range(100), Dataset.range(100).filter(lambda x: True)):
        order = [int(x) for x in stream.shuffle(size, seed=size)]
        assert sorted(order) == list(range(100))
        assert all(element < step + size for step, element in enumerate(order))
    if size == 1:
        assert order == list(range(100))


# Epochs and seeds


def test_one_epoch_says_nothing_about_the_next() -> None:
    pairs = Counter(tuple(orders(Dataset.range(3).shuffle(seed=seed), 2)) for seed in range(1080))
    assert len(pairs) == 36
    assert abs(excess(list(pairs.values()), 30, 35)) < 5


def test_large_epochs_are_independent() -> None:
    for size in (50_000, 100_000):
        one, other = large(9, 0, size), large(9, 1, size)
        # Where each element stands in the two orders.
        places = np.argsort(one), np.argsort(other)
        assert abs(np.corrcoef(*places)[0, 1]) < 5 / sqrt(size)
        assert np.count_nonzero(one == other) < 10


def test_an_epoch_of_a_seed_is_always_the_same() -> None:
    for build in (
        lambda: Dataset.range(50).shuffle(seed=3),
        lambda: Dataset.range(50).shuffle(7, seed=3),
        lambda: Dataset.range(50).filter(lambda x: True).shuffle(7, seed=3),
        lambda: Dataset.range(50).map(lambda n, rng: n + rng.integers(1000), rng=True, seed=3),
        lambda: Dataset.random(seed=3, rerandomize_each_iteration=True).take(50),
    ):
        first, second = build(), build()
        epochs = [[int(x) for x in first] for _ in range(4)]
        assert [[int(x) for x in second] for _ in range(4)] == epochs
        assert len({tuple(epoch) for epoch in epochs}) == 4
        # Rounds of repeat are epochs that count on.
        rounds = build().repeat(2)
        assert [[int(x) for x in rounds] for _ in range(2)] == [epochs[0] + epochs[1], epochs[2] + epochs[3]]


def test_without_reshuffling_every_epoch_is_the_first() -> None:
    for dataset in (Dataset.range(50), Dataset.range(50).filter(lambda x: True)):
        still = dataset.shuffle(7, seed=3, reshuffle_each_iteration=False)
        moving = dataset.shuffle(7, seed=3)
        assert list(still) == list(still) == list(moving)
        assert list(still.repeat(2)) == [*still, *still]


def test_a_dataset_without_a_seed_differs_from_run_to_run() -> None:
    runs = {orders(Dataset.range(30).shuffle(), 1)[0] for _ in range(5)}
    assert len(runs) == 5
    numbers = {tuple(int(x) for x in Dataset.random().take(3)) for _ in range(5)}
    assert len(numbers) == 5


def test_steps_without_a_seed_are_independent_of_one_another() -> None:
    dataset = Dataset.zip(Dataset.range(30).shuffle(), Dataset.range(30).shuffle())
    assert any(a != b for a, b in dataset)
    twice = Dataset.range(30).map(lambda x, rng: rng.random(), rng=True).map(lambda x, rng: (x, rng.random()), rng=True)
    assert all(a != b for a, b in twice)


# Keyed generators


def noisy(x: Any, rng: np.random.Generator) -> Any:
    # An odd number of 32-bit draws leaves half a word behind in the generator.
    return x, rng.integers(1000, dtype=np.int32), rng.standard_normal(3), rng.permutation(4)


def test_generators_depend_on_the_element_alone() -> None:
    expected = list(Dataset.range(40).map(noisy, rng=True, seed=8))
    assert len({row[2].tobytes() for row in expected}) == 40
    for options in SETTINGS:
        base = Dataset.range(40).map(noisy, rng=True, seed=8)
        assert_same(list(base.with_options(options)), expected)
        assert_same(list(base.prefetch(3).with_options(options)), expected)
        assert_same(list(base.skip(7).shard(3, 1).with_options(options)), expected[8::3])
        shuffled = list(base.shuffle(seed=2).with_options(options))
        assert_same(sorted(shuffled, key=lambda row: row[0]), expected)
        fused = Dataset.range(40).map(lambda x: x).map(noisy, rng=True, seed=8).map(lambda *row: row)
        assert_same(list(fused.with_options(options)), expected)


def test_generators_of_neighbours_are_independent() -> None:
    draws = np.array(list(Dataset.range(20_000).map(lambda x, rng: rng.random(), rng=True, seed=1)))
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 5 / sqrt(20_000)
    assert abs(excess(np.bincount((draws * 50).astype(int), minlength=50), 400, 49)) < 5


@fixed
@given(keys, st.lists(st.integers(0, 2**62), min_size=1, max_size=6))
def test_a_generator_starts_afresh_for_every_element(key: tuple[int, int], indices: list[int]) -> None:
    shared = Generators(key)
    for index in indices:
        fresh = np.random.Generator(np.random.Philox(key=np.array(key, np.uint64), counter=[0, 0, 0, index]))
        ours = shared.at(index)
        assert ours.integers(1000, dtype=np.int32) == fresh.integers(1000, dtype=np.int32)
        assert ours.standard_normal() == fresh.standard_normal()


# Words


@fixed
@given(keys, st.integers(0, 300), st.integers(0, 60))
def test_words_are_found_without_those_before_them(key: tuple[int, int], start: int, count: int) -> None:
    whole = words(key, 0, start + count)
    assert len(words(key, start, count)) == count
    assert words(key, start, count).tolist() == whole[start:].tolist()
    assert uniforms(key, start, count).tolist() == [int(w >> np.uint64(11)) * 2.0**-53 for w in whole[start:]]


@fixed
@given(st.integers(0, 2**62), st.integers(1, 9))
def test_words_far_out(start: int, count: int) -> None:
    assert words(KEY, start, count).tolist() == words(KEY, start - start % 4, start % 4 + count)[start % 4 :].tolist()


def test_uniforms_are_uniform() -> None:
    values = uniforms(KEY, 0, 200_000)
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(excess(np.bincount((values * 200).astype(int), minlength=200), 1000, 199)) < 5
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / sqrt(200_000)


def test_keys_and_seeds_differ_with_every_part() -> None:
    parts = [(seed, epoch, name) for seed in (-1, 0, 1, 11) for epoch in (0, 1, 11) for name in ("a", "b", "1a")]
    assert len({key_of(*part) for part in parts}) == len(parts)
    assert key_of(1, 11, "a") != key_of(11, 1, "a")
    assert all(0 <= seed_of(*part) < 2**63 for part in parts)
    assert len({seed_of(*part) for part in parts}) == len(parts)


def test_random_numbers_have_32_even_bits() -> None:
    values = np.concatenate(list(Dataset.random(seed=5).batch(20_000).take(5)))
    assert values.dtype == np.int64
    assert values.min() >= 0
    assert values.max() < 2**32
    assert abs(excess(np.bincount(values >> 25, minlength=128), 100_000 / 128, 127)) < 5
    assert abs(excess(np.bincount(values & 127, minlength=128), 100_000 / 128, 127)) < 5
    once = Dataset.random(seed=5).take(10)
    assert list(once) == list(once)


# Positions of a shuffle


def stepped(size: int, total: int, position: int, seed: int) -> Picks:
    picks = Picks(size, seed, 0, MEMORY, SpillStore())
    picks.seek(0, total)
    full = max(total - size, 0)
    if min(position, full):
        picks.exchange(min(position, full))
    if position > full:
        picks.drain(position - full)
    return picks


def in_slots(picks: Picks) -> list[int]:
    found: list[int] = picks._numbers.get(np.arange(picks.live)).tolist()
    return found


@fixed
@given(st.integers(1, 40), st.integers(0, 200), st.sampled_from([MEMORY, 0]), st.data())
def test_a_position_is_found_without_the_steps_before_it(
    size: int, total: int, budget: int, data: st.DataObject
) -> None:
    position = data.draw(st.integers(0, total), "position")
    seed = data.draw(st.integers(0, 5), "seed")
    expected = stepped(size, total, position, seed)
    sought = Picks(size, seed, 0, budget, SpillStore())
    sought.seek(position, total)
    assert sought.position == expected.position == position
    assert (sought.nbytes == 0) == (not budget or position == total)
    assert in_slots(sought) == in_slots(expected)
    sought.close()


@pytest.mark.parametrize("budget", [MEMORY, 0])
def test_a_far_position_is_found_too(budget: int) -> None:
    size, total, position = 1000, 10**6, 700_000
    expected, sought = stepped(size, total, position, 1), Picks(size, 1, 0, budget, SpillStore())
    sought.seek(position, total)
    assert in_slots(sought) == in_slots(expected)
    # Nobody could have gone there step by step.
    sought.seek(10**15, 2 * 10**15)
    assert len(set(in_slots(sought))) == size
    assert max(in_slots(sought)) < 10**15 + size
    sought.close()


def test_options_do_not_change_a_shuffled_order() -> None:
    for dataset in (Dataset.range(300).shuffle(20, seed=1), Dataset.range(300).map(abs).shuffle(20, seed=1).batch(7)):
        expected = [np.ravel(x).tolist() for x in dataset.with_options(fb.Options())]
        for options in SETTINGS:
            fresh = type(dataset)(dataset.plan).with_options(options)
            assert [np.ravel(x).tolist() for x in fresh] == expected
