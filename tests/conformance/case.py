"""What a case says, and what one run of it leaves behind."""

from __future__ import annotations

import copy
import functools
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import forebay as fb

Law = Callable[[list[Any]], None]


@dataclass(frozen=True)
class Case:
    """One source or operator, and what has to come out of it."""

    id: str
    build: Callable[[], fb.Dataset[Any]]
    # The elements of epoch 0, or a function that works them out.
    expected: Sequence[Any] | Callable[[], Sequence[Any]] | None = None
    # For random output: raises AssertionError if the elements of an epoch cannot be right.
    law: Law | None = None
    # An endless (or very long) stream is looked at up to here.
    limit: int | None = None
    # The stream ends in this error instead of stopping.
    raises: type[Exception] | None = None
    # Each iter() of one dataset gives another order or other numbers.
    reshuffles: bool = False
    # False: two datasets built alike differ; only the state can tell how to repeat one.
    seeded: bool = True
    # Iterating starts a background thread, and the stream is too long for it to have ended by itself.
    threaded: bool = False
    # The number of elements cannot be known before they are read.
    unknown_length: bool = False
    # Its function shares memory between calls, so it must not be called by two threads at once.
    one_at_a_time: bool = False

    def __post_init__(self) -> None:
        if (self.expected is None) == (self.law is None):
            raise ValueError(f"{self.id}: give either expected or law")
        if self.reshuffles and self.law is None:
            raise ValueError(f"{self.id}: a stream that reshuffles has no one expected list; give a law")

    @property
    def finite(self) -> bool:
        """The stream ends by itself and without an error."""
        return self.limit is None and self.raises is None

    def elements(self) -> list[Any]:
        """What epoch 0 has to be, for cases that can say so."""
        assert self.expected is not None
        return list(self.expected() if callable(self.expected) else self.expected)

    def build_with(self, **options: Any) -> fb.Dataset[Any]:
        return self.build().with_options(fb.Options(**options))


@dataclass(frozen=True)
class Run:
    """Elements as they came (copied at once), and how the stream ended."""

    elements: list[Any]
    # "stop", "limit", or the name of the error class.
    end: str

    def tail(self, k: int) -> Run:
        return Run(self.elements[k:], self.end)


@dataclass(frozen=True)
class Recording:
    """A run with the state before each element, after the last one, and after StopIteration."""

    run: Run
    # states[k] was taken when k elements had been handed out, so there is one more than there are elements.
    states: list[str]
    # Taken after StopIteration; None if the stream has no such end.
    exhausted: str | None


def save(it: Any) -> str:
    """The state as it would stand in a checkpoint file."""
    return json.dumps(it.state_dict(), allow_nan=False)


def drain(it: Iterator[Any], case: Case, done: int = 0) -> Run:
    """Read to the end, to the case's limit (counting `done` elements read before), or to its error."""
    elements = []
    limit = itertools.count() if case.limit is None else range(case.limit - done)
    for _ in limit:
        try:
            element = next(it)
        except StopIteration:
            return Run(elements, "stop")
        except fb.ForebayError as error:
            if case.raises is None or type(error) is not case.raises:
                raise
            return Run(elements, type(error).__name__)
        elements.append(copy.deepcopy(element))
    return Run(elements, "limit")


def run_epoch(dataset: fb.Dataset[Any], case: Case) -> Run:
    with iter(dataset) as it:
        return drain(it, case)


def record(dataset: fb.Dataset[Any], case: Case) -> Recording:
    """One epoch with the state saved at every step."""
    with iter(dataset) as it:
        return record_iterator(it, case)


def record_iterator(it: Any, case: Case) -> Recording:
    elements: list[Any] = []
    states = [save(it)]
    while True:
        if case.limit is not None and len(elements) == case.limit:
            return Recording(Run(elements, "limit"), states, None)
        try:
            element = next(it)
        except StopIteration:
            return Recording(Run(elements, "stop"), states, save(it))
        except fb.ForebayError as error:
            if case.raises is None or type(error) is not case.raises:
                raise
            return Recording(Run(elements, type(error).__name__), states, None)
        elements.append(copy.deepcopy(element))
        states.append(save(it))


@functools.cache
def recorded(case_id: str) -> Recording:
    """The recording of a case under default options: made once per process, and never changed."""
    from conformance.cases import BY_ID

    case = BY_ID[case_id]
    return record(case.build(), case)


def steps(n: int, at_most: int = 200) -> list[int]:
    """Every step of a stream of n elements; of a very long one, the ends and an even spread between."""
    if n < at_most:
        return list(range(n + 1))
    return sorted({0, 1, 2, n - 1, n, *(round(i * n / (at_most - 5)) for i in range(at_most - 5))})


def some_steps(n: int) -> list[int]:
    """A few telling steps: both ends, their neighbours, and two in between."""
    return sorted({k for k in (0, 1, n // 3, 2 * n // 3 + 1, n - 1, n) if 0 <= k <= n})


def resume(dataset: fb.Dataset[Any], state: str) -> Any:
    """A new iterator that stands where the state was saved. The caller closes it."""
    it = iter(dataset)
    it.load_state_dict(json.loads(state))
    return it
