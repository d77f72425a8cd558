"""reduce, get_single_element, apply, and how datasets and iterators behave as Python objects."""

import itertools
import threading
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from unit.support import SETTINGS, assert_same, plain


def test_reduce_folds_from_the_left() -> None:
    assert Dataset.range(5).reduce("", lambda text, x: text + str(x)) == "01234"
    assert Dataset.range(0).reduce("start", lambda text, x: text + str(x)) == "start"
    pairs = Dataset.range(4).enumerate(10)
    assert pairs.reduce(0, lambda total, pair: total + int(pair[0]) * int(pair[1])) == 10 * 0 + 11 + 24 + 39


def test_reduce_hands_on_any_state() -> None:
    state = {"seen": []}
    result = Dataset.range(3).reduce(state, lambda s, x: {"seen": [*s["seen"], int(x)]})
    assert result == {"seen": [0, 1, 2]}
    assert state == {"seen": []}
    assert Dataset.range(3).reduce(None, lambda s, x: s) is None


def test_reduce_runs_one_epoch_of_its_own() -> None:
    dataset = Dataset.range(20).shuffle(seed=1)
    first = dataset.reduce([], lambda order, x: [*order, int(x)])
    second = dataset.reduce([], lambda order, x: [*order, int(x)])
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second


def test_get_single_element() -> None:
    assert_same(Dataset.range(4).batch(10).get_single_element(), np.arange(4))
    assert_same(Dataset.from_tensors({"a": "x"}).get_single_element(), {"a": "x"})
    assert Dataset.range(9).filter(lambda x: x == 5).get_single_element() == 5


def test_apply_is_a_call() -> None:
    def halves(dataset: Dataset[Any]) -> Dataset[Any]:
        return dataset.map(lambda x: x / 2).batch(2)

    assert plain(list(Dataset.range(3).apply(halves))) == [[0.0, 0.5], [1.0]]


def test_as_numpy_iterator_is_iter() -> None:
    it = Dataset.range(3).as_numpy_iterator()
    assert isinstance(it, fb.DatasetIterator)
    assert list(it) == [0, 1, 2]


def test_an_iterator_is_its_own_iterator_and_ends_for_good() -> None:
    it = iter(Dataset.range(3))
    assert iter(it) is it
    assert [*itertools.islice(it, 2), *it] == [0, 1, 2]
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(it)


def test_iterators_of_one_dataset_are_independent() -> None:
    for options in SETTINGS:
        dataset = Dataset.range(6).map(lambda x: np.array([x, x])).with_options(options)
        one, other = iter(dataset), iter(dataset)
        assert next(one)[0] == 0
        assert next(one)[0] == 1
        mine = next(other)
        mine[:] = 99
        assert [int(x[0]) for x in one] == [2, 3, 4, 5]
        assert [int(x[0]) for x in other] == [1, 2, 3, 4, 5]
        assert [int(x[0]) for x in dataset] == [0, 1, 2, 3, 4, 5]


def test_a_dataset_is_not_changed_by_its_methods() -> None:
    dataset = Dataset.range(10)
    before = dataset.plan
    dataset.map(abs).batch(2).shuffle().take(1)
    list(dataset.repeat(2))
    assert dataset.plan is before
    assert list(dataset) == list(range(10))


def test_epochs_count_iterations() -> None:
    dataset = Dataset.range(3)
    assert [iter(dataset).epoch for _ in range(3)] == [0, 1, 2]
    # A dataset made from it begins with epoch 0 of its own.
    assert iter(dataset.skip(1)).epoch == 0


def test_with_closes() -> None:
    with iter(Dataset.range(3)) as it:
        assert next(it) == 0
    with pytest.raises(fb.ClosedError):
        next(it)


def test_one_dataset_may_be_iterated_on_several_threads() -> None:
    dataset = Dataset.range(2000).shuffle(100, seed=1, reshuffle_each_iteration=False).map(lambda x: x + 1)
    expected = list(dataset)
    found: dict[int, list[Any]] = {}
    barrier = threading.Barrier(4)

    def run(number: int) -> None:
        barrier.wait(300)
        found[number] = list(dataset)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(found) == 4
    assert all(order == expected for order in found.values())


SHARED = np.zeros(3)


class Always:
    """A function that returns one and the same array."""

    def __init__(self, value: np.ndarray) -> None:
        self.value = value

    def __call__(self, *_: Any) -> np.ndarray:
        return self.value


@pytest.mark.parametrize(
    "source",
    [
        lambda: Dataset.from_tensors(np.zeros(3)),
        lambda: Dataset.from_tensors({"a": (np.zeros(3), np.zeros((2, 2)))}),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))),
        lambda: Dataset.from_tensor_slices([[0.0, 0.0], [0.0]]),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3), ">f8")),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))[:, ::2]),
        lambda: Dataset.from_tensor_slices(np.zeros((3, 4)).T),
        lambda: Dataset.from_tensor_slices([["a", "b"], ["c", "d"]]),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).repeat(2),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).shuffle(2, seed=1, reshuffle_each_iteration=False),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).batch(3),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).unbatch().batch(5),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).map(lambda x: x),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).map(lambda x: x, batched=True),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).map(lambda x: (x, x)),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).map(lambda x: (x, x), batched=True),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).map(lambda x: (x, x.T, x[:1])).map(lambda *xs: xs),
        lambda: Dataset.range(4).map(Always(np.zeros(3))),
        lambda: Dataset.range(4).map([np.zeros(i) for i in range(4)].__getitem__),
        lambda: Dataset.from_generator(lambda: iter([SHARED, SHARED])),
        lambda: Dataset.from_generator(lambda: iter([None, SHARED, SHARED])),
        lambda: Dataset.zip(*[Dataset.from_tensor_slices(np.zeros((4, 3)))] * 2),
        lambda: Dataset.from_tensor_slices(np.zeros((4, 3))).enumerate().flat_map(lambda i, x: Dataset.from_tensors(x)),
    ],
)
def test_what_is_received_may_be_written_into(source: Any) -> None:
    def leaves(element: Any) -> list[np.ndarray]:
        parts = element.values() if isinstance(element, dict) else element if isinstance(element, tuple) else ()
        inside = [leaf for part in parts for leaf in leaves(part)]
        return [element, *inside] if isinstance(element, np.ndarray) else inside

    for options in SETTINGS:
        dataset = source().with_options(options)
        expected = [str(x) for x in dataset]
        for _ in range(2):
            found = []
            for element in dataset:
                found.append(str(element))
                arrays = leaves(element)
                for i, array in enumerate(arrays):
                    before = [str(other) for other in arrays[i + 1 :]]
                    array[...] = "!" if array.dtype == object else 7
                    assert [str(other) for other in arrays[i + 1 :]] == before
            assert found == expected


def test_stats_are_a_table_to_read() -> None:
    it = iter(fb.Dataset.range(100).map(lambda x: x * 2).batch(10))
    list(it)
    head, *steps = str(it.stats()).splitlines()
    assert head.split()[:3] == ["step", "elements", "blocks"]
    assert [(line.split()[0], line.split()[3]) for line in steps] == [("batch", "10"), ("map", "100"), ("range", "100")]
    assert [step.elements for step in it.stats()] == [10, 100, 100]


@pytest.mark.parametrize("executor", [None, "thread", "process"])
def test_a_forgotten_return_is_warned_of(executor: Any) -> None:
    def forgets(x: Any) -> None:
        x + 1

    how: dict[str, Any] = {} if executor is None else {"num_parallel_calls": 2, "executor": executor}
    line = r"map at test_results.py:\d+: .*forgets returned None for the first element: is a return missing\?"
    with pytest.warns(UserWarning, match=line) as caught:
        assert list(Dataset.range(20).map(forgets, **how).batch(10)) == [None, None]
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=line) as caught:
        assert list(Dataset.range(20).map(forgets, **how).shuffle(seed=1)) == [None] * 20
    assert len(caught) == 1


@pytest.mark.filterwarnings("error")
def test_none_inside_an_element_or_later_is_not_warned_of() -> None:
    assert next(iter(Dataset.range(2).map(lambda x: {"a": x, "b": None})))["b"] is None
    assert list(Dataset.range(2).map(lambda x: (None,))) == [(None,)] * 2
    assert list(Dataset.range(2).map(lambda x: None if x else 0)) == [0, None]
