"""Executors for tests."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from forebay.run.process import ProcessExecutor


@pytest.fixture
def start() -> Iterator[Callable[..., ProcessExecutor[Any]]]:
    made = []

    def make(make: Any, workers: int = 1, **others: Any) -> ProcessExecutor[Any]:
        made.append(ProcessExecutor(make, workers, "test", **others))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


@pytest.fixture(scope="module")
def call() -> Iterator[Callable[..., Any]]:
    """Calls any function in a worker that the tests share."""
    executor: ProcessExecutor[Any] = ProcessExecutor(lambda: lambda function, *args: function(*args), 1, "shared")
    yield lambda function, *args: executor.submit(function, *args).result()
    executor.close()
