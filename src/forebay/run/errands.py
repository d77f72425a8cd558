"""A thread that does one job after another for its owner."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from forebay.run.leaving import join
from forebay.uninterrupted import take, uninterrupted

T = TypeVar("T")


class Errand(Generic[T]):
    """A job that was handed over."""

    def __init__(self, job: Callable[[], T]) -> None:
        self._job: Callable[[], T] | None = job
        self._answer: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def run(self) -> None:
        """Do it, on the thread."""
        job, self._job = self._job, None
        assert job is not None
        try:
            self._answer.put((job(), None))
        except BaseException as error:
            self._answer.put((None, error))

    @property
    def done(self) -> bool:
        """Whether ``result`` would return at once."""
        return not self._answer.empty()

    def result(self) -> T:
        """What came of it, once; waits for it, and raises what it raised."""
        value, error = take(self._answer)
        if error is not None:
            raise error
        return value  # type: ignore[return-value]


class Errands:
    """Jobs are done in the order in which they come. The thread begins with the first one."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Errand[Any] | None] = SimpleQueue()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"forebay {name}", daemon=True)

    def do(self, job: Callable[[], T]) -> Errand[T]:
        """Hand over a job."""
        if self._thread.ident is None:
            uninterrupted(self._thread.start)
        errand = Errand(job)
        self._jobs.put(errand)
        return errand

    def stop(self) -> None:
        """Returns once the thread has ended, after the job it is on; those behind it are dropped."""
        self._stopping = True
        self._jobs.put(None)
        if self._thread.ident is not None:
            join(self._thread)

    def _run(self) -> None:
        while (errand := self._jobs.get()) is not None and not self._stopping:
            errand.run()
            # Or what it refers to would stay in memory until the next one comes.
            del errand
