"""Operators that undo, divide or reorder one another."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from property import model
from property.build import dataset_of, to_plain
from property.chains import Chain, chains, leaf_forms

SIZES = st.integers(1, 9)
OPTIONS = st.builds(fb.Options, optimize=st.booleans(), block_bytes=st.sampled_from([1, 25, 1 << 20]))


def values(dataset: fb.Dataset[Any]) -> list[Any]:
    return [to_plain(element) for element in dataset]


def stackable(chain: Chain) -> bool:
    return not any(leaf.ragged for leaf in leaf_forms(chain.forms[-1]))


@given(chains(max_steps=3).filter(stackable), SIZES, OPTIONS)
def test_unbatch_undoes_batch(chain: Chain, size: int, options: fb.Options) -> None:
    # Each dataset is built anew: a second pass over one that shuffles is another epoch.
    whole = values(dataset_of(chain))
    assert values(dataset_of(chain).batch(size).unbatch().with_options(options)) == whole
    dropped = values(dataset_of(chain).batch(size, drop_remainder=True).unbatch().with_options(options))
    assert dropped == whole[: len(whole) // size * size]


@given(chains(max_steps=3), SIZES, OPTIONS)
def test_shards_are_a_partition(chain: Chain, count: int, options: fb.Options) -> None:
    whole = values(dataset_of(chain))
    shards = [values(dataset_of(chain).shard(count, i).with_options(options)) for i in range(count)]
    assert shards == [whole[i::count] for i in range(count)]


@given(chains(max_steps=3), st.integers(0, 30), OPTIONS)
def test_take_and_skip_divide(chain: Chain, n: int, options: fb.Options) -> None:
    whole = values(dataset_of(chain))
    head = values(dataset_of(chain).take(n).with_options(options))
    tail = values(dataset_of(chain).skip(n).with_options(options))
    assert head == whole[:n]
    assert tail == whole[n:]
    joined = dataset_of(chain).take(n).concatenate(dataset_of(chain).skip(n)).with_options(options)
    assert values(joined) == whole


@given(chains(max_steps=3), st.integers(0, 12), st.integers(0, 12), OPTIONS)
def test_windows_add_up(chain: Chain, a: int, b: int, options: fb.Options) -> None:
    whole = values(dataset_of(chain))
    assert values(dataset_of(chain).skip(a).skip(b).with_options(options)) == whole[a + b :]
    assert values(dataset_of(chain).take(a).take(b).with_options(options)) == whole[: min(a, b)]
    assert values(dataset_of(chain).skip(a).take(b).with_options(options)) == whole[a : a + b]


@given(chains(max_steps=3, shuffles=False), st.integers(1, 30), st.integers(0, 2**63 - 1), OPTIONS)
def test_shuffle_reorders_within_its_buffer(chain: Chain, size: int, seed: int, options: fb.Options) -> None:
    inputs = values(dataset_of(chain))
    shuffled = dataset_of(chain).shuffle(size, seed=seed).with_options(options)
    epochs = [values(shuffled) for _ in range(3)]
    for outputs in epochs:
        assert Counter(map(repr, outputs)) == Counter(map(repr, inputs))
        assert model.fits_buffer(inputs, outputs, size)
    again = dataset_of(chain).shuffle(size, seed=seed)
    assert [values(again) for _ in range(3)] == epochs


@given(st.integers(1, 400), st.integers(0, 2**63 - 1), st.integers(1, 500))
def test_whole_shuffle_is_a_permutation(n: int, seed: int, block_bytes: int) -> None:
    shuffled = fb.Dataset.range(n).shuffle(seed=seed).with_options(fb.Options(block_bytes=block_bytes))
    assert sorted(values(shuffled)) == list(range(n))


@settings(max_examples=20)
@given(st.integers(60_000, 80_000), st.integers(0, 2**63 - 1))
def test_whole_shuffle_of_many_is_a_permutation(n: int, seed: int) -> None:
    """Sizes around the one at which the order is no longer written out but computed."""
    found = next(iter(fb.Dataset.range(n).shuffle(seed=seed).batch(n)))
    assert sorted(found.tolist()) == list(range(n))


@given(chains(max_steps=3), OPTIONS)
def test_zip_with_itself_and_enumerate_agree(chain: Chain, options: fb.Options) -> None:
    whole = values(dataset_of(chain))
    dataset = dataset_of(chain)
    assert values(fb.Dataset.zip(dataset, dataset).with_options(options)) == [(row, row) for row in whole]
    assert values(dataset_of(chain).enumerate().with_options(options)) == list(enumerate(whole))


@given(chains(max_steps=3), OPTIONS)
def test_reduce_is_a_loop(chain: Chain, options: fb.Options) -> None:
    whole = values(dataset_of(chain))
    found = dataset_of(chain).with_options(options).reduce(0, lambda n, row: n * 3 % 1000 + model.total(to_plain(row)))
    expected = 0
    for row in whole:
        expected = expected * 3 % 1000 + model.total(row)
    assert int(found) == expected
