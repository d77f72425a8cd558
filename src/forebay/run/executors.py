"""Which workers a step gets."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from forebay.block import Block, Indices
from forebay.errors import PlanError
from forebay.remote_run import RemoteRun, in_force
from forebay.run.auto import AutoExecutor
from forebay.run.comparison import Comparison
from forebay.run.crew import Choice, Crew
from forebay.run.executor import Executor, InlineExecutor, Job, ThreadExecutor
from forebay.run.gil_probe import GilProbe, Seen
from forebay.run.intra_op import limit_intra_op, make_limited
from forebay.run.operator import Setup, Site, elements

R = TypeVar("R")
Make = Callable[[], Callable[..., R]]

ExecutorName = Literal["inline", "thread", "process", "auto"]


def check_executor(call: str, executor: str, names: tuple[str, ...] = get_args(ExecutorName)) -> None:
    """PlanError unless it is one of these names."""
    if not isinstance(executor, str) or executor not in names:
        allowed = ", ".join(map(repr, names))
        raise PlanError(f"{call}(executor={executor!r}): executor must be one of {allowed}")


def start(setup: Setup, site: Site, calls: int | None, kind: str, make: Make[R]) -> Executor[R]:
    """The workers for a step that asked for `calls` of them; none at all if it did not ask."""
    if calls is None or kind == "inline":
        return InlineExecutor(make)
    means = setup.parallelism
    workers = means.workers(calls)
    if means.intra_op is not None and kind in ("thread", "auto"):
        limit_intra_op(means.intra_op)
    threads = partial(ThreadExecutor[R], make, workers, str(site))
    processes = partial(_processes, setup, make, workers, site)
    if kind == "thread":
        return threads()
    if kind == "process":
        try:
            return processes()
        except PlanError as error:
            raise PlanError(
                f'{error}; make inside the function what cannot be sent, or use executor="thread" or "auto"'
            ) from error.__cause__
    parking = means.crew.parking
    choices = parking.choices
    settled = partial(choices.__setitem__, site.key)
    probe = GilProbe(parking.seen.setdefault(site.key, Seen()))
    probed = ThreadExecutor(partial(_make_probed, make, probe), workers, str(site))
    inline = partial(InlineExecutor[R], make)
    comparison = parking.comparisons.setdefault(site.key, Comparison())
    return AutoExecutor(workers, probed, probe, inline, processes, settled, choices.get(site.key), comparison)


class _Leased(Executor[R]):
    """Processes that go back to the crew instead of ending, if they are worth keeping."""

    kind = "process"

    def __init__(self, crew: Crew, processes: Any) -> None:
        self._crew = crew
        self._processes = processes
        self._abandoned = False
        self.workers = processes.workers
        self.worker_bytes = processes.worker_bytes

    def submit(self, *arguments: Any) -> Job[R]:
        """As the processes do."""
        self._processes.bell = self.bell
        return self._processes.submit(*arguments)  # type: ignore[no-any-return]

    def resize(self, workers: int) -> None:
        """As the processes do."""
        self.workers = workers
        self._processes.resize(workers)

    def abandon(self) -> None:
        """Not those that another step, or the next iteration, will take over."""
        if self._processes is not None and not (self.through or self._crew.finished):
            self._abandoned = True
            self._processes.abandon()

    def close(self) -> None:
        """Hand them back, once."""
        if self._processes is not None:
            if self._abandoned:
                self._processes.close()
            else:
                self._crew.release(self._processes, self.through)
            self._processes = None


def _processes(setup: Setup, make: Make[R], workers: int, site: Site) -> Executor[R]:
    # Imported here because it takes a while, and only those who ask for processes need it.
    from forebay.run.process import ProcessExecutor

    crew, intra_op = setup.parallelism.crew, setup.parallelism.intra_op
    if intra_op is not None:
        make = partial(make_limited, make, intra_op)
    make = partial(_make_reading, make, setup.remote)
    new = ProcessExecutor(partial(_make_warmable, make), workers, str(site), _describe)
    parked = crew.parking.take(new.identity)
    if parked is not None:
        new.close()
        parked.resize(workers)
    processes = parked or new
    processes.count_in(setup.ledger)
    return _Leased(crew, processes)


def _make_probed(make: Make[R], probe: GilProbe) -> Callable[..., R]:
    """A function that the probe watches as long as it wants to."""
    function = make()

    def call(*arguments: Any) -> R:
        return probe.watch(function, arguments) if probe.wanted else function(*arguments)

    return call


def _make_reading(make: Make[R], remote: RemoteRun) -> Callable[..., R]:
    """A function that reads files elsewhere as the run does that it works for."""
    with in_force(remote):
        function = make()

    def call(*arguments: Any) -> R:
        with in_force(remote):
            return function(*arguments)

    return call


def _make_warmable(make: Make[R]) -> Callable[..., R | None]:
    """A function that also takes a call without rows, which shows that its process is there."""
    function = make()

    def call(*arguments: Any) -> R | None:
        return function(*arguments) if len(arguments) > 1 else None

    return call


def _describe(block: Block | str, indices: Indices | None = None, epoch: int = 0) -> str:
    if indices is None:
        return "the start of the process"
    return elements(indices)


__all__ = ["Choice", "ExecutorName", "check_executor", "start"]
