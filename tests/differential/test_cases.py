"""Every case through tf.data and through Forebay, compared in all that `Outcome` holds."""

from collections import Counter

import pytest

from differential.cases import ALL
from differential.cases.case import Case
from differential.intended import DIFFERENCES, agree, expected
from differential.outcome import observe
from differential.sides import every_forebay, oracle


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_agrees_with_tf_data(case: Case) -> None:
    theirs = observe(oracle(), case.build)
    shown: set[str] = set()
    for side in every_forebay():
        ours = observe(side, case.build)
        want, differs = expected(theirs, ours, case.differs, case.gives)
        shown |= differs
        agree(ours, want, side.name)
        if ours.error:
            assert isinstance(ours.error, side.own_errors) or case.python_error, repr(ours.error)
    assert shown == set(case.differs), "a difference that is listed no longer shows: take it off the list"


def test_no_two_cases_have_one_name() -> None:
    assert [name for name, count in Counter(case.id for case in ALL).items() if count > 1] == []


def test_every_intended_difference_is_shown_by_a_case() -> None:
    assert {name for case in ALL for name in case.differs} == set(DIFFERENCES)
