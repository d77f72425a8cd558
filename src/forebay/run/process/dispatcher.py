"""The thread that owns the workers of one executor: it starts them, feeds them, and buries them."""

import os
import selectors
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from forebay.errors import ClosedError, DataError, ForebayError, FunctionError, InternalError
from forebay.ledger import ELSEWHERE, Lease, Ledger
from forebay.run.executor import Job
from forebay.run.process.child import Child, Launch, Task
from forebay.run.process.remote_error import text_of
from forebay.uninterrupted import uninterrupted

DEATHS = 3
"""So many workers may die on one job before the job is held to be the reason."""
STARTS = 10
"""So many may die in a row before they begin with anything, before that is held to go on for ever."""
# What workers get to end by themselves, then after SIGTERM, then after SIGKILL. Together below two seconds.
_PATIENCE = 0.5
# What one gets that has hung up: as good as always it is on its way out, which takes a while on a busy machine.
_FAREWELL = 5.0
# Changes of what workers hold up to this are not worth telling.
_WORTH_COUNTING = 1 << 18

Describe = Callable[..., str]


class Dispatcher:
    """Gives tasks to workers.

    Other threads only append to `pending`, set `workers` and call ``wake`` and ``close``; everything else belongs to
    the thread that runs ``run``. There is no lock to wait for, since ``close`` may be called by the garbage collector
    in the middle of anything, also on that very thread.
    """

    def __init__(self, launch: Launch, workers: int, describe: Describe) -> None:
        self.workers = workers
        self.pending: deque[Task] = deque()
        self.name = launch.name
        self._launch = launch
        self._describe = describe
        self._children: list[Child] = []
        self._leaving: list[Child] = []
        self._stillborn: list[str] = []
        self._reason: ForebayError | None = None
        self.lease: Lease | None = None
        """What workers count as. The first is started in any case, others only if there is room for them."""
        self._counted = 0
        self._crowded = False
        self._most: int | None = None
        """How many workers the budget has room for, once those there are have outgrown it."""
        self._closing = False
        self._hungry = False
        """Whether the thread sleeps, or is about to, though a worker could have one more task."""
        self._process = os.getpid()
        self._selector = selectors.DefaultSelector()
        self._wakeup: int | None = None
        self._waking = threading.RLock()
        self._thread: threading.Thread | None = None

    def submit(self, job: Job[Any]) -> None:
        """Have a worker do it. The thread starts with the first job."""
        if self._closing or os.getpid() != self._process:
            raise ClosedError(f"{self.name} is closed")
        self.pending.append(Task(job))
        if self._thread is None:
            uninterrupted(self._start)
        elif self._hungry or self._reason is not None:
            self.wake()

    def _start(self) -> None:
        if self._wakeup is None:
            self._wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._selector.register(self._wakeup, selectors.EVENT_READ, self._woken)
        thread = threading.Thread(target=self.run, name=f"forebay {self.name}", daemon=True)
        thread.start()
        self._thread = thread

    def wake(self) -> None:
        """Make the thread look at what has changed."""
        with self._waking:
            if self._wakeup is not None:
                os.eventfd_write(self._wakeup, 1)
        if self._reason is not None:
            self._drop_pending()

    def abandon(self) -> None:
        """Have the thread end all workers, busy or not. ``close`` waits for that."""
        if os.getpid() == self._process:
            self._closing = True
            self.wake()

    def close(self) -> None:
        """End all workers and the thread. In a forked child there is neither, and nothing is done."""
        if os.getpid() != self._process:
            return
        self._closing = True
        self.wake()
        if self._thread is None:
            if self._reason is None:
                uninterrupted(lambda: self._end(ClosedError(f"{self.name} is closed")))
        elif threading.current_thread() is not self._thread:
            self._thread.join()

    def count_in(self, ledger: Ledger) -> None:
        """Have what workers hold counted there from now on."""
        lease = ledger.lease(f"{self.name}{ELSEWHERE}")
        lease.note(self._counted)
        self._crowded = False
        self._most = None
        self.lease = lease

    def run(self) -> None:
        """The thread's whole life."""
        # Workers inherit this and so cannot be interrupted before they are ready to ignore interrupts.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        reason: ForebayError = ClosedError(f"{self.name} is closed")
        try:
            while not self._closing:
                self._dispatch()
                # Said before looking once more: a task that comes later comes with a call of ``wake``.
                self._hungry = self._has_room()
                if not (self._hungry and self.pending):
                    for key, _ in self._selector.select():
                        key.data()
                self._hungry = False
        except BaseException as raised:
            reason = InternalError(f"{self.name}: {text_of(raised)}")
            reason.__cause__ = raised
        finally:
            self._end(reason)

    def _woken(self) -> None:
        with self._waking:
            if self._wakeup is not None:
                os.eventfd_read(self._wakeup)

    def _dispatch(self) -> None:
        for surplus in self._children[self._wanted :]:
            if not surplus.tasks:
                self._retire(surplus)
        while self.pending and not self._closing:
            try:
                child = self._choose()
            except OSError as raised:
                error = FunctionError(f"{self.name}: a worker process cannot be started: {raised}")
                error.__cause__ = raised
                self.pending.popleft().job.finish(None, error, 0.0)
                continue
            if child is None:
                return
            task = self.pending.popleft()
            try:
                child.send(task)
            except DataError as error:
                task.job.finish(None, error, 0.0)

    def _has_room(self) -> bool:
        return self._may_start() or any(child.has_room for child in self._children[: self._wanted])

    @property
    def _wanted(self) -> int:
        return self.workers if self._most is None else min(self.workers, self._most)

    def _choose(self) -> Child | None:
        """The worker that has least to do, a new one rather than one that is busy; None if all have enough."""
        free = [child for child in self._children[: self._wanted] if child.has_room]
        best = min(free, key=lambda child: len(child.tasks), default=None)
        if (best is None or best.tasks) and self._may_start() and self._affords_another():
            best = Child(self._launch)
            self._children.append(best)
            self._count()
            self._selector.register(best.socket, selectors.EVENT_READ, _call(self._readable, best))
            self._selector.register(best.pidfd, selectors.EVENT_READ, _call(self._died, best))
        return best

    def _may_start(self) -> bool:
        return len(self._children) < self._wanted and not (self._children and self._crowded)

    def _affords_another(self) -> bool:
        """Whether there is room for one more worker, which will need about as much as the largest there is."""
        if not self._children or self.lease is None:
            return True
        more = max(child.memory for child in self._children)
        # Asked once: what becomes free later belongs to steps that come and go, and a worker stays.
        self._crowded = not self.lease.ask(self._counted + more)
        return not self._crowded

    def _count(self) -> None:
        held = sum(child.memory for child in self._children + self._leaving)
        if self.lease is not None and abs(held - self._counted) > _WORTH_COUNTING:
            self._counted = held
            self.lease.note(held)
            if held > self.lease.budget and self._children:
                # They were started while there was room, and have grown with what they make. One is always there.
                most = max(1, self.lease.budget // max(child.memory for child in self._children))
                self._most = min(most, self._wanted)

    def _readable(self, child: Child) -> None:
        if child not in self._children:
            return
        received = child.receive()
        if received:
            self._stillborn.clear()
            self._count()
        elif received is False:
            # Gone, going, or cut off by a function that closed what was not its own.
            until = time.monotonic() + _FAREWELL
            while not child.ended(0.1) and time.monotonic() < until and not self._closing:
                pass
            if not child.ended(0):
                child.stop(signal.SIGKILL)
                child.ended(_PATIENCE)
            self._died(child)

    def _died(self, child: Child) -> None:
        if child in self._leaving:
            self._leaving.remove(child)
        elif child in self._children:
            while child.receive():
                pass
            self._children.remove(child)
            self._selector.unregister(child.socket)
        else:
            return
        self._selector.unregister(child.pidfd)
        begun, stillborn = child.begun, child.stillborn
        how = child.bury()
        self._count()
        if begun:
            deaths = child.tasks[0].deaths
            deaths.append(how)
            if len(deaths) >= DEATHS:
                self._give_up(child.tasks.popleft(), deaths, "on")
        elif stillborn and child.tasks:
            self._stillborn.append(how)
            if len(self._stillborn) >= STARTS:
                self._give_up(child.tasks.popleft(), self._stillborn, "before it could begin with")
        self.pending.extendleft(reversed(child.tasks))

    def _give_up(self, task: Task, deaths: list[str], when: str) -> None:
        try:
            what = self._describe(*task.job.arguments)
        except Exception as raised:
            what = f"a call that could not be described: {text_of(raised)}"
        ways = ", ".join(f"{how} ({count} times)" for how, count in Counter(deaths).items())
        text = f"{self.name}: the worker process died {len(deaths)} times {when} {what}: {ways}"
        task.job.finish(None, FunctionError(text), 0.0)

    def _retire(self, child: Child) -> None:
        self._children.remove(child)
        self._selector.unregister(child.socket)
        child.hang_up()
        self._leaving.append(child)

    def _end(self, reason: ForebayError) -> None:
        self._reason = reason
        children = self._children + self._leaving
        unfinished = [task for child in children for task in child.tasks]
        for child in children:
            if child.tasks or child.stillborn:
                # One that is still importing would only notice afterwards that nobody wants it any more.
                child.stop(signal.SIGTERM)
            child.hang_up()
        for how in (signal.SIGTERM, signal.SIGKILL, None):
            until = time.monotonic() + _PATIENCE
            for child in children:
                if not child.ended(max(0.0, until - time.monotonic())) and how is not None:
                    child.stop(how)
        for child in children:
            child.bury()
        self._children, self._leaving = [], []
        self._count()
        for task in unfinished:
            task.job.finish(None, reason, 0.0)
        self._drop_pending()
        self._selector.close()
        self._launch.close()
        with self._waking:
            if self._wakeup is not None:
                os.close(self._wakeup)
                self._wakeup = None

    def _drop_pending(self) -> None:
        while self.pending:
            try:
                task = self.pending.popleft()
            except IndexError:
                return
            task.job.finish(None, self._reason, 0.0)


def _call(method: Callable[[Child], None], child: Child) -> Callable[[], Any]:
    return lambda: method(child)
