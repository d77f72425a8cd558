"""Random chains of operators: whatever tf.data does with one, Forebay does too."""

from hypothesis import given, settings

from differential.chains import FIXED, Chain, chains
from differential.intended import agree
from differential.outcome import observe
from differential.sides import every_forebay


@settings(FIXED, max_examples=600)
@given(chains())
def test_chains_agree(chain: Chain) -> None:
    want = chain.of_oracle()
    for side in every_forebay():
        agree(observe(side, chain.build), want, side.name)
