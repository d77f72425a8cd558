"""Worker processes that all cases share: to start some for every case would take longer than the case."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from forebay.errors import ClosedError
from forebay.ledger import Ledger
from forebay.run import process
from forebay.run.executor import Executor, Job
from forebay.run.process import ProcessExecutor
from forebay.run.process.child import Launch

Make = Callable[[], Callable[..., Any]]


def _make_caller() -> Callable[..., Any]:
    """A function that calls others, each of which is made once in a process and may keep something between calls."""
    made: dict[int, Callable[..., Any]] = {}

    def call(number: int, make: Make, *arguments: Any) -> Any:
        if number not in made:
            made[number] = make()
        return made[number](*arguments)

    return call


class Pools:
    """Processes by how many of them there are, started when they are first needed."""

    def __init__(self) -> None:
        self._started: dict[int, ProcessExecutor[Any]] = {}
        self._numbers = itertools.count()

    def lend(self, make: Make, workers: int, name: str, describe: Any = None) -> Borrowed:
        """What a step gets in place of processes of its own."""
        if workers not in self._started:
            self._started[workers] = ProcessExecutor(_make_caller, workers, f"{workers} shared")
        return Borrowed(self._started[workers], next(self._numbers), make, name)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Every step that asks for processes gets these."""
        with mock.patch.object(process, "ProcessExecutor", self.lend):
            yield

    def close(self) -> None:
        while self._started:
            self._started.popitem()[1].close()


class Borrowed(Executor[Any]):
    """One function on processes that serve others as well."""

    kind = "process"

    def __init__(self, processes: ProcessExecutor[Any], number: int, make: Make, name: str) -> None:
        # Whatever cannot be sent is refused at once, and parked workers are told apart, as with processes of its own.
        launch = Launch(make, name)
        self.identity = launch.digest
        launch.close()
        self.workers = processes.workers
        self._processes: ProcessExecutor[Any] | None = processes
        self._function = (number, make)

    def submit(self, *arguments: Any) -> Job[Any]:
        if self._processes is None:
            raise ClosedError("given back")
        self._processes.bell = self.bell
        return self._processes.submit(*self._function, *arguments)

    @property
    def usable(self) -> bool:
        return self._processes is not None

    def count_in(self, ledger: Ledger) -> None:
        """What serves all is in the budget of none."""

    def resize(self, workers: int) -> None:
        assert workers == self.workers

    def close(self) -> None:
        self._processes = None
