"""A shuffle's order follows from the plan as it was written: not from the rules, and not from prefetches."""

import pytest

import forebay as fb

Dataset = fb.Dataset
BEFORE = {
    "map, take": lambda: Dataset.range(10).map(lambda x: x).take(6),
    "map, skip": lambda: Dataset.range(10).map(lambda x: x).skip(3),
    "map, shard": lambda: Dataset.range(12).map(lambda x: x).shard(2, 1),
    "prefetch, take": lambda: Dataset.range(10).map(lambda x: x).prefetch(2).take(6),
    "repeat(1)": lambda: Dataset.range(10).repeat(1),
    "repeat(2)": lambda: Dataset.range(5).repeat(2),
    "options, take": lambda: Dataset.range(10).map(lambda x: x).with_options(fb.Options()).take(6),
    "zip, map, take": lambda: Dataset.zip(Dataset.range(9), Dataset.range(9)).map(lambda a, b: a + b).take(7),
    "enumerate, map, take": lambda: Dataset.range(9).enumerate().map(lambda i, x: i + x).take(7),
    "rng map, take": lambda: Dataset.range(9).map(lambda x, rng: x + rng.integers(9), rng=True, seed=3).take(7),
    "cache": lambda: Dataset.range(9).cache(),
    "batch, unbatch": lambda: Dataset.range(9).batch(2).unbatch(),
}


def order(dataset, optimize):
    return [int(x) for x in dataset.with_options(fb.Options(optimize=optimize))]


@pytest.mark.parametrize("size", [3, 9, 50, None])
@pytest.mark.parametrize("before", BEFORE)
def test_rules_do_not_change_the_order(before, size):
    ds = BEFORE[before]().shuffle(size, seed=5)
    assert order(ds, True) == order(ds, False)


@pytest.mark.parametrize("size", [3, 50])
@pytest.mark.parametrize("before", BEFORE)
def test_a_state_goes_over_to_other_rules_and_to_a_prefetch(before, size):
    ds = BEFORE[before]().shuffle(size, seed=5)
    with iter(ds.with_options(fb.Options(optimize=True))) as iterator:
        next(iterator), next(iterator)
        state = iterator.state_dict()
        rest = [int(x) for x in iterator]
    for other in (
        ds.with_options(fb.Options(optimize=False)),
        BEFORE[before]().prefetch(2).shuffle(size, seed=5),
        BEFORE[before]().shuffle(size, seed=5).prefetch(2),
    ):
        with iter(other) as iterator:
            iterator.load_state_dict(state)
            assert [int(x) for x in iterator] == rest


def test_a_shuffle_of_everything_is_that_however_it_was_asked_for():
    for make in BEFORE.values():
        if make().cardinality() == fb.UNKNOWN_CARDINALITY:
            continue
        assert order(make().shuffle(50, seed=5), True) == order(make().shuffle(seed=5), True)


def test_places_in_the_input_that_are_kept_do_not_add_up():
    """Some rows stay in the buffer for very long. Each place may be one in every one of hundreds of files."""
    rows = Dataset.range(200).interleave(lambda i: Dataset.range(40).map(lambda k: 40 * i + k), cycle_length=50)
    ds = rows.shuffle(256, seed=3, reshuffle_each_iteration=False).with_options(fb.Options(block_bytes=32))
    expected = [int(x) for x in ds]
    with iter(ds) as iterator:
        for number, x in enumerate(iterator, 1):
            assert x == expected[number - 1]
            if number % 611 == 0:
                (shuffle,) = (each for each in operators(iterator._run.operator) if hasattr(each, "_marks"))
                assert len(shuffle._marks) <= 64
                with iter(ds) as other:
                    other.load_state_dict(iterator.state_dict())
                    assert [int(next(other)) for _ in range(50)] == expected[number : number + 50]


def operators(last):
    return [last, *(each for before in last.inputs for each in operators(before))]
