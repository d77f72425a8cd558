"""A shuffle of everything that comes as a stream: uniform, the same at any budget, exact after a resume."""

import json
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset


def stream(rows: int) -> Dataset[Any]:
    return Dataset.from_generator(lambda: iter(range(rows)))


def order(dataset: Dataset[Any], **options: Any) -> list[int]:
    return [int(x) for x in dataset.with_options(fb.Options(**options))]


def test_every_order_is_equally_likely() -> None:
    dataset = stream(4).shuffle(seed=1)
    found = Counter(tuple(int(x) for x in dataset) for _ in range(1200))
    assert set(found) == set(permutations(range(4)))
    squares = sum((count - 50) ** 2 / 50 for count in found.values())
    # Chi-square with 23 degrees of freedom: mean 23, standard deviation 6.8.
    assert squares < 23 + 5 * 6.8


@pytest.mark.parametrize("memory", [3_000, 50_000, "10MiB"])
def test_places_are_uniform_whether_or_not_it_spills(memory: Any) -> None:
    dataset = stream(1000).shuffle(seed=2)
    sums = np.zeros(1000)
    for epoch in range(20):
        found = order(dataset, memory=memory) if epoch == 0 else [int(x) for x in dataset]
        assert sorted(found) == list(range(1000))
        sums += found
    # Twenty uniform places: mean 499.5, standard deviation 288.7 / sqrt(20); of a thousand, none is 5.5 of these away.
    assert np.abs(sums / 20 - 499.5).max() < 5.5 * 288.7 / 20**0.5


def test_any_row_comes_at_any_place_equally_often_when_it_spills() -> None:
    rows, epochs, parts = 64, 150, 8
    options = fb.Options(memory=600, block_bytes=100)
    dataset = stream(rows).shuffle(seed=5).with_options(options)
    found = np.zeros((parts, parts))
    for _ in range(epochs):
        with iter(dataset) as it:
            order = [int(x) for x in it]
        np.add.at(found, (np.array(order) * parts // rows, np.arange(rows) * parts // rows), 1)
    expected = epochs * rows / parts**2
    squares = ((found - expected) ** 2 / expected).sum()
    # Rows and columns have fixed sums, so at most 49 degrees of freedom: mean 49, standard deviation 9.9.
    assert squares < 49 + 5 * 9.9


@pytest.mark.parametrize("size", [2, 50, 1000])
def test_a_buffer_on_disk_gives_the_order_of_one_in_memory(size: int) -> None:
    ledgers = {memory: fb.Ledger(memory) for memory in (30_000, 10**9)}
    orders = []
    for ledger in ledgers.values():
        dataset = Dataset.from_generator(lambda: (np.full(40, i) for i in range(1500))).shuffle(size, seed=2)
        orders.append([int(x[0]) for x in dataset.with_options(fb.Options(memory=ledger, block_bytes=2000))])
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == list(range(1500))
    assert size < 1000 or ledgers[10**9].peak > 10 * ledgers[30_000].peak


@pytest.mark.parametrize("rows", [0, 1, 2, 300, 5000])
def test_the_order_does_not_depend_on_the_budget(rows: int) -> None:
    dataset = stream(rows).shuffle(seed=3)
    default = order(dataset)
    assert sorted(default) == list(range(rows))
    for memory in (1_000, 20_000, 10**6):
        for block_bytes in (1, 1000, 1 << 20):
            again = stream(rows).shuffle(seed=3)
            assert order(again, memory=memory, block_bytes=block_bytes) == default


def test_a_part_too_large_for_the_budget_is_scattered_again() -> None:
    rows = Dataset.from_generator(lambda: (np.full(50, i) for i in range(20_000))).shuffle(seed=1)
    tight = [int(x[0]) for x in rows.with_options(fb.Options(memory=60_000))]
    assert tight == order(stream(20_000).shuffle(seed=1))


@pytest.mark.parametrize("memory", [5_000, "10MiB"])
def test_resume_at_every_step(memory: Any) -> None:
    def dataset() -> Dataset[Any]:
        return stream(60).shuffle(seed=4).batch(7).with_options(fb.Options(memory=memory))

    whole = [batch.tolist() for batch in dataset()]
    with iter(dataset()) as it:
        states = [json.dumps(it.state_dict()), *(json.dumps(it.state_dict()) for _ in it)]
    assert max(map(len, states)) < 1000
    for k, state in enumerate(states[:-1]):
        with iter(dataset()) as it:
            it.load_state_dict(json.loads(state))
            assert [batch.tolist() for batch in it] == whole[k:]


def test_epochs_differ_unless_told_otherwise() -> None:
    dataset = stream(50).shuffle(seed=1)
    assert [int(x) for x in dataset] != [int(x) for x in dataset]
    fixed = stream(50).shuffle(seed=1, reshuffle_each_iteration=False)
    assert [int(x) for x in fixed] == [int(x) for x in fixed]
    assert len(set(map(int, stream(50).shuffle(seed=1).repeat(2)))) == 50


def test_a_dtype_that_changes_is_an_error_that_names_the_element() -> None:
    mixed = stream(5).concatenate(Dataset.from_generator(lambda: iter([0.5])).map(lambda x: x, num_parallel_calls=1))
    with pytest.raises(fb.ForebayError, match="float64"):
        list(mixed.shuffle(seed=1))


def test_disk_and_memory_are_given_back_at_the_end() -> None:
    ledger = fb.Ledger(20_000)
    dataset = Dataset.from_generator(lambda: (np.full(50, i) for i in range(2000))).shuffle(seed=1)
    it = iter(dataset.with_options(fb.Options(memory=ledger)))
    next(it)
    assert ledger.held > 0
    it.close()
    assert ledger.held == 0


# How far rows move is measured, so that a buffer too small for the data is noticed.


def quality(dataset: Dataset[Any]) -> tuple[float | None, float | None]:
    with iter(dataset) as it:
        for _ in it:
            pass
        (found,) = [each for each in it.stats() if each.name.startswith("shuffle")]
    return found.moved, found.shuffled


@pytest.mark.parametrize("memory", [20_000, "1GiB"])
@pytest.mark.parametrize("by_number", [False, True])
def test_the_distance_that_rows_move_is_measured(memory: Any, by_number: bool) -> None:
    rows, size = 20_000, 100
    source = Dataset.range(rows) if by_number else stream(rows)
    dataset = source.shuffle(size, seed=1).with_options(fb.Options(memory=memory))
    moved, shuffled = quality(dataset)
    exact = np.abs(np.array([int(x) for x in source.shuffle(size, seed=1)]) - np.arange(rows)).mean()
    assert moved is not None
    assert shuffled is not None
    # Measured on one row in sixteen: 1,250 distances that spread about as far as their mean.
    assert abs(moved / exact - 1) < 5 / 1250**0.5
    assert shuffled == pytest.approx(3 * moved / rows)


@pytest.mark.parametrize("by_number", [False, True])
def test_every_round_of_a_repeat_is_measured_by_itself(by_number: bool) -> None:
    rows, size = 3000, 600
    source = Dataset.range(rows) if by_number else stream(rows)
    alone, _ = quality(source.shuffle(size, seed=1))
    dataset = source.shuffle(size, seed=1).repeat(30)
    moved, shuffled = quality(dataset)
    assert alone is not None
    assert moved == pytest.approx(alone, rel=0.15)
    assert shuffled == pytest.approx(3 * alone / rows, rel=0.15)
    with iter(dataset) as it:
        # A round that has just begun has no say yet.
        for _ in zip(range(10 * rows + 50), it):
            pass
        (found,) = [each for each in it.stats() if each.name.startswith("shuffle")]
        assert found.shuffled == pytest.approx(shuffled, rel=0.1)
        assert "a uniform shuffle" not in str(it.stats())


def test_a_buffer_of_everything_moves_rows_as_far_as_a_uniform_order() -> None:
    _, shuffled = quality(stream(5000).shuffle(5000, seed=1))
    assert shuffled is not None
    assert 0.9 < shuffled <= 1.0


@pytest.mark.parametrize("memory", [20_000, "1GiB"])
@pytest.mark.parametrize("source", [stream(5000), Dataset.range(5000)], ids=["stream", "by number"])
def test_a_uniform_order_is_said_to_be_one(source: Dataset[Any], memory: Any) -> None:
    assert quality(source.shuffle(seed=1).with_options(fb.Options(memory=memory))) == (None, 1.0)


def test_a_weak_shuffle_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    stream(5000).shuffle(20, seed=1).batch(10).explain(analyze=True)
    told = capsys.readouterr().out
    assert "places on average" in told
    assert "raise buffer_size" in told
    stream(5000).shuffle(2000, seed=1).batch(10).explain(analyze=True)
    assert "raise buffer_size" not in capsys.readouterr().out
    it = iter(stream(5000).shuffle(20, seed=1))
    list(it)
    assert "raise buffer_size" in str(it.stats())
    assert "a weak shuffle: rows move 1.2% as far" in str(Dataset.range(5000).shuffle(20).memory_report())
    assert "weak" not in str(Dataset.range(5000).shuffle(2000).memory_report())


def test_a_buffer_on_disk_is_told_of_what_is_faster() -> None:
    rows = Dataset.range(100_000).filter(lambda x: True)
    for dataset, told in ((rows, True), (rows.repeat(), False)):
        report = dataset.shuffle(90_000).with_options(fb.Options(memory="1MiB")).memory_report()
        assert "the buffer is on disk" in str(report)
        assert ("shuffle(), which is uniform, is faster" in str(report)) is told
