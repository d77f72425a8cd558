"""`executor="auto"`: threads where a function scales on them, processes where it does not."""

import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from forebay.errors import ClosedError, PlanError, TransferError
from forebay.run.comparison import Comparison
from forebay.run.crew import Choice
from forebay.run.executor import Executor, Job, R
from forebay.run.gil_probe import GilProbe
from forebay.run.hesitation import WORTH

# A function that holds the interpreter lock for more than this share of its time gains little from threads.
_HOLDS = 0.6
# A function that mostly waits scales on threads, whatever it does in between.
_BUSY = 0.5
# An element that takes less than this is handed over and back in about the time of a call.
_TRIFLE = 1e-6
# Chunks that a step has under way for every worker.
_AHEAD = 2

WARM_UP = "warm up"


class AutoExecutor(Executor[R]):
    """Measures real chunks on one thread and settles on what suits the function.

    Chunks are measured, never made twice: whatever runs them, their results are the same. `threads` have a function
    that the `probe` watches. `settled` hears of the choice, so that the next iteration begins with it. Processes that
    turn out, by `comparison`, to bring less than no workers at all are given up again.
    """

    def __init__(
        self,
        workers: int,
        threads: Executor[R],
        probe: GilProbe,
        inline: Callable[[], Executor[R]],
        processes: Callable[[], Executor[R]],
        settled: Callable[[Choice], None],
        choice: Choice | None,
        comparison: Comparison | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._asked = self._most = workers
        self._threads = self._current = threads
        self._make_inline = inline
        self._make_processes = processes
        self._settled = settled
        self._warming: tuple[Executor[R], list[Job[R]]] | None = None
        self._probe = probe
        self._choice: Choice | None = None
        self._last_on_threads: Job[R] | None = None
        self._abandoned = False
        self._processes: Executor[R] | None = None
        self._comparison = comparison or Comparison()
        self._clock = clock
        self._under_way = 0
        threads.resize(1)
        if choice is not None:
            self._settle(choice)
        else:
            probe.start()

    @property
    def workers(self) -> int:  # type: ignore[override]
        """As many as the executor in use has."""
        return self._current.workers

    @property
    def kind(self) -> str:  # type: ignore[override]
        """What is in use at the moment."""
        return self._current.kind

    @property
    def bell(self) -> "SimpleQueue[None] | None":
        """Rung by whichever executor is in use."""
        return self._threads.bell

    @bell.setter
    def bell(self, bell: "SimpleQueue[None] | None") -> None:
        for each in (self._threads, self._current, self._processes):
            if each is not None:
                each.bell = bell

    def submit(self, *arguments: Any) -> Job[R]:
        """Also looks at what has been finished since."""
        if self._choice is None and self._probe.seen.enough:
            self._settle(self._verdict())
        elif self._warming is not None:
            self._switch_if_warm()
        self._under_way += 1
        job = self._current.submit(*arguments)
        if self._current is self._threads:
            self._last_on_threads = job
        elif self._last_on_threads is not None and self._last_on_threads.done:
            # Not before: threads that are let go leave behind what they have not begun.
            self._last_on_threads = None
            self._threads.resize(0)
        return job

    def again(self, job: Job[R], error: TransferError | ClosedError) -> Job[R] | None:
        """What cannot go to a process and back is done on a thread, and so is everything after it.

        The first such job ends the processes, and with them the jobs that they were on.
        """
        if self._abandoned:
            return None
        if self._current is not self._threads and isinstance(error, TransferError):
            self._end_processes()
            self._current = self._threads
            self._threads.resize(1)
            self._choice = Choice("thread", f"it holds the interpreter lock, but processes are no way out: {error}")
            self._settled(self._choice)
        return self._threads.submit(*job.arguments)

    def observe(self, rows: int, waited: float) -> None:
        """Also compares what processes bring with what would come without."""
        # Those that a seek has dropped never come: no more are under way than the step asks for ahead.
        self._under_way = min(max(self._under_way - 1, 0), _AHEAD * max(self._most, 1))
        comparison, seen = self._comparison, self._probe.seen
        if self._processes is None or comparison.verdict is not None or not seen.seconds:
            return
        if not comparison.observe(self._clock(), rows, waited, seen.rows / seen.seconds):
            return
        if comparison.verdict:
            # All that they were given has come back: turns begin with that.
            self._end_processes()
            self._settle(Choice("inline", comparison.verdict))
        elif comparison.alone:
            self._current = self._made_inline()
            comparison.begin(self._under_way)
        else:
            self._current = self._processes
            self._current.resize(self._most)
            comparison.begin(self._under_way + _AHEAD * self._most)

    def resize(self, workers: int) -> None:
        """Takes effect once it has settled; measuring needs one thread."""
        self._most = workers
        if self._choice is not None and self._warming is None and self._choice.kind != "inline":
            self._current.resize(workers)
            if self._current is self._processes:
                # What fewer or more of them have brought does not count.
                self._comparison.begin(self._under_way + _AHEAD * workers)

    def abandon(self) -> None:
        """Processes, also those that are being started."""
        self._abandoned = True
        warming = self._warming
        processes = self._processes if warming is None else warming[0]
        for each in {id(each): each for each in (self._current, processes)}.values():
            if each is not None:
                each.through = self.through
                each.abandon()

    def close(self) -> None:
        """End whatever there is."""
        self._probe.stop()
        if self._warming is not None:
            self._warming[0].close()
        self._end_processes()
        self._threads.close()

    def _verdict(self) -> Choice:
        seen = self._probe.seen
        busy, held, cost = seen.cpu / seen.seconds, seen.held, seen.cpu / seen.rows
        if self._asked == 1:
            return Choice("thread", "one worker was asked for, or there is one processor")
        if busy < _BUSY:
            return Choice("thread", f"it waits {1 - busy:.0%} of its time")
        if cost * seen.most_rows < WORTH and held < _HOLDS:
            block = f"{cost * seen.most_rows * 1e3:.2g} ms"
            return Choice("inline", f"a block takes {block}, and to hand it to a thread would add to that")
        if held < _HOLDS:
            return Choice("thread", f"it leaves the interpreter lock to others for {1 - held:.0%} of its time")
        if cost < _TRIFLE:
            return Choice("inline", f"it holds the interpreter lock, and {cost * 1e6:.2f} µs an element is a trifle")
        return Choice("process", f"it holds the interpreter lock for {held:.0%} of its time")

    def _settle(self, choice: Choice) -> None:
        self._probe.stop()
        if choice.kind == "process":
            try:
                processes = self._make_processes()
            except PlanError as error:
                self._most = 1
                choice = Choice("thread", f"it holds the interpreter lock, but processes are no way out: {error}")
            else:
                # One thread goes on until the processes are there.
                self._threads.resize(1)
                self._warming = processes, [processes.submit(WARM_UP) for _ in range(self._most)]
        if choice.kind == "inline":
            self._current = self._made_inline()
        elif choice.kind == "thread":
            self._current.resize(self._most)
        self._choice = choice
        self._settled(choice)

    def _switch_if_warm(self) -> None:
        assert self._warming is not None
        processes, jobs = self._warming
        if all(job.done for job in jobs):
            self._warming = None
            processes.bell = self._threads.bell
            processes.resize(self._most)
            self._current = self._processes = processes
            # The turn that an iteration before this has ended in begins again; that of the thread alone is not first.
            self._comparison.alone = False
            self._comparison.begin(self._under_way + _AHEAD * self._most)

    def _made_inline(self) -> Executor[R]:
        inline = self._make_inline()
        inline.bell = self._threads.bell
        return inline

    def _end_processes(self) -> None:
        if self._processes is not None:
            self._processes.through = self.through
            self._processes.close()
            self._processes = None
