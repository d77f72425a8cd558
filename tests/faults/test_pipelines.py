"""Datasets on worker processes: workers that are killed, that die of an element, and that serve several epochs."""

import gc
import itertools
import json
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from faults.support import assert_nothing_runs, busy, take_until_error, workers_of
from forebay import Dataset
from forebay.run import auto
from forebay.run.gil_probe import Seen
from processes.support import alive, wait_for

N = 1500
BATCH = 7


def work(x: Any) -> dict[str, Any]:
    busy(3000)
    return {"x": x, "square": x * x, "text": f"number {x}", "row": np.arange(x % 5)}


def assert_same(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.keys() == theirs.keys()
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name])


def in_batches(dataset: Dataset[Any]) -> Dataset[Any]:
    return dataset.map(lambda e: {**e, "row": e["row"].sum()}).batch(BATCH)


@pytest.fixture
def on_processes() -> Iterator[Dataset[Any]]:
    dataset = in_batches(Dataset.range(N).map(work, num_parallel_calls=2, executor="process"))
    yield dataset
    iter(dataset).close()


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    return list(in_batches(Dataset.range(N).map(work)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_killed_workers_change_nothing(on_processes: Dataset[Any], expected: list[Any], seed: int) -> None:
    """Five kills each, so far apart that none falls on the block of the one before it: three would be an error."""
    draw = random.Random(seed)
    points = {part * len(expected) // 5 + draw.randrange(20) for part in range(5)}
    assert len(points) == 5
    found = []
    # What has been sent ahead is less than the batches between two points, so there is always a worker to come.
    for number, batch in enumerate(on_processes.with_options(fb.Options(block_bytes=64))):
        found.append(batch)
        if number in points:
            wait_for(workers_of, "a worker")
            os.kill(draw.choice(sorted(workers_of())), signal.SIGKILL)
    assert_same(found, expected)


@pytest.mark.slow
def test_deaths_in_the_middle_of_calls_change_nothing(tmp_path: Path, expected: list[Any]) -> None:
    fatal = set(random.Random(1).sample(range(N), 6))

    def function(x: Any) -> Any:
        mark = tmp_path / str(x)
        if x in fatal and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return work(x)

    dataset = in_batches(Dataset.range(N).map(function, num_parallel_calls=2, executor="process"))
    # Element by element, since three of these in one block would be three deaths on it.
    assert_same(list(dataset.with_options(fb.Options(block_bytes=1))), expected)
    assert {int(name) for name in os.listdir(tmp_path)} == fatal


def settle_on_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have "auto" choose them whatever it measures, which on a busy machine may be anything, and as soon as it can."""
    monkeypatch.setattr(auto, "_HOLDS", -1.0)
    monkeypatch.setattr(auto, "_BUSY", -1.0)
    monkeypatch.setattr(auto, "_TRIFLE", -1.0)
    monkeypatch.setattr(Seen, "enough", property(lambda seen: seen.rows > 0 and seen.seconds > 0))


def deadly(die: Callable[[], Any], number: int) -> Callable[[Any], Any]:
    parent = os.getpid()

    def function(x: Any) -> Any:
        busy(2000)
        if x == number and os.getpid() != parent:
            die()
        return x

    return function


@pytest.mark.parametrize(
    ("die", "how"),
    [(lambda: os._exit(3), "exit code 3"), (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL")],
    ids=["exit", "kill"],
)
def test_an_element_that_kills_is_named(die: Callable[[], Any], how: str) -> None:
    dataset = Dataset.range(400).map(deadly(die, 300), num_parallel_calls=2, executor="process", name="fatal")
    found, error = take_until_error(dataset)
    assert isinstance(error, fb.FunctionError)
    first, last = named_range(error, how)
    assert first <= 300 <= last
    assert found == list(range(first))
    assert_nothing_runs()


def named_range(error: BaseException, how: str) -> tuple[int, int]:
    text = str(error)
    assert text.startswith("map 'fatal' at test_pipelines.py:"), text
    assert f": {how}" in text
    assert text.endswith("(3 times)")
    places = text.partition(" times on element")[2].partition(":")[0].removeprefix("s").split(" to ")
    return int(places[0]), int(places[-1])


def test_the_only_element_kills() -> None:
    dataset = Dataset.range(1).map(
        deadly(lambda: os._exit(3), 0), num_parallel_calls=2, executor="process", name="fatal"
    )
    found, error = take_until_error(dataset)
    assert found == []
    assert named_range(error, "exit code 3") == (0, 0)


def test_an_element_that_kills_is_named_by_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    settle_on_processes(monkeypatch)
    parent = os.getpid()

    def function(x: Any) -> Any:
        busy(2000)
        # Until processes are there, elements are made on a thread.
        if os.getpid() != parent:
            os._exit(3)
        return x

    found, error = take_until_error(Dataset.range(10**6).map(function, num_parallel_calls=2, name="fatal"))
    assert isinstance(error, fb.FunctionError)
    assert named_range(error, "exit code 3")[0] == len(found) > 0
    assert found == list(range(len(found)))
    assert_nothing_runs()


def test_after_an_element_that_kills_it_can_be_tried_again(tmp_path: Path) -> None:
    """Three deaths give an error; if the fourth try goes well, all elements have come, each once."""

    def function(x: Any) -> Any:
        if x == 5:
            marks = len(os.listdir(tmp_path))
            if marks < 3:
                (tmp_path / str(marks)).touch()
                os._exit(3)
        return x

    with iter(Dataset.range(40).map(function, num_parallel_calls=2, executor="process")) as it:
        found: list[Any] = []
        with pytest.raises(fb.FunctionError, match="died 3 times"):
            found.extend(itertools.starmap(next, itertools.repeat((it,))))
        assert found == list(range(len(found)))
        assert len(found) <= 5
        found.extend(it)
    assert found == list(range(40))


def pids(dataset: Dataset[Any]) -> set[int]:
    return {int(pid) for pid in dataset}


@pytest.fixture
def asks_pids() -> Dataset[Any]:
    return Dataset.range(40).map(lambda x: (busy(2000), os.getpid())[1], num_parallel_calls=2, executor="process")


def test_a_second_epoch_starts_nothing(asks_pids: Dataset[Any]) -> None:
    assert pids(asks_pids) <= workers_of()
    before = workers_of()
    for _ in range(3):
        assert pids(asks_pids) <= before
        assert workers_of() == before
    with iter(asks_pids) as it:
        next(it)
    assert_nothing_runs()


def test_workers_end_with_the_dataset(asks_pids: Dataset[Any]) -> None:
    dataset = asks_pids.batch(4)
    assert len(list(dataset)) == 10
    there = workers_of()
    assert there
    del dataset
    gc.collect()
    wait_for(lambda: not any(map(alive, there)), "the workers to end")
    assert_nothing_runs()


def test_an_epoch_broken_off_leaves_nothing_to_the_next() -> None:
    """Restoring a finished iterator begins another run, of which workers may not be kept half-way."""
    dataset = Dataset.range(400).map(lambda x: (busy(20_000), x)[1], num_parallel_calls=2, executor="process")
    it = iter(dataset)
    state = it.state_dict()
    assert len(list(it)) == 400
    it.load_state_dict(state)
    assert next(it) == 0
    del it
    gc.collect()
    assert_nothing_runs()
    assert list(dataset) == list(range(400))
    iter(dataset).close()


def test_two_iterators_are_independent() -> None:
    dataset = Dataset.range(60).map(lambda x: (busy(2000), x + 1)[1], num_parallel_calls=2, executor="process")
    one, other = iter(dataset), iter(dataset)
    found: dict[Any, list[Any]] = {one: [], other: []}
    draw = random.Random(3)
    for _ in range(80):
        it = draw.choice([one, other])
        element = next(it, None)
        if element is not None:
            found[it].append(element)
    mine = found[one] + list(one)
    one.close()
    theirs = found[other] + list(other)
    other.close()
    assert mine == theirs == list(range(1, 61))
    assert_nothing_runs()


@pytest.mark.parametrize("others", [("thread", 3), ("inline", None), ("thread", 1), ("process", 1)])
def test_a_state_saved_on_processes_resumes_anywhere(others: tuple[str, int | None]) -> None:
    executor, calls = others

    def dataset(executor: str, calls: int | None) -> Dataset[Any]:
        mapped = Dataset.range(100).map(work, num_parallel_calls=calls, executor=executor)  # type: ignore[arg-type]
        return in_batches(mapped.filter(lambda e: e["x"] % 3 != 1))

    expected = list(dataset("inline", None))
    saved = []
    with iter(dataset("process", 2)) as it:
        for _ in range(len(expected) + 1):
            saved.append(json.dumps(it.state_dict()))
            next(it, None)
    other = dataset(executor, calls)
    for position in range(0, len(expected) + 1, 3):
        with iter(other) as it:
            it.load_state_dict(json.loads(saved[position]))
            assert_same(list(it), expected[position:])
