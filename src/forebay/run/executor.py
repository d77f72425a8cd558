"""Workers that run one function on many inputs, at the same time and in no particular order."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from forebay._native import queued_seconds
from forebay.errors import ClosedError, TransferError
from forebay.run.cpus import share_heaps
from forebay.run.leaving import join
from forebay.uninterrupted import GLANCE, uninterrupted

R = TypeVar("R")
Function = Callable[..., R]

# Seconds after which a thread may have had to wait for a processor.
_SOME_TIME = 0.002


class Job(Generic[R]):
    """One call, handed to a worker."""

    __slots__ = ("_bell", "_error", "_result", "_running", "arguments", "cpu", "done", "seconds")

    def __init__(self, arguments: tuple[Any, ...], bell: "SimpleQueue[None] | None" = None) -> None:
        self.arguments = arguments
        self.seconds = 0.0
        """How long the worker was busy with it, once it is done."""
        self.cpu = 0.0
        """How much of that it was computing, or would have been, had there been a processor for it."""
        self._bell = bell
        self.done = False
        """Whether there is a result, or an error."""
        self._result: Any = None
        self._error: BaseException | None = None
        # Not an Event: a Ctrl-C in its Python code can leave it locked, and the worker would hang in `finish`.
        self._running = threading.Lock()
        self._running.acquire()

    def finish(self, result: R | None, error: BaseException | None, seconds: float = 0.0, cpu: float = 0.0) -> None:
        """Called by the worker, once."""
        self._result, self._error, self.seconds, self.cpu = result, error, seconds, cpu
        self.done = True
        self._running.release()
        if self._bell is not None:
            # Not the job: who finds another one done does not come by here for long, and all results would be kept.
            self._bell.put(None)

    def wait(self) -> None:
        """Until it is done. May be interrupted, and called again."""
        while not self.done:
            if self._running.acquire(timeout=GLANCE):
                self._running.release()

    def result(self) -> R:
        """Wait for the result; raises what the function raised. May be interrupted, and called again."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[no-any-return]


class Executor(ABC, Generic[R]):
    """Runs a function on workers of its own. Used, resized and closed by one thread."""

    workers: int
    kind: str
    """What the workers are."""
    worker_bytes = 0
    """What each takes up by itself."""
    bell: "SimpleQueue[None] | None" = None
    """Where jobs submitted from now on leave a notice when they are done, for whoever waits for any of them."""
    through: bool = False
    """Whether the step has come to its end, so that workers may be of use to another one of its kind."""

    @abstractmethod
    def submit(self, *arguments: Any) -> Job[R]:
        """Have a worker call the function; returns at once."""

    def again(self, job: Job[R], error: TransferError | ClosedError) -> Job[R] | None:
        """Another try for a job that could not be handed over, or None if there is no other way."""
        return None

    def observe(self, rows: int, waited: float) -> None:
        """The step has taken a result, made of so many rows; so long it has waited for results in all."""

    @abstractmethod
    def resize(self, workers: int) -> None:
        """Go over to that many workers; those too many end after the call they are on."""

    def abandon(self) -> None:
        """Have calls that are under way fail with ClosedError, if workers can be made to stop. Returns at once."""

    @abstractmethod
    def close(self) -> None:
        """End all workers, and return once they have ended. Jobs that nobody has begun fail with ClosedError."""


class InlineExecutor(Executor[R]):
    """No worker at all: the caller runs the function when it asks for it."""

    workers = 0
    kind = "inline"

    def __init__(self, make: Callable[[], Function[R]]) -> None:
        self._function = make()

    def submit(self, *arguments: Any) -> Job[R]:
        """Run it now."""
        job: Job[R] = Job(arguments, self.bell)
        run_job(self._function, job, _no_clock)
        return job

    def resize(self, workers: int) -> None:
        """There is nothing to resize."""

    def close(self) -> None:
        """There is nothing to end."""


class ThreadExecutor(Executor[R]):
    """Threads, each with a function of its own from `make`, so that functions may keep things between calls.

    The caller and the threads share a queue and a plain lock, neither of which a Ctrl-C can leave half-way, as it can
    a Condition.
    """

    kind = "thread"

    def __init__(self, make: Callable[[], Function[R]], workers: int, name: str) -> None:
        self._make = make
        self._name = name
        self._jobs: SimpleQueue[Job[R] | None] = SimpleQueue()
        """None stands for: see whether you are still wanted."""
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._unfinished = 0
        self._closed = False
        self._context = copy_context()  # Says, among other things, how files elsewhere are read.
        self.workers = workers

    def submit(self, *arguments: Any) -> Job[R]:
        """A thread is started only when all there are have something to do."""
        if self._closed:
            raise ClosedError(f"{self._name} is closed")
        job: Job[R] = Job(arguments, self.bell)
        with self._lock:
            self._unfinished += 1
            more = len(self._threads) < min(self.workers, self._unfinished)
        if more:
            uninterrupted(self._start)
        self._jobs.put(job)
        return job

    def resize(self, workers: int) -> None:
        """Threads too many end when they come back for more."""
        self.workers = workers
        self._look_around()

    def close(self) -> None:
        """Join every thread, except the one that this may be called on."""
        self._closed = True
        self._look_around()
        for thread in list(self._threads):
            join(thread)
        with suppress(Empty):
            while True:
                self._drop(self._jobs.get_nowait())

    def _start(self) -> None:
        share_heaps()
        thread = threading.Thread(
            target=self._context.copy().run, args=(self._run,), name=f"forebay {self._name}", daemon=True
        )
        with self._lock:
            thread.start()
            self._threads.append(thread)

    def _look_around(self) -> None:
        for _ in list(self._threads):
            self._jobs.put(None)

    def _run(self) -> None:
        function = _made(self._make)
        clock = _Clock()
        while not self._surplus():
            job = self._jobs.get()
            if self._closed:
                self._drop(job)
            elif job is not None:
                run_job(function, job, clock)
                with self._lock:
                    self._unfinished -= 1
            # Or its result, or the frames that its error leads to, would stay until the next one comes.
            del job

    def _drop(self, job: Job[R] | None) -> None:
        if job is not None:
            job.finish(None, ClosedError(f"{self._name} is closed"), 0.0)

    def _surplus(self) -> bool:
        with self._lock:
            if not self._closed and len(self._threads) > self.workers:
                self._threads.remove(threading.current_thread())
                return True
            return self._closed


def _made(make: Callable[[], Function[R]]) -> Function[R]:
    """The function; if it cannot be made, one that says so whenever it is called, so that no job waits for ever."""
    try:
        return make()
    except BaseException as raised:
        error = raised

        def refuse(*_: Any) -> R:
            raise error

        return refuse


class _Clock:
    """The time that a thread has computed or been ready to. Without the latter, a busy machine looks like functions
    that wait for something, for which more workers would be of use.
    """

    def __init__(self) -> None:
        self._queued = self._looked = 0.0

    def __call__(self) -> float:
        now = time.perf_counter()
        # To look takes a few system calls: too many for a short job, whose thread has hardly lost its processor.
        if now - self._looked > _SOME_TIME:
            self._looked, self._queued = now, queued_seconds()
        return time.thread_time() + self._queued


def _no_clock() -> float:
    """Where the caller computes by itself nobody asks for it, and asking the system takes as long as some rows do."""
    return 0.0


def run_job(function: Function[R], job: Job[R], clock: Callable[[], float]) -> None:
    """Call the function and finish the job, whatever happens."""
    began, cpu = time.perf_counter(), clock()
    result: R | None = None
    error: BaseException | None = None
    try:
        result = function(*job.arguments)
    except BaseException as raised:
        error = raised
    job.finish(result, error, time.perf_counter() - began, clock() - cpu)
