"""Iterators that one thread closes while another is in ``next()``."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import forebay as fb
from forebay import ClosedError, Dataset


class Door:
    """Where a function waits, so that the iterator is closed while it is there."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self, x: Any) -> Any:
        if x == 3:
            self.reached.set()
            self.open.wait(20)
        return x

    def numbers(self) -> Iterator[int]:
        for x in range(1000):
            yield self(x)


def slowly(x: Any) -> Any:
    time.sleep(0.001)
    return x


PIPELINES: dict[str, Callable[[Door], Dataset[Any]]] = {
    "inline": lambda door: Dataset.range(1000).map(door),
    "generator": lambda door: Dataset.from_generator(door.numbers),
    "batch": lambda door: Dataset.range(1000).map(door).batch(900),
    "prefetch": lambda door: Dataset.range(1000).map(door).prefetch(2),
    "threads": lambda door: Dataset.range(1000).map(door, num_parallel_calls=2, executor="thread"),
    "auto": lambda door: Dataset.range(1000).map(door, num_parallel_calls=2).prefetch(1),
    "shuffle": lambda door: Dataset.from_generator(door.numbers).shuffle(500, seed=1),
    "external": lambda door: Dataset.from_generator(door.numbers).shuffle(seed=1),
    "filter": lambda door: Dataset.range(1000).filter(lambda x: door(x) < 0),
    "flat_map": lambda door: Dataset.range(9).flat_map(lambda i: Dataset.range(1000).map(door)),
    "interleave": lambda door: Dataset.range(9).interleave(
        lambda i: Dataset.range(1000).map(door), num_parallel_calls=2
    ),
    "skip": lambda door: Dataset.range(1000).map(door, on_error="skip").prefetch(2),
    "cache": lambda door: Dataset.range(1000).map(door).cache(),
}


class Consumer:
    """A thread that takes what there is, and remembers how that ended."""

    def __init__(self, it: Any) -> None:
        self.taken = 0
        self.end: BaseException | None = None
        self._it = it
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                next(self._it)
                self.taken += 1
        except BaseException as error:
            self.end = error

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("name", PIPELINES)
def test_the_thread_in_next_is_told(name: str) -> None:
    door = Door()
    it = iter(PIPELINES[name](door).with_options(fb.Options(block_bytes=1)))
    consumer = Consumer(it)
    assert door.reached.wait(20)
    threading.Timer(0.1, door.open.set).start()
    it.close()
    consumer.join()
    assert isinstance(consumer.end, ClosedError)
    with pytest.raises(ClosedError):
        next(it)
    with pytest.raises(ClosedError):
        it.state_dict()
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("forebay ")]
    assert left == []


def test_close_waits_only_so_long_for_a_function_that_does_not_return(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.iterator._PATIENCE", 0.05)
    door = Door()
    it = iter(Dataset.range(1000).map(door))
    consumer = Consumer(it)
    assert door.reached.wait(20)
    it.close()
    it.close()
    assert consumer.end is None
    door.open.set()
    consumer.join()
    assert isinstance(consumer.end, ClosedError)


def test_long_work_is_given_up() -> None:
    it = iter(Dataset.range(1_000_000).filter(lambda x: slowly(x) < 0))
    consumer = Consumer(it)
    time.sleep(0.05)
    it.close()
    consumer.join()
    assert isinstance(consumer.end, ClosedError)


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_function_may_close_its_own_iterator(executor: Any) -> None:
    def close(x: Any) -> Any:
        if x == 3:
            it.close()
        return x

    it = iter(Dataset.range(1000).map(close, num_parallel_calls=2, executor=executor))
    with pytest.raises(ClosedError, match="closed while next"):
        list(it)


def test_at_any_moment() -> None:
    for i in range(200):
        it = iter(Dataset.range(3000).map(lambda x: x).batch(7).prefetch(1))
        consumer = Consumer(it)
        time.sleep(i * 2e-5)
        it.close()
        consumer.join()
        assert isinstance(consumer.end, ClosedError) or consumer.taken == 429, consumer.end
