"""What a state is made of."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from conformance.case import Case, drain, recorded, some_steps
from conformance.compare import assert_same_run
from conformance.parametrize import every_case


@every_case()
def test_small(case: Case) -> None:
    recording = recorded(case.id)
    largest = max(len(s) for s in [*recording.states, recording.exhausted or ""])
    assert largest < 64 * 1024


@every_case()
def test_plain_json(case: Case) -> None:
    with iter(case.build()) as it:
        for _ in range(len(recorded(case.id).run.elements)):
            state = it.state_dict()
            _assert_plain(state)
            assert json.loads(json.dumps(state, allow_nan=False)) == state
            next(it)
        _assert_plain(it.state_dict())


@every_case(lambda case: case.id != "flat_map.inner_plans_differ")
def test_constant_form(case: Case) -> None:
    """Same keys, same types at every step; null where something is not open yet.

    Not so if the steps of the dataset are others from element to element: which of them a state is in then depends on
    where blocks end.
    """
    recording = recorded(case.id)
    form: Any = None
    for k, state in enumerate([*recording.states, *filter(None, [recording.exhausted])]):
        form = _unify(form, _form(json.loads(state)), f"step {k}: state")


@every_case()
def test_a_snapshot(case: Case) -> None:
    """Neither reading on nor loading elsewhere changes a state that was handed out, and nobody keeps it."""
    recording = recorded(case.id)
    n = len(recording.run.elements)
    with iter(case.build()) as it:
        taken = []
        for _ in range(n):
            state = it.state_dict()
            taken.append((state, copy.deepcopy(state)))
            next(it)
        for state, at_that_time in taken:
            assert state == at_that_time
    for k in some_steps(n):
        state = json.loads(recording.states[k])
        with iter(case.build()) as it:
            it.load_state_dict(state)
            assert json.dumps(state) == recording.states[k]
            _vandalise(state)
            assert_same_run(drain(it, case, done=k), recording.run.tail(k), f"from step {k}:")


@every_case()
def test_asking_twice_gives_the_same(case: Case) -> None:
    with iter(case.build()) as it:
        for _ in range(len(recorded(case.id).run.elements)):
            assert it.state_dict() == it.state_dict()
            next(it)


@pytest.mark.parametrize(
    ("a", "b"),
    [({"x": 1}, {"x": "1"}), ({"x": 1}, {"y": 1}), ({"x": [1]}, {"x": {"0": 1}}), ([1, [2]], [1, 2, 3])],
)
def test_the_comparison_of_forms_can_fail(a: Any, b: Any) -> None:
    with pytest.raises(AssertionError):
        _unify(_form(a), _form(b), "state")


def _assert_plain(value: Any) -> None:
    """Exactly the types that JSON has, so that a state can be compared with one read from a file."""
    if type(value) is dict:
        for key, item in value.items():
            assert type(key) is str, f"key {key!r} is of {type(key)}"
            _assert_plain(item)
    elif type(value) is list:
        for item in value:
            _assert_plain(item)
    else:
        assert type(value) in (str, int, float, bool, type(None)), f"{value!r} is of {type(value)}"


def _form(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _form(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_form(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__
    return "number"


def _unify(a: Any, b: Any, where: str) -> Any:
    """The form that covers both, or AssertionError. Lists of unlike lengths are lists of one kind of item."""
    if a in (None, "NoneType"):
        return b
    if b == "NoneType":
        return a
    assert type(a) is type(b), f"{where}: {a} before, now {b}"
    if isinstance(a, dict):
        assert a.keys() == b.keys(), f"{where}: keys {sorted(a)} before, now {sorted(b)}"
        return {key: _unify(a[key], b[key], f"{where}[{key!r}]") for key in a}
    if isinstance(a, list):
        if len(a) == len(b):
            return [_unify(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True))]
        item = None
        for x in [*a, *b]:
            item = _unify(item, x, f"{where}[...]")
        # An empty list next to a longer one would lose the form of the items.
        return a if len(a) > len(b) else b
    assert a == b, f"{where}: {a} before, now {b}"
    return a


def _vandalise(value: Any) -> None:
    if isinstance(value, dict):
        for item in value.values():
            _vandalise(item)
        value.clear()
    elif isinstance(value, list):
        for item in value:
            _vandalise(item)
        value.clear()
