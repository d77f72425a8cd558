"""The thread that owns the workers of one executor: it starts them, feeds them, and buries them."""

import os
import selectors
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from forebay.errors import ClosedError, DataError, ForebayError, FunctionError, InternalError
from forebay.ledger import ELSEWHERE, Lease, Ledger
from forebay.run.executor import Job
from forebay.run.process.child import PATIENCE, Child, Launch, Task, end_all
from forebay.run.process.hosts import Guests, Lending, Neighbours, neighbours
from forebay.run.process.remote_error import text_of
from forebay.uninterrupted import uninterrupted

DEATHS = 3
"""So many workers may die on one job before the job is held to be the reason."""
STARTS = 10
"""So many may die in a row before they begin with anything, before that is held to go on for ever."""
# What one gets that has hung up: as good as always it is on its way out, which takes a while on a busy machine.
_FAREWELL = 5.0
# Changes of what workers hold up to this are not worth telling.
_WORTH_COUNTING = 1 << 18

Describe = Callable[..., str]


class Dispatcher:
    """Gives tasks to workers: its own, or those of another one on the same ledger that has no room for more (`hosts`).

    Other threads only append to `pending`, set `workers` and call what is public; everything else, the workers above
    all, belongs to the thread that runs ``run``. There is one at most: whoever submits first starts it, or whoever
    closes ends what never had one, and a lock says which. Neighbours only add to what they have seen running. No other
    lock is waited for, since ``close`` may be called by the garbage collector in the middle of anything, also on that
    very thread.
    """

    def __init__(self, launch: Launch, workers: int, describe: Describe) -> None:
        self.workers = workers
        self.pending: deque[Task] = deque()
        self.name = launch.name
        self.launch = launch
        self.describe = describe
        self._children: list[Child] = []
        self._leaving: list[Child] = []
        self._stillborn: list[str] = []
        self._reason: ForebayError | None = None
        self.lease: Lease | None = None
        """What workers count as. The first is started in any case, others only if there is room for them."""
        self.counted = 0
        self.staying = 0
        """Bytes of the workers that are to stay,"""
        self.largest = 0
        """and of the largest of them."""
        self.hosting = False
        """Whether it has workers, or is about to have the first one."""
        self.guests = Guests()
        self._ledger: Ledger | None = None
        self._moves: deque[tuple[Lease | None, Neighbours]] = deque()
        """Where it is to be counted from now on; no lease if that is where it was before."""
        self._neighbours: Neighbours | None = None
        self._lending = Lending()
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
        self._beginning = threading.RLock()
        """Held by whoever starts the thread, or ends what never had one, never by the thread itself."""
        self._thread: threading.Thread | None = None

    def submit(self, job: Job[Any]) -> None:
        """Have a worker do it. The thread starts with the first job."""
        if self._closing or os.getpid() != self._process:
            raise ClosedError(f"{self.name} is closed")
        self.pending.append(Task(job, self))
        thread = self._thread
        if thread is None or thread.ident is None:
            # Also if another thread is about to start it, which may fail.
            uninterrupted(self._start)
        self._show()

    def add(self, task: Task) -> None:
        """Have a worker do it, whoever it is for. Not for one that has never been seen running."""
        self.pending.append(task)
        self._show()

    def _show(self) -> None:
        # After it is there, and what the thread says before it looks once more: one of the two sees the other.
        if self._hungry or self._reason is not None:
            self.wake()

    @property
    def ended(self) -> bool:
        """Whether all that still comes back to it is dropped."""
        return self._reason is not None

    @property
    def usable(self) -> bool:
        """Whether it takes jobs: not in a forked child, which has a copy of this and no thread."""
        return not self._closing and self._reason is None and os.getpid() == self._process

    @property
    def takes_guests(self) -> bool:
        """Whether others may hand over tasks."""
        return self.hosting and not self._closing and self._reason is None

    def _start(self) -> None:
        with self._beginning:
            if self._thread is not None or self._closing:
                return
            if self._wakeup is None:
                self._wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                self._selector.register(self._wakeup, selectors.EVENT_READ, self._woken)
            # Known before it runs: it may be lent tasks, or be closed, before ``start`` has returned.
            thread = self._thread = threading.Thread(target=self.run, name=f"forebay {self.name}", daemon=True)
            try:
                thread.start()
            except (RuntimeError, MemoryError):
                # There are too many threads; the next job may find fewer.
                self._thread = None
                raise

    def wake(self) -> None:
        """Make the thread look at what has changed."""
        if os.getpid() != self._process:
            return
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
        uninterrupted(self._end_unstarted)
        thread = self._thread
        # One that is just being started, in the midst of which a signal has come that closes, will end by itself.
        if thread is not None and thread is not threading.current_thread() and thread.is_alive():
            thread.join()

    def _end_unstarted(self) -> None:
        with self._beginning:
            if self._thread is None and self._reason is None:
                self._end(ClosedError(f"{self.name} is closed"))

    def count_in(self, ledger: Ledger) -> None:
        """Have what workers hold counted there from now on. Called by whoever submits."""
        there, lease = neighbours(ledger), None
        if ledger is not self._ledger:
            # At once, or whoever comes next would be given the same room. From here on the lease is the thread's.
            self._ledger, lease = ledger, ledger.lease(f"{self.name}{ELSEWHERE}")
            lease.note(self.counted)
            there.add(self)
        self._moves.append((lease, there))
        self.wake()
        if self._reason is not None:
            there.remove(self)

    def _move(self) -> None:
        while self._moves:
            lease, there = self._moves.popleft()
            if lease is not None:
                if self._neighbours is not None:
                    self._neighbours.remove(self)
                self.lease, self._neighbours = lease, there
                lease.note(self.counted)
            self._crowded = False
            self._most = None
            self._lending.host = None

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
        self._move()
        self.guests.part_from_ended(self.pending, self._children)
        for surplus in self._children[self._wanted :]:
            if not surplus.tasks:
                self._retire(surplus)
        while self.pending and not self._closing:
            if not self.hosting and (host := self._find_host()) is not None:
                self._lending.lend(self, host)
                continue
            try:
                child = self._choose()
            except OSError as raised:
                task = self.pending.popleft()
                error = FunctionError(f"{task.home.name}: a worker process cannot be started: {raised}")
                error.__cause__ = raised
                task.finish(None, error)
                continue
            if child is None:
                return
            task = self.pending.popleft()
            try:
                child.send(task)
            except DataError as error:
                task.finish(None, error)
            except BaseException:
                self.pending.appendleft(task)
                raise

    def _find_host(self) -> "Dispatcher | None":
        """Whoever does the tasks, or None once there are to be workers of its own."""
        host = self._lending.find_host(self, self._neighbours)
        if host is None:
            self.hosting = True
            self._most = None
        return host

    def _has_room(self) -> bool:
        return not self.hosting or self._may_start() or any(child.has_room for child in self._children[: self._wanted])

    @property
    def _wanted(self) -> int:
        return self.workers if self._most is None else min(self.workers, self._most)

    def _choose(self) -> Child | None:
        """The worker that has least to do, a new one rather than one that is busy; None if all have enough."""
        free = [child for child in self._children[: self._wanted] if child.has_room]
        best = min(free, key=lambda child: len(child.tasks), default=None)
        if (best is None or best.tasks) and self._may_start() and self._affords_another():
            best = Child(self.launch)
            self._children.append(best)
            self._count()
            self._selector.register(best.socket, selectors.EVENT_READ, partial(self._readable, best))
            self._selector.register(best.pidfd, selectors.EVENT_READ, partial(self._died, best))
        return best

    def _may_start(self) -> bool:
        return len(self._children) < self._wanted and not (self._children and self._crowded)

    def _affords_another(self) -> bool:
        """Whether there is room for one more worker, which will need about as much as the largest there is."""
        if not self._children or self.lease is None or self._neighbours is None:
            return True
        # Asked once: what becomes free later belongs to steps that come and go, and a worker stays.
        self._crowded = not self.lease.ask(self.counted + self._neighbours.largest)
        return not self._crowded

    def _count(self) -> None:
        held = sum(child.memory for child in self._children + self._leaving)
        if self.lease is not None and abs(held - self.counted) > _WORTH_COUNTING:
            self.counted = held
            self.lease.note(held)
            self._note_staying()
            too_much = self._neighbours.too_much(self.lease) if self._neighbours is not None else 0
            if too_much > 0 and self.largest:
                # They were started while there was room, and have grown with what they make.
                self._become_fewer(-(-too_much // self.largest))

    def _note_staying(self) -> None:
        sizes = [child.memory for child in self._children[: self._wanted]]
        self.staying, self.largest = sum(sizes), max(sizes, default=0)

    def _become_fewer(self, by: int) -> None:
        """One is always there, here or with a neighbour."""
        most = min(len(self._children), self._wanted) - by
        if most < 1:
            assert self._neighbours is not None
            most = 0 if self._neighbours.may_leave(self) else 1
        self._most = most
        self._note_staying()

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
                child.ended(PATIENCE)
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
        begun, stillborn = (False, False) if child.stopped else (child.begun, child.stillborn)
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
        self.pending.extendleft(reversed([task for task in child.tasks if not task.dropped]))

    def _give_up(self, task: Task, deaths: list[str], when: str) -> None:
        try:
            what = task.home.describe(*task.job.arguments)
        except BaseException as raised:
            what = f"a call that could not be described: {text_of(raised)}"
        ways = ", ".join(f"{how} ({count} times)" for how, count in Counter(deaths).items())
        text = f"{task.home.name}: the worker process died {len(deaths)} times {when} {what}: {ways}"
        task.finish(None, FunctionError(text))

    def _retire(self, child: Child) -> None:
        self._children.remove(child)
        self._selector.unregister(child.socket)
        child.hang_up()
        self._leaving.append(child)

    def _end(self, reason: ForebayError) -> None:
        self._reason = reason
        if self._neighbours is not None:
            self._neighbours.remove(self)
        while self._moves:
            self._moves.popleft()[1].remove(self)
        children = self._children + self._leaving
        unfinished = [task for child in children for task in child.tasks]
        end_all(children)
        self._children, self._leaving = [], []
        self._count()
        self.pending.extend(unfinished)
        self._drop_pending()
        self._lending.end()
        self._selector.close()
        self.launch.close()
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
            if task.home is self:
                task.finish(None, self._reason)
            elif not task.dropped:
                # It was only lent, and its home will find another place for it.
                task.home.add(task)
