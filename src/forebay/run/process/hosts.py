"""Executors of one budget that do with the workers of another, where there is no room for any of their own.

A worker takes some 24 MiB before it has done anything. The first one cannot be refused, or nothing would move; but of
several executors on one ledger, those of one pipeline or of pipelines that share it, only one has to have it. Others
hand their tasks over: a worker can have several functions, each of which is called with rows of its own executor.
"""

import os
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING

from forebay.errors import ClosedError
from forebay.ledger import Lease, Ledger
from forebay.run.process.child import FIRST, Child, Task

if TYPE_CHECKING:
    from forebay.run.process.dispatcher import Dispatcher

# Blocks come and go, and a worker that has ended for want of room does not come back: so much of the budget, an eighth,
# may be exceeded for a while.
_SLACK = 8


class Neighbours:
    """The dispatchers that count their workers in one ledger.

    Their threads alone ask who hosts whom, one at a time: two that find no room would otherwise both start a worker, or
    both rely on the other one's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: dict[int, Dispatcher] = {}

    def add(self, member: "Dispatcher") -> None:
        """From any thread, as ``remove``: neither takes a lock."""
        self._members[id(member)] = member

    def remove(self, member: "Dispatcher") -> None:
        """It hosts nobody here from now on."""
        self._members.pop(id(member), None)

    def too_much(self, lease: Lease) -> int:
        """Bytes of workers that the budget has no room for, beside what steps cannot do without."""
        members = list(self._members.values())
        workers = sum(member.staying for member in members)
        others = lease.of_all - sum(member.counted for member in members)
        return max(workers, workers + others - lease.budget // _SLACK) - lease.budget

    @property
    def largest(self) -> int:
        """Bytes of the largest worker, which others will take too; at least what is expected of any."""
        return max([FIRST, *(member.largest for member in list(self._members.values()))])

    def host_for(self, guest: "Dispatcher") -> "Dispatcher | None":
        """Who has workers for its tasks; None if there is room for one of its own, or nobody else has any.

        It hosts from then on.
        """
        with self._lock:
            hosts = self._others(guest)
            assert guest.lease is not None
            if hosts and not guest.lease.ask(guest.counted + self.largest):
                return min(hosts, key=lambda host: len(host.pending))
            # Before it is there: the next one to ask must not be given the same room.
            guest.lease.note(guest.counted + self.largest)
            guest.hosting = True
            return None

    def may_leave(self, host: "Dispatcher") -> bool:
        """Whether it can do without workers of its own from now on, since others have some."""
        with self._lock:
            if self._others(host):
                host.hosting = False
            return not host.hosting

    def _others(self, than: "Dispatcher") -> "list[Dispatcher]":
        members = list(self._members.values())
        return [
            member
            for member in members
            if member is not than and member.takes_guests and member.launch.runs_like(than.launch)
        ]


_of: "weakref.WeakKeyDictionary[Ledger, dict[int, Neighbours]]" = weakref.WeakKeyDictionary()


def neighbours(ledger: Ledger) -> Neighbours:
    """Those of a ledger, in this process: a forked child has a copy of those of its parent, but not their threads."""
    return _of.setdefault(ledger, {}).setdefault(os.getpid(), Neighbours())


class Lending:
    """What a dispatcher has others do. For its thread alone."""

    def __init__(self) -> None:
        self.host: Dispatcher | None = None
        self._lent: list[tuple[Task, Dispatcher]] = []

    def find_host(self, guest: "Dispatcher", among: Neighbours | None) -> "Dispatcher | None":
        """Whoever does its tasks; None if it is to have workers of its own."""
        if self.host is None or not self.host.takes_guests:
            self.host = among.host_for(guest) if among is not None else None
            if self.host is not None:
                self.host.guests.add(guest)
        return self.host

    def lend(self, guest: "Dispatcher", host: "Dispatcher") -> None:
        """Hand over all that it has to do, or back what others had handed over to it."""
        self._lent = [(task, where) for task, where in self._lent if not task.job.done]
        # Once each: from a host that has just ended they come straight back.
        for _ in range(len(guest.pending)):
            task = guest.pending.popleft()
            if task.home is guest:
                self._lent.append((task, host))
                host.add(task)
            else:
                # From when there were workers here. It knows best where to go now.
                task.home.add(task)

    def end(self) -> None:
        """Wait for tasks that others have. What comes back is dropped by whoever brings it."""
        lent = [(task, host) for task, host in self._lent if not task.job.done]
        for host in {host for _, host in lent}:
            host.wake()
        for task, _ in lent:
            task.job.wait()
        self.host, self._lent = None, []


class Guests:
    """Those whose tasks a dispatcher has taken over. They add themselves; the rest is for the dispatcher's thread."""

    def __init__(self) -> None:
        self._all: dict[int, Dispatcher] = {}

    def add(self, guest: "Dispatcher") -> None:
        """It will hand over tasks."""
        self._all[id(guest)] = guest

    def part_from_ended(self, pending: "deque[Task]", children: list[Child]) -> None:
        """Have nothing left of those that have ended, which wait for that."""
        # Not the items: Python 3.11 may collect garbage while it makes pairs, and another thread then add one.
        for guest in list(self._all.values()):
            if guest.ended:
                del self._all[id(guest)]
                closed = ClosedError(f"{guest.name} is closed")
                _drop(pending, guest, closed)
                for child in children:
                    child.part_from(guest, closed)


def _drop(pending: "deque[Task]", guest: "Dispatcher", closed: ClosedError) -> None:
    # Others may append meanwhile, also in the midst of these: the order of tasks is nobody's concern.
    for _ in range(len(pending)):
        task = pending.popleft()
        if task.home is guest:
            task.drop(closed)
        else:
            pending.append(task)
