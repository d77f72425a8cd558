"""Random chains of operators: whatever tf.data does with one, Forebay does too."""

import pytest
from hypothesis import given, settings

from differential.chains import FIXED, SOURCES, Chain, chains
from differential.intended import ANYWHERE, agree, expected
from differential.outcome import observe
from differential.sides import every_forebay

# Which element an error shows at depends on these steps, be it a function's or that of unequal batches.
_WHERE_ERRORS_SHOW = {
    "skip": "not-computed",
    "shard": "not-computed",
    "zip": "not-computed",
    "shuffle": "shuffle-reads-ahead",
}


def check(chain: Chain) -> None:
    theirs = chain.of_oracle()
    late = [_WHERE_ERRORS_SHOW[step[0]] for step in chain.steps if step[0] in _WHERE_ERRORS_SHOW]
    for side in every_forebay():
        ours = observe(side, chain.build)
        agree(ours, expected(theirs, ours, [*ANYWHERE, *late])[0], side.name)


@pytest.mark.parametrize("source", SOURCES)
def test_chains_agree(source: str) -> None:
    settings(FIXED, max_examples=40)(given(chains([source]))(check))()


@pytest.mark.parametrize("source", ["range", "vector", "tuple", "generator", "ragged"])
def test_chains_with_failing_functions_agree(source: str) -> None:
    settings(FIXED, max_examples=40)(given(chains([source], exploding=True))(check))()
