"""Calls in worker processes, for functions that keep the interpreter busy."""

from collections.abc import Callable
from typing import Any

from forebay.errors import PlanError
from forebay.ledger import Ledger
from forebay.run.collected import close_when_collected
from forebay.run.executor import Executor, Function, Job, R
from forebay.run.process.child import TYPICAL, Launch
from forebay.run.process.dispatcher import Describe, Dispatcher
from forebay.run.process.remote_error import shown_value


class ProcessExecutor(Executor[R]):
    """Processes, each with a function of its own from `make`.

    `make` may be anything that cloudpickle can send, lambdas and closures included. Array memory crosses through
    shared segments. A worker that dies is replaced and its job is done again; a job on which three workers have died
    fails, and `describe`, called with the job's arguments, says in the error what it was about. It must not refer to
    whoever holds the executor, or neither can be garbage collected.

    `identity` is a digest of what is sent to the workers: executors with the same one do the same.

    Nothing is started before the first job. Pending jobs fail with ClosedError when the executor is closed.
    """

    kind = "process"
    worker_bytes = TYPICAL

    def __init__(
        self, make: Callable[[], Function[R]], workers: int, name: str, describe: Describe | None = None
    ) -> None:
        launch = Launch(make, name)
        self.identity = launch.digest
        self._dispatcher = Dispatcher(launch, _checked(workers, name), describe or _describe)
        # Also runs at interpreter exit. The dispatcher's thread does not refer to this object, so that it can go away.
        self._finalizer = close_when_collected(self, self._dispatcher.close)
        self.workers = workers

    def submit(self, *arguments: Any) -> Job[R]:
        """A worker is started only when all there are have something to do."""
        job: Job[R] = Job(arguments, self.bell)
        self._dispatcher.submit(job)
        return job

    @property
    def usable(self) -> bool:
        """Whether jobs can be submitted: neither after the end, nor in a child that was forked since."""
        return self._dispatcher.usable

    def count_in(self, ledger: Ledger) -> None:
        """Have what the workers hold counted there."""
        self._dispatcher.count_in(ledger)

    def resize(self, workers: int) -> None:
        """Workers too many end when they are done with what they have."""
        self.workers = self._dispatcher.workers = _checked(workers, self._dispatcher.name)
        self._dispatcher.wake()

    def abandon(self) -> None:
        """End all workers, without waiting for that."""
        self._dispatcher.abandon()

    def close(self) -> None:
        """End all workers, busy or not, within two seconds."""
        self._dispatcher.close()
        # Not before: should this be interrupted, the interpreter's exit still closes it.
        self._finalizer.detach()


def _checked(workers: int, name: str) -> int:
    if workers < 1:
        raise PlanError(f"{name}: {workers} worker processes: there must be at least 1")
    return workers


def _describe(*arguments: Any) -> str:
    return f"the call with {', '.join(map(shown_value, arguments)) or 'no arguments'}"
