"""Workers that run one function on many inputs, at the same time and in no particular order."""

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from forebay.errors import ClosedError

R = TypeVar("R")
Function = Callable[..., R]


class Job(Generic[R]):
    """One call, handed to a worker."""

    __slots__ = ("_done", "_error", "_result", "arguments", "seconds")

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self.seconds = 0.0
        """How long the worker was busy with it, once it is done."""
        self._done = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    @property
    def done(self) -> bool:
        """Whether there is a result, or an error."""
        return self._done.is_set()

    def finish(self, result: R | None, error: BaseException | None, seconds: float) -> None:
        """Called by the worker."""
        self._result, self._error, self.seconds = result, error, seconds
        self._done.set()

    def result(self) -> R:
        """Wait for the result; raises what the function raised."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[no-any-return]


class Executor(ABC, Generic[R]):
    """Runs a function on workers of its own. Used, resized and closed by one thread."""

    workers: int

    @abstractmethod
    def submit(self, *arguments: Any) -> Job[R]:
        """Have a worker call the function; returns at once."""

    @abstractmethod
    def resize(self, workers: int) -> None:
        """Go over to that many workers; those too many end after the call they are on."""

    @abstractmethod
    def close(self) -> None:
        """End all workers, and return once they have ended. Jobs that nobody has begun are dropped."""


class InlineExecutor(Executor[R]):
    """No worker at all: the caller runs the function when it asks for it."""

    workers = 0

    def __init__(self, make: Callable[[], Function[R]]) -> None:
        self._function = make()

    def submit(self, *arguments: Any) -> Job[R]:
        """Run it now."""
        job: Job[R] = Job(arguments)
        run_job(self._function, job)
        return job

    def resize(self, workers: int) -> None:
        """There is nothing to resize."""

    def close(self) -> None:
        """There is nothing to end."""


class ThreadExecutor(Executor[R]):
    """Threads, each with a function of its own from `make`, so that functions may keep things between calls."""

    def __init__(self, make: Callable[[], Function[R]], workers: int, name: str) -> None:
        self._make = make
        self._name = name
        self._jobs: deque[Job[R]] = deque()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False
        self.workers = workers

    def submit(self, *arguments: Any) -> Job[R]:
        """A thread is started only when all there are have something to do."""
        job: Job[R] = Job(arguments)
        with self._changed:
            if self._closed:
                raise ClosedError(f"{self._name} is closed")
            self._jobs.append(job)
            if self._idle < len(self._jobs) and len(self._threads) < self.workers:
                thread = threading.Thread(target=self._run, name=f"forebay {self._name}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        return job

    def resize(self, workers: int) -> None:
        """Threads too many end when they come back for more."""
        with self._changed:
            self.workers = workers
            self._changed.notify_all()

    def close(self) -> None:
        """Join every thread, except the one that this may be called on."""
        with self._changed:
            self._closed = True
            self._jobs.clear()
            threads = list(self._threads)
            self._changed.notify_all()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()

    def _run(self) -> None:
        function = self._make()
        while (job := self._next()) is not None:
            run_job(function, job)

    def _next(self) -> Job[R] | None:
        with self._changed:
            self._idle += 1
            while not self._jobs and not self._surplus():
                self._changed.wait()
            self._idle -= 1
            if self._surplus():
                self._threads.remove(threading.current_thread())
                return None
            return self._jobs.popleft()

    def _surplus(self) -> bool:
        return self._closed or len(self._threads) > self.workers


def run_job(function: Function[R], job: Job[R]) -> None:
    """Call the function and finish the job, whatever happens."""
    began = time.perf_counter()
    result: R | None = None
    error: BaseException | None = None
    try:
        result = function(*job.arguments)
    except BaseException as raised:
        error = raised
    job.finish(result, error, time.perf_counter() - began)
