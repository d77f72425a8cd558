"""Random chains: same elements as the model, however they are run and wherever they are resumed."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import forebay as fb
from property import model
from property.build import dataset_of, to_plain
from property.chains import Chain, chains

# Chains multiply; what holds for so many elements holds for more.
MOST = 120

# The two properties that say the most get the most examples.
MANY = 3 * settings.default.max_examples

OPTIONS = st.builds(fb.Options, optimize=st.booleans(), block_bytes=st.sampled_from([1, 9, 40, 200, 1 << 20]))


def elements_of(dataset: fb.Dataset[Any], most: int = MOST) -> list[Any]:
    with iter(dataset) as it:
        return [to_plain(element) for element in itertools.islice(it, most)]


class Orders:
    """What Forebay's shuffles make of their inputs, checked against the law of a buffer.

    The model has no opinion on random order, so it takes the order from the dataset that ends with the
    shuffle. That the same order appears when steps follow, or under other options, is part of what is tested.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.runs: dict[tuple[int, int], list[Any]] = {}

    def __call__(self, depth: int, epoch: int, inputs: list[Any]) -> list[Any]:
        if (depth, epoch) not in self.runs:
            dataset = dataset_of(self.chain, depth)
            for _ in range(epoch):
                iter(dataset).close()
            outputs = elements_of(dataset, most=len(inputs) + 1)
            size, _, reshuffle = self.chain.steps[depth - 1].args
            assert model.fits_buffer(inputs, outputs, size or len(inputs)), f"{inputs} became {outputs}"
            if not reshuffle and not any(step.name == "shuffle" for step in self.chain.steps[: depth - 1]):
                assert outputs == self.runs.get((depth, 0), outputs), "the order changed from one epoch to another"
            self.runs[depth, epoch] = outputs
        return self.runs[depth, epoch]


def expected_of(chain: Chain, epoch: int = 0) -> list[Any]:
    return list(itertools.islice(model.meaning(chain.source, chain.steps, Orders(chain), epoch), MOST))


@settings(max_examples=MANY)
@given(chains(), OPTIONS)
def test_same_elements_as_the_model(chain: Chain, options: fb.Options) -> None:
    dataset = dataset_of(chain).with_options(options)
    assert elements_of(dataset) == expected_of(chain)
    if not any(step.name == "repeat_for_ever" for step in chain.steps):
        assert elements_of(dataset) == expected_of(chain, epoch=1)


@settings(max_examples=MANY)
@given(chains(), st.lists(OPTIONS, min_size=2, max_size=4), st.data())
def test_resume_anywhere_under_any_options(chain: Chain, options: list[fb.Options], data: st.DataObject) -> None:
    """Stop at random places; go on each time in a dataset built anew and run in another way."""
    expected = expected_of(chain)
    found: list[Any] = []
    state: str | None = None
    for k, chosen in enumerate(options):
        last = k == len(options) - 1
        most = MOST - len(found) if last else data.draw(st.integers(0, max(0, len(expected) - len(found))))
        with iter(dataset_of(chain).with_options(chosen)) as it:
            if state is not None:
                it.load_state_dict(json.loads(state))
            found += [to_plain(element) for element in itertools.islice(it, most)]
            note(f"{chosen}: {len(found)} elements so far")
            state = json.dumps(it.state_dict())
    assert found == expected


@given(chains(max_steps=4), st.integers(1, 4), OPTIONS)
def test_iterators_side_by_side(chain: Chain, pace: int, options: fb.Options) -> None:
    """Two epochs read at unlike pace are what they are when read one after the other."""
    apart = dataset_of(chain).with_options(options)
    expected = [elements_of(apart), elements_of(apart)]
    together = dataset_of(chain).with_options(options)
    found: list[list[Any]] = [[], []]
    with iter(together) as first, iter(together) as second:
        while len(found[0]) < len(expected[0]) or len(found[1]) < len(expected[1]):
            before = list(map(len, found))
            found[0] += [to_plain(e) for e in itertools.islice(first, min(1, MOST - len(found[0])))]
            found[1] += [to_plain(e) for e in itertools.islice(second, min(pace, MOST - len(found[1])))]
            assert before != list(map(len, found)), "neither gives what it gave alone"
    assert found == expected


@given(chains(), OPTIONS)
def test_cardinality_is_never_wrong(chain: Chain, options: fb.Options) -> None:
    # An endless repeat counts as infinite, as in tf.data, although a round may turn out to be empty.
    assume(not any(step.name == "repeat_for_ever" for step in chain.steps))
    dataset = dataset_of(chain).with_options(options)
    found = dataset.cardinality()
    if found != fb.UNKNOWN_CARDINALITY:
        assert found >= 0
        count = len(elements_of(dataset))
        # An endless repeat of what turns out to be nothing ends at once: only running it tells, as in tf.data.
        endless = any(step.name == "repeat_for_ever" for step in chain.steps)
        assert count == min(found, MOST) or (endless and count == 0)


@given(chains(max_steps=5, shuffles=False))
def test_state_stays_small(chain: Chain) -> None:
    with iter(dataset_of(chain)) as it:
        for _ in itertools.islice(it, MOST):
            assert len(json.dumps(it.state_dict())) < 64 * 1024
