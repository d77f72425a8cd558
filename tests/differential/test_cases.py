"""Every case through tf.data and through Forebay, compared in all that `Outcome` holds."""

from collections import Counter
from functools import cache

import pytest

from differential.cases import ALL
from differential.cases.case import Case
from differential.intended import DIFFERENCES, agree, expected
from differential.outcome import Outcome, observe
from differential.sides import every_forebay, oracle


@cache
def of_oracle(case: Case) -> Outcome:
    return observe(oracle(), case.build)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_agrees_with_tf_data(case: Case) -> None:
    import forebay as fb

    want = expected(of_oracle(case), case.differs, case.gives)
    for side in every_forebay():
        got = observe(side, case.build)
        agree(got, want, side.name)
        if got.failed:
            assert isinstance(got.error, fb.errors.ForebayError) or case.python_error, repr(got.error)


def test_no_two_cases_have_one_name() -> None:
    assert [name for name, count in Counter(case.id for case in ALL).items() if count > 1] == []


def test_every_intended_difference_is_shown_by_a_case() -> None:
    assert {name for case in ALL for name in case.differs} == set(DIFFERENCES)
