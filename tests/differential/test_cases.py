"""Every case through tf.data and through Forebay, compared in all that `Outcome` holds."""

from collections import Counter

import numpy as np
import pytest

from differential.cases import ALL
from differential.cases.case import Case, case
from differential.intended import DIFFERENCES, agree, expected
from differential.outcome import observe
from differential.sides import every_forebay, oracle


def check(case: Case) -> None:
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


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_agrees_with_tf_data(case: Case) -> None:
    check(case)


def test_no_two_cases_have_one_name() -> None:
    assert [name for name, count in Counter(case.id for case in ALL).items() if count > 1] == []


def test_every_intended_difference_is_shown_by_a_case() -> None:
    assert {name for case in ALL for name in case.differs} == set(DIFFERENCES)


@pytest.mark.parametrize(
    "wrong",
    [
        case("not-named", lambda d: d.tensors(1)),
        case("named-but-gone", lambda d: d.tensors(np.int64(1)), "python-numbers"),
        case("another-one-named", lambda d: d.tensors("a"), "python-numbers"),
        case("one-of-two-named", lambda d: d.tensors((1, "a")), "text"),
        case("gives-something-else", lambda d: d.range(2).map(lambda x: x * 1.5), "accepted", gives=[0.0, 1.5]),
        case("refused-by-one", lambda d: d.range(3).take(True)),
        case("other-order", lambda d: d.range(3) if d is oracle() else d.range(2, -1, -1)),
        case("other-dtype", lambda d: d.range(3, output_type=np.int64 if d is oracle() else np.int32)),
        case("other-dict-order", lambda d: d.zip(dict.fromkeys("ab" if d is oracle() else "ba", d.range(2)))),
        case("one-more", lambda d: d.range(3 if d is oracle() else 4)),
        case("other-length-only", lambda d: d.range(3) if d is oracle() else d.range(3).filter(lambda x: True)),
        case("fails-later", lambda d: d.range(9).map(lambda x: d.f.check(x, x != (2 if d is oracle() else 3)))),
    ],
    ids=lambda case: case.id,
)
def test_a_difference_that_is_not_intended_fails(wrong: Case) -> None:
    with pytest.raises(AssertionError):
        check(wrong)


def test_a_difference_that_is_not_listed_cannot_be_named() -> None:
    with pytest.raises(KeyError):
        check(case("unlisted", lambda d: d.tensors(1), "no-such-difference"))
