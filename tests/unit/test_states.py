"""What is no state is refused as such, whatever it is; and what states and refusals leave behind."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay as fb
from forebay import CursorError, Dataset
from unit.support import SETTINGS, fixed, resumed, saved


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


def example() -> Dataset[Any]:
    # Every kind of number that a state may hold, and states within states.
    inner = Dataset.from_generator(numbers, args=(30,)).shuffle(4, seed=1).enumerate(3).batch(2).repeat(3)
    return Dataset.zip(inner, Dataset.range(60).filter(lambda x: x >= 0).take_while(lambda x: True)).take(50)


EXAMPLE = example()
STATE = saved(EXAMPLE, 9)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(-1) | st.just(2**63),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)


@fixed
@given(JUNK)
def test_junk_is_refused(junk: Any) -> None:
    with pytest.raises(CursorError):
        resumed(EXAMPLE, junk)


@fixed
@given(st.dictionaries(st.sampled_from(sorted(STATE)), JUNK))
def test_junk_under_the_right_names_is_refused(junk: dict[str, Any]) -> None:
    with pytest.raises(CursorError):
        resumed(EXAMPLE, junk)


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a state."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from spots(value[key], (*path, key))


@fixed
@given(st.sampled_from(list(spots(STATE))), JUNK, st.booleans())
def test_a_state_with_one_thing_changed_is_refused(spot: tuple[Any, ...], junk: Any, drop: bool) -> None:
    state = json.loads(json.dumps(STATE))
    inside = state
    for key in spot[:-1]:
        inside = inside[key]
    if drop:
        del inside[spot[-1]]
    else:
        inside[spot[-1]] = junk
    if json.dumps(state, sort_keys=True) == json.dumps(STATE, sort_keys=True):
        resumed(EXAMPLE, state)
        return
    with pytest.raises(CursorError):
        resumed(EXAMPLE, state)


@pytest.mark.parametrize("junk", [object(), {1, 2}, b"bytes", np.zeros(3), lambda: 1, {"forebay": {1, 2}}])
def test_things_that_are_not_even_json_are_refused(junk: Any) -> None:
    with pytest.raises(CursorError):
        resumed(EXAMPLE, junk)
    with pytest.raises(CursorError):
        resumed(EXAMPLE, {**STATE, "cursor": junk})


def test_a_state_that_nests_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(CursorError):
        resumed(EXAMPLE, {**STATE, "cursor": deep})


def test_another_version_is_named() -> None:
    for version in (0, 2, "1", None):
        with pytest.raises(CursorError, match=rf"version {version}, this Forebay reads version 1"):
            resumed(EXAMPLE, {**STATE, "forebay": version})


def test_a_damaged_state_is_called_so() -> None:
    with pytest.raises(CursorError, match="changed or damaged"):
        resumed(EXAMPLE, {**STATE, "position": STATE["position"] + 1})


@pytest.mark.parametrize(("text", "kind"), [(json.dumps(STATE), "a str"), (json.dumps(STATE).encode(), "a bytes")])
def test_json_is_told_to_be_read_first(text: Any, kind: str) -> None:
    with pytest.raises(CursorError, match=rf"got {kind}, not the dict .*: of JSON, json.loads\(\) it first"):
        iter(EXAMPLE).load_state_dict(text)


# What a refusal leaves behind


def test_a_refused_state_leaves_the_iterator_where_it_was() -> None:
    it = iter(example())
    expected = [str(x) for x in example()]
    assert [str(next(it)) for _ in range(5)] == expected[:5]
    before = it.state_dict()
    for bad in (None, {}, saved(Dataset.range(5), 2), {**STATE, "position": -1}):
        with pytest.raises(CursorError):
            it.load_state_dict(bad)
        assert it.state_dict() == before
    assert [str(x) for x in it] == expected[5:]


def test_a_state_is_the_users_own() -> None:
    def spoil(value: Any) -> None:
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            if isinstance(value[key], (dict, list)):
                spoil(value[key])
            else:
                value[key] = -7

    expected = [str(x) for x in example()]
    it = iter(example())
    for _ in range(9):
        next(it)
    spoil(it.state_dict())
    again = resumed(example(), it.state_dict())
    loaded = it.state_dict()
    third = resumed(example(), loaded)
    spoil(loaded)
    fourth = resumed(example(), third.state_dict())
    for rest in (it, again, third, fourth):
        assert [str(x) for x in rest] == expected[9:]


def test_the_input_that_has_become_shorter_is_named() -> None:
    length = [20]

    def rows() -> Iterator[int]:
        yield from range(length[0])

    dataset = Dataset.from_generator(rows).shuffle(5, seed=1)
    state = saved(dataset, 12)
    length[0] = 6
    with pytest.raises(fb.DataError, match=r"shuffle at .* has become shorter"):
        list(resumed(dataset, state))


def test_states_are_small_and_constant_in_form() -> None:
    it = iter(example())
    for _ in range(40):
        state = it.state_dict()
        assert set(state) == {"forebay", "plan", "layout", "seeds", "epoch", "position", "cursor", "checksum"}
        assert len(json.dumps(state)) < 4096
        next(it)


def test_the_end_is_a_place_too() -> None:
    for options in SETTINGS:
        dataset = example().with_options(options)
        it = iter(dataset)
        count = len(list(it))
        state = it.state_dict()
        assert state["position"] == count == 45
        assert list(resumed(dataset, state)) == []


def test_a_loaded_state_sets_the_epoch() -> None:
    dataset = Dataset.range(20).shuffle(seed=3)
    epochs = [list(dataset) for _ in range(4)]
    it = iter(dataset)
    assert it.epoch == 4
    fresh = Dataset.range(20).shuffle(seed=3)
    for _ in range(2):
        list(fresh)
    third = iter(fresh)
    next(third)
    state = third.state_dict()
    other = Dataset.range(20).shuffle(seed=3)
    loaded = resumed(other, state)
    assert loaded.epoch == 2
    assert list(loaded) == epochs[2][1:]
    # The next pass is the one after the loaded one.
    assert list(other) == epochs[3]
