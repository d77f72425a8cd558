"""Random steps without a seed: one order wherever they are built upon, and the same one after a resume."""

import io
import json
import pickle
import re
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import CursorError, Dataset
from forebay.plan.state import signed
from unit.support import SETTINGS, python, resumed, saved


def shuffled(size: int = 100, **how: Any) -> Dataset[Any]:
    return Dataset.range(size).shuffle(size, **how)


@pytest.mark.parametrize("source", [Dataset.range(100), Dataset.range(100).filter(lambda x: True)])
@pytest.mark.parametrize("buffer_size", [10, 100])
def test_two_parts_of_one_shuffled_dataset_make_up_the_whole(source: Dataset[Any], buffer_size: int) -> None:
    for options in SETTINGS:
        whole = source.shuffle(buffer_size, reshuffle_each_iteration=False)
        first, rest = (part.with_options(options) for part in (whole.take(70), whole.skip(70)))
        assert sorted(map(int, [*first, *rest])) == list(range(100))
        # In every epoch, and in whichever order the two are read.
        assert [*rest] == [*whole][70:]
        assert [*first] == [*whole][:70]


def test_datasets_on_one_shuffled_dataset_stay_side_by_side() -> None:
    for options in SETTINGS:
        source = shuffled()
        both = Dataset.zip((source.map(lambda x: x + 1), source.map(lambda x: x * 2))).with_options(options)
        for _ in range(2):
            assert all((a - 1) * 2 == b for a, b in both)
        drawn = Dataset.range(50).map(lambda x, rng: rng.integers(1 << 40), rng=True)
        assert all(a == b for a, b in Dataset.zip(drawn, drawn.map(lambda x: x)).with_options(options))
        numbers = Dataset.random().take(20)
        assert all(a == b for a, b in Dataset.zip(numbers, numbers).with_options(options))


def test_another_step_has_another_order() -> None:
    one, other = shuffled(), shuffled()
    assert [*one] != [*other]
    assert any(a != b for a, b in Dataset.zip(one, other))
    # The two shuffles of one chain as well.
    again = Dataset.range(100).enumerate().shuffle(100).map(lambda i, x: x).enumerate().shuffle(100)
    assert any(int(place) != int(x) for place, x in again)


def test_a_pickled_step_keeps_its_order() -> None:
    dataset = shuffled(30)
    assert [*pickle.loads(pickle.dumps(dataset))] == [*dataset]


def test_a_step_of_an_inner_dataset_is_drawn_for_every_element() -> None:
    inner = shuffled(30)
    orders = list(Dataset.range(4).flat_map(lambda n: inner).batch(30))
    assert len({order.tobytes() for order in orders}) == 4
    assert all(sorted(order.tolist()) == list(range(30)) for order in orders)


# What is saved


def unseeded() -> Dataset[Any]:
    return (
        Dataset.range(40)
        .shuffle()
        .map(lambda x, rng: (x, rng.integers(1 << 40)), rng=True)
        .flat_map(lambda x, y: Dataset.from_tensor_slices(np.array([x, y, 1])).shuffle(3))
        .shuffle(7)
    )


def test_a_state_has_a_seed_for_every_step_that_needs_one() -> None:
    assert len(saved(unseeded(), 3)["seeds"]) == 4
    assert saved(Dataset.range(9).map(abs).shuffle(3, seed=1).batch(2), 1)["seeds"] == []


def test_a_state_with_too_few_seeds_is_refused() -> None:
    state = saved(unseeded(), 3)
    del state["checksum"]
    with pytest.raises(CursorError, match="seeds for 3 random steps, this dataset has 4"):
        resumed(unseeded(), signed({**state, "seeds": state["seeds"][:3]}))


PROGRAM = """
import json, sys
import numpy as np
import forebay as fb
from forebay import Dataset

ds = (
    Dataset.range(40)
    .shuffle()
    .map(lambda x, rng: (x, rng.integers(1 << 40)), rng=True)
    .flat_map(lambda x, y: Dataset.from_tensor_slices(np.array([x, y, 1])).shuffle(3))
    .shuffle(7)
    .repeat(2)
)

def numbers(elements):
    return [int(x) for x in elements]
"""


def test_the_epochs_after_a_resume_are_those_of_the_uninterrupted_run() -> None:
    whole = PROGRAM + (
        "list(ds)\n"
        "it = iter(ds)\n"
        "for _ in range(55): next(it)\n"
        "state = it.state_dict()\n"
        "print(json.dumps([state, numbers(it), numbers(ds), numbers(ds)]))"
    )
    state, *expected = json.loads(python(whole))
    rest = PROGRAM + (
        "list(ds)\n"  # Whatever this process did before does not matter.
        "it = iter(ds)\n"
        "it.load_state_dict(json.loads(sys.argv[1]))\n"
        "assert it.epoch == 1\n"
        "print(json.dumps([numbers(it), numbers(ds), numbers(ds)]))"
    )
    assert json.loads(python(rest, 300, json.dumps(state))) == expected
    assert len({json.dumps(epoch) for epoch in expected}) == 3


def test_a_resume_in_the_same_process_goes_on_with_the_next_epoch() -> None:
    dataset = shuffled(20)
    states = []
    epochs = []
    for _ in range(3):
        it = iter(dataset)
        next(it)
        states.append(it.state_dict())
        epochs.append([*it])
    again = iter(dataset)
    assert again.epoch == 3
    again.load_state_dict(states[0])
    assert again.epoch == 0
    assert [*again] == epochs[0]
    following = iter(dataset)
    assert following.epoch == 1
    assert [*following][1:] == epochs[1]


def test_a_refused_state_leaves_epochs_and_seeds_as_they_were() -> None:
    dataset, other = shuffled(20), shuffled(20)
    state = saved(other.batch(3), 1)
    it = iter(dataset)
    with pytest.raises(CursorError):
        it.load_state_dict(state)
    assert iter(dataset).epoch == 1
    assert it.state_dict()["seeds"] == fb.plan.own_seeds(dataset.plan)


def test_loading_a_state_changes_no_dataset_built_on_the_same_step() -> None:
    source = shuffled(30, reshuffle_each_iteration=False)
    batches, order = source.batch(5), [*source]
    resumed(batches, saved(shuffled(30, reshuffle_each_iteration=False).batch(5), 2))
    assert [*source.take(30)] == order


def test_explain_tells_a_seed_that_was_drawn_from_one_that_was_given() -> None:
    def explained(dataset: Dataset[Any]) -> str:
        out = io.StringIO()
        dataset.explain(out)
        return out.getvalue()

    dataset = Dataset.range(100).shuffle(seed=7).shuffle(10).map(lambda x, rng: x, rng=True)
    written, runs = explained(dataset).split("As it runs:")
    assert written.count("seed=") == written.count("seed=7") == 1
    seeds = re.findall(r"seed=(drawn )?(\d+)", runs)
    assert [bool(drawn) for drawn, _ in seeds] == [True, True, False]
    # It is the one to write in order to have the same order again.
    again = Dataset.range(100).shuffle(seed=7).shuffle(10, seed=int(seeds[1][1]))
    assert list(again) == list(dataset)
