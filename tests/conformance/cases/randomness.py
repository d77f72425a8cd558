"""Random numbers other than a shuffle's order: Dataset.random, map(rng=True), random inner datasets."""

from __future__ import annotations

from conformance.case import Case
from conformance.cases.common import Dataset, range_, slices
from conformance.cases.laws import each_different, random_words
from conformance.data import ARRAYS


def _noise(i, rng):
    return i + rng.random()


def _inner_shuffle(i):
    return range_(i * 10, i * 10 + 6).shuffle(6, seed=4)


def _inner_orders(elements):
    assert len(elements) == 24
    for i in range(4):
        assert sorted(int(e) for e in elements[i * 6 : i * 6 + 6]) == list(range(i * 10, i * 10 + 6))


def _pairs_law(elements):
    each_different(12)([noisy for noisy, _ in elements])
    assert all(0 <= noisy - whole < 1 for noisy, whole in elements)


def _rounds_of_five(different):
    def law(elements):
        assert len(elements) == 15
        assert len({tuple(int(e) for e in elements[k : k + 5]) for k in (0, 5, 10)}) == different

    return law


CASES = [
    Case("random", lambda: Dataset.random(seed=3), law=random_words(30), limit=30),
    Case(
        "random.rerandomized",
        lambda: Dataset.random(seed=3, rerandomize_each_iteration=True),
        law=random_words(30),
        limit=30,
        reshuffles=True,
    ),
    Case("random.not_rerandomized", lambda: Dataset.random(3, False), law=random_words(30), limit=30),
    Case("random.unseeded", lambda: Dataset.random(), law=random_words(30), limit=30, seeded=False),
    Case("random.take", lambda: Dataset.random(seed=4).take(20), law=random_words(20)),
    Case("random.skip_shard", lambda: Dataset.random(seed=4).skip(5).shard(3, 1).take(20), law=random_words(20)),
    Case("random.repeated", lambda: Dataset.random(seed=4).take(5).repeat(3), law=_rounds_of_five(different=1)),
    Case(
        "random.repeated_rerandomized",
        lambda: Dataset.random(4, True).take(5).repeat(3),
        law=_rounds_of_five(different=3),
        reshuffles=True,
    ),
    Case("map.rng", lambda: range_(20).map(_noise, rng=True, seed=6), law=each_different(20), reshuffles=True),
    Case(
        "map.rng_unseeded",
        lambda: range_(20).map(_noise, rng=True),
        law=each_different(20),
        reshuffles=True,
        seeded=False,
    ),
    Case(
        "map.rng_tuple_arguments",
        lambda: slices((ARRAYS["matrix"], ARRAYS["small"])).map(
            lambda m, s, rng: (s + rng.random(), s), rng=True, seed=6
        ),
        law=_pairs_law,
        reshuffles=True,
    ),
    Case(
        "map.rng_same_input",
        lambda: Dataset.from_tensors(0).repeat(15).map(_noise, rng=True, seed=6),
        law=each_different(15),
        reshuffles=True,
    ),
    Case(
        "map.rng_twice",
        lambda: range_(12).map(lambda i: i * 0).map(_noise, rng=True, seed=1).map(_noise, rng=True, seed=2),
        law=each_different(12),
        reshuffles=True,
    ),
    Case(
        "map.rng_then_filter",
        lambda: range_(30).map(_noise, rng=True, seed=1).filter(lambda x: x % 2 < 1),
        law=each_different(15),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "map.rng_after_filter",
        lambda: range_(30).filter(lambda i: i % 2 == 0).map(_noise, rng=True, seed=1),
        law=each_different(15),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "map.rng_repeated",
        lambda: range_(6).map(_noise, rng=True, seed=1).repeat(3),
        law=each_different(18),
        reshuffles=True,
    ),
    Case(
        "map.rng_after_shuffle",
        lambda: range_(20).shuffle(8, seed=5).map(_noise, rng=True, seed=1),
        law=each_different(20),
        reshuffles=True,
    ),
    Case(
        "map.rng_before_shuffle",
        lambda: range_(20).map(_noise, rng=True, seed=1).shuffle(8, seed=5),
        law=each_different(20),
        reshuffles=True,
    ),
    *(
        Case(
            f"map.rng_after_a_map_and_{name}",
            lambda step=step: step(range_(24).map(lambda i: i + 1)).map(_noise, rng=True, seed=1),
            law=each_different(rows),
            reshuffles=True,
        )
        # Steps that the first map changes places with: the second one's numbers are those of the new order.
        for name, rows, step in (
            ("shuffle", 24, lambda ds: ds.shuffle(seed=5)),
            ("small_shuffle", 24, lambda ds: ds.shuffle(6, seed=5)),
            ("skip", 21, lambda ds: ds.skip(3)),
            ("shard", 8, lambda ds: ds.shard(3, 1)),
        )
    ),
    Case(
        "map.rng_then_skip_shard",
        lambda: range_(40).map(_noise, rng=True, seed=1).skip(4).shard(3, 1),
        law=each_different(12),
        reshuffles=True,
    ),
    Case(
        "flat_map.inner_shuffle",
        lambda: range_(4).flat_map(_inner_shuffle),
        law=_inner_orders,
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "flat_map.inner_rng",
        lambda: range_(4).flat_map(lambda i: range_(i * 5, i * 5 + 5).map(_noise, rng=True, seed=2)),
        law=each_different(20),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "flat_map.inner_unseeded_shuffle",
        lambda: range_(4).flat_map(lambda i: range_(i * 10, i * 10 + 6).shuffle(6)),
        law=_inner_orders,
        reshuffles=True,
        seeded=False,
        unknown_length=True,
    ),
    Case(
        "flat_map.of_shuffle",
        lambda: range_(9).shuffle(9, seed=8).flat_map(lambda i: range_(i * 3, i * 3 + 3)),
        law=each_different(27),
        reshuffles=True,
        unknown_length=True,
    ),
]
