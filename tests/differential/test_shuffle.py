"""Random operators: no order to compare, so their multisets, their law and their distribution.

tf.data's own samples go through the same tests, and samples of a wrong law must fail them: otherwise a test
that lets everything pass would look like agreement.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings

from differential.chains import FIXED, Chain, chains
from differential.intended import SHARED_EPOCHS
from differential.outcome import canonical, read
from differential.sides import Side, every_forebay, forebay, oracle
from differential.statistics import alike, follows, shuffle_law

# Read by number, where no row buffer is needed, and as streams, where one is.
INPUTS: dict[str, Callable[[Side, int], Any]] = {
    "indexable": lambda d, n: d.range(n),
    "streamed": lambda d, n: d.range(n).filter(lambda x: True),
    "generated": lambda d, n: d.generator(lambda: iter(range(n)), output_signature=d.spec()),
}

Order = tuple[int, ...]


def by_epochs(side: Side, source: str, count: int, buffer_size: int, samples: int) -> list[Order]:
    """Orders of the rounds of one dataset, which shuffles each round anew."""
    dataset = INPUTS[source](side, count).shuffle(buffer_size, seed=11).repeat(samples).batch(count)
    return [tuple(order.tolist()) for order in dataset.as_numpy_iterator()]


def by_seeds(side: Side, source: str, count: int, buffer_size: int, samples: int) -> list[Order]:
    """Orders of the first epochs of many datasets."""
    input = INPUTS[source](side, count)
    return [tuple(int(x) for x in input.shuffle(buffer_size, seed=seed).as_numpy_iterator()) for seed in range(samples)]


@cache
def of_oracle(count: int, buffer_size: int) -> list[Order]:
    return by_epochs(oracle(), "indexable", count, buffer_size, 4000)


LAWS = [(4, 2), (5, 3), (4, 9)]


@pytest.mark.parametrize(("count", "buffer_size"), LAWS)
def test_tf_data_follows_the_law(count: int, buffer_size: int) -> None:
    assert follows(of_oracle(count, buffer_size), shuffle_law(count, buffer_size))


@pytest.mark.parametrize(("draw", "samples"), [(by_epochs, 2000), (by_seeds, 1000)])
@pytest.mark.parametrize("source", INPUTS)
@pytest.mark.parametrize(("count", "buffer_size"), LAWS)
def test_orders_are_distributed_as_in_tf_data(
    count: int, buffer_size: int, source: str, draw: Callable[..., list[Order]], samples: int
) -> None:
    orders = draw(forebay(), source, count, buffer_size, samples)
    assert follows(orders, shuffle_law(count, buffer_size))
    assert alike(orders, of_oracle(count, buffer_size))


@pytest.mark.parametrize("source", INPUTS)
@pytest.mark.parametrize("buffer_size", [3, 10, 25])
def test_displacements_are_distributed_as_in_tf_data(source: str, buffer_size: int) -> None:
    """Longer than what can be listed order by order: where each of 40 elements comes out."""

    def places(orders: list[Order]) -> list[list[int]]:
        return [[order.index(element) for order in orders] for element in range(40)]

    ours = places(by_epochs(forebay(), source, 40, buffer_size, 1500))
    theirs = places(of_oracle(40, buffer_size)[:1500])
    assert [element for element in range(40) if not alike(ours[element], theirs[element])] == []


def test_a_wrong_law_is_noticed() -> None:
    assert not follows(of_oracle(5, 2), shuffle_law(5, 3))
    assert not follows([*of_oracle(5, 3), *[(0, 1, 2, 3, 4)] * 100], shuffle_law(5, 3))
    assert not alike(of_oracle(4, 2), of_oracle(4, 3))
    assert not alike([order.index(20) for order in of_oracle(40, 10)], [order.index(20) for order in of_oracle(40, 8)])


def test_without_a_size_every_order_is_as_likely() -> None:
    """tf.data needs a buffer as large as the dataset for this."""
    orders = [tuple(int(x) for x in forebay().range(4).shuffle(seed=seed).as_numpy_iterator()) for seed in range(2000)]
    assert follows(orders, shuffle_law(4, 4))
    assert alike(orders, of_oracle(4, 4))


@settings(FIXED, max_examples=60)
@given(chains(longest=3))
def test_shuffled_chains_have_the_elements_and_the_reach(chain: Chain) -> None:
    """All elements come out, none at a position t that is `buffer_size` or more before its own."""
    want = chain.of_oracle()
    if want.failed or not want.ended:
        return
    for side in every_forebay():
        for buffer_size in (2, 5, 1000):
            dataset = side.tuned(chain.build(side).enumerate().shuffle(buffer_size, seed=3))
            assert int(dataset.cardinality()) == want.cardinality
            pairs = list(dataset.as_numpy_iterator())
            assert all(index < t + buffer_size for t, (index, _) in enumerate(pairs))
            pairs.sort(key=lambda pair: int(pair[0]))
            assert [int(index) for index, _ in pairs] == list(range(len(want.elements)))
            assert tuple(canonical(element) for _, element in pairs) == want.elements


@pytest.mark.parametrize("buffer_size", [1, 3, 7])
def test_an_endless_input_is_shuffled_within_reach(buffer_size: int) -> None:
    for side in (oracle(), *every_forebay()):
        dataset = side.tuned(side.counter().shuffle(buffer_size, seed=5))
        assert int(dataset.cardinality()) == -1
        out = [int(x) for x in dataset.take(500).as_numpy_iterator()]
        assert len(set(out)) == 500
        assert all(index < t + buffer_size for t, index in enumerate(out))


def test_random_numbers_are_of_one_kind_and_range() -> None:
    for side in (oracle(), *every_forebay()):
        outcome = read(side, side.tuned(side.random(seed=7)), 4000)
        assert outcome.cardinality == -1
        assert {leaf[:2] for leaf in outcome.elements} == {("int64", None)}
        values = [leaf.value for leaf in outcome.elements]
        assert 0 <= min(values) < 2**24
        assert 2**32 - 2**24 <= max(values) < 2**32
        # All 32 bits are random, not only the high ones.
        for shift in (0, 12, 28):
            assert follows([value >> shift & 15 for value in values], dict.fromkeys(range(16), 1 / 16))


def built_on_one(side: Side, source: str, seed: int | None, again: bool) -> tuple[bool, bool, bool]:
    """Whether two parts of one shuffled dataset make up the whole, two maps of it agree, and it repeats itself."""
    shuffled = INPUTS[source](side, 60).shuffle(60, seed, reshuffle_each_iteration=again)

    def numbers(dataset: Any) -> list[int]:
        return [int(x) for x in side.tuned(dataset).as_numpy_iterator()]

    def call(d: Side) -> Any:
        return d.zip((shuffled.map(lambda x: x + 1), shuffled.map(lambda x: x * 2)))

    parts = numbers(shuffled.take(40)) + numbers(shuffled.skip(40))
    pairs = side.tuned(side.call(call)).as_numpy_iterator()
    twice = numbers(shuffled.concatenate(shuffled))
    return sorted(parts) == list(range(60)), all((a - 1) * 2 == b for a, b in pairs), twice[:60] == twice[60:]


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("source", INPUTS)
def test_datasets_on_one_shuffled_dataset_share_its_order(source: str, seed: int | None) -> None:
    for side in (oracle(), *every_forebay()):
        assert built_on_one(side, source, seed, again=False) == (True, True, True), side.name


@pytest.mark.parametrize("seed", [None, 5])
def test_shared_epochs_are_intended(seed: int | None) -> None:
    """What ``SHARED_EPOCHS`` says: tf.data shuffles anew for each reader of a dataset that is reshuffled."""
    assert SHARED_EPOCHS
    assert built_on_one(oracle(), "indexable", seed, again=True) == (False, False, False)
    for side in every_forebay():
        assert built_on_one(side, "indexable", seed, again=True) == (True, True, True), side.name
