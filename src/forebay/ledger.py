"""Who may hold how many bytes."""

import threading
import weakref
from collections import deque
from typing import Any

from forebay.forks import tell_children
from forebay.heaps import map_large_arrays
from forebay.sizes import memory_left, parse_size

UNSEEN = 8 << 20
"""What a block counts as, with its rows while it is put together, before one of its kind has been seen."""

# What a pipeline has of the budget, if the tens of MiB that the C library keeps of freed arrays are much beside it.
_SMALL = 128 << 20

ELSEWHERE = " (processes)"
"""How the names of those end whose bytes are in other processes."""


class Ledger:
    """A budget of bytes that the buffers of one or several running pipelines share.

    Buffers ask before they grow. One that is refused does not wait here: it makes do with what it has (works less far
    ahead, spills to disk), so no two of them can wait for each other. What a step needs to move at all, one block in
    hand, is noted but never refused. Where that is more than a small budget, there is nothing left for freed arrays of
    the C library, and it is told to keep none. In another process, such as a worker of a ``DataLoader``, it is a budget
    of its own, of the same size.

    >>> import forebay as fb
    >>> ledger = fb.Ledger("1MiB")
    >>> train = fb.Dataset.range(10).prefetch(2).with_options(fb.Options(memory=ledger))
    >>> test = fb.Dataset.range(5).prefetch(2).with_options(fb.Options(memory=ledger))
    >>> len(list(train)), len(list(test)), ledger.held
    (10, 5, 0)
    """

    def __init__(self, budget: "int | str | float") -> None:
        self.budget = parse_size("Ledger: budget", budget, memory_left)
        self.given: int | str | float = budget
        self._lock = threading.Lock()
        self._held = 0
        self._peak = 0
        self._leases: weakref.WeakSet[Lease] = weakref.WeakSet()
        self._runs: set[int] = set()
        # What leases held that are gone. The garbage collector may run on a thread that has the lock, so it only leaves
        # them here.
        self._returned: deque[int] = deque()
        tell_children(self)

    def in_child(self) -> None:
        """Called by itself in a forked child."""
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Ledger({self.budget}, held={self.held})"

    def __reduce__(self) -> Any:
        # In another process it is a budget of its own, as after a fork.
        return Ledger, (self.given,)

    def __copy__(self) -> "Ledger":
        # Copies of a dataset in one process share it as the dataset does.
        return self

    def __deepcopy__(self, memo: Any) -> "Ledger":
        return self

    @property
    def held(self) -> int:
        """Bytes that buffers hold at the moment."""
        self._change(0, refusable=False)
        return self._held

    @property
    def peak(self) -> int:
        """The most that was ever held at once."""
        return self._peak

    @property
    def runs(self) -> int:
        """How many iterators share it at the moment."""
        return len(self._runs)

    @property
    def share(self) -> int:
        """Bytes that one more iterator may count on: what it cannot be refused has to be in proportion to it."""
        return self.budget // (1 + len(self._runs))

    def enter(self, run: object) -> None:
        """An iterator begins, or begins anew. It holds little as yet, and will need its share."""
        self._runs.add(id(run))

    def leave(self, run: object) -> None:
        """It has ended. Called from wherever that is noticed, so neither takes a lock."""
        self._runs.discard(id(run))

    def lease(self, owner: str) -> "Lease":
        """A part of the budget for a buffer, empty at first. It ends with ``release``, or when nobody refers to it."""
        lease = Lease(self, owner)
        with self._lock:
            self._leases.add(lease)
        return lease

    def holders(self) -> dict[str, int]:
        """Bytes by owner, the largest first."""
        with self._lock:
            leases = list(self._leases)
        found: dict[str, int] = {}
        for lease in leases:
            if lease.held:
                found[lease.owner] = found.get(lease.owner, 0) + lease.held
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _change(self, difference: int, refusable: bool) -> bool:
        with self._lock:
            while self._returned:
                self._held -= self._returned.popleft()
            if refusable and difference > 0 and self._held + difference > self.budget:
                return False
            self._held += difference
            self._peak = max(self._peak, self._held)
            return True


class Lease:
    """What one buffer holds. Used by one thread at a time."""

    def __init__(self, ledger: Ledger, owner: str) -> None:
        self._ledger = ledger
        self._amount = [0]
        self.owner = owner
        # The list outlives the lease, so that what it held is given back whatever becomes of it.
        weakref.finalize(self, _give_back, ledger._returned, self._amount)

    @property
    def held(self) -> int:
        """Bytes."""
        return self._amount[0]

    @property
    def budget(self) -> int:
        """Of the ledger, which others hold parts of too."""
        return self._ledger.budget

    @property
    def of_all(self) -> int:
        """Bytes that this and all others of the ledger hold."""
        return self._ledger.held

    def beside(self) -> "Lease":
        """Another one of the same owner, for a buffer that another thread or class looks after."""
        return self._ledger.lease(self.owner)

    def ask(self, total: int) -> bool:
        """Hold `total` bytes from now on, if there is room; whether there is. Less than before is always granted."""
        return self._set(total, refusable=True)

    def note(self, total: int) -> None:
        """Hold `total` bytes in any case: what a step cannot do without."""
        self._set(total, refusable=False)

    def release(self) -> None:
        """Hold nothing."""
        if self._amount[0]:
            self.note(0)

    def _set(self, total: int, refusable: bool) -> bool:
        ledger = self._ledger
        granted = ledger._change(total - self._amount[0], refusable)
        if granted:
            self._amount[0] = total
            if ledger._peak > ledger.budget < _SMALL * max(1, ledger.runs):
                map_large_arrays()
        return granted


def _give_back(returned: "deque[int]", amount: list[int]) -> None:
    returned.append(amount[0])
