"""What every physical operator is: a puller of blocks that can be put anywhere in its stream."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

from forebay._native import Errands
from forebay.block import Block, Cursor, Indices
from forebay.errors import ClosedError, DataError, FileError, ForebayError, FunctionError, SpillError
from forebay.ledger import Lease, Ledger
from forebay.remote_run import RemoteRun, current
from forebay.run.gate import Gate
from forebay.run.later import Later
from forebay.run.meter import Meter
from forebay.run.parallelism import Parallelism
from forebay.run.spill_room import SpillStore
from forebay.sizes import larger_unit

# Blocks up to this size, or up to this part of the budget, are not worth noting one by one.
_LIGHT = 1 << 16
_LIGHT_PART = 64
# Budgets below this many bytes were perhaps written in MiB.
_SURELY_MEANT = 1 << 14


@dataclass(frozen=True, slots=True)
class Site:
    """Where in the user's program an operator was asked for: what errors and statistics call it by."""

    kind: str
    label: str | None
    where: str

    def __str__(self) -> str:
        named = f"{self.kind} {self.label!r}" if self.label else self.kind
        return f"{named} at {self.where}" if self.where else named

    @property
    def key(self) -> tuple[str, int]:
        """What is remembered of the operator is found under: two calls on one line have two of them."""
        return str(self), getattr(self.where, "call", 0)

    def data_error(self, index: int, text: str) -> DataError:
        """The error for an element that cannot go through this operator."""
        return DataError(f"{self}, element {index}: {text}")

    def function_error(self, index: int, function: str, cause: Exception, element: str | None = None) -> ForebayError:
        """The error for a user's function that raised, called with what `element` tells in short.

        A file that cannot be read is told as what it is.
        """
        if isinstance(cause, FileError):
            failure = cause.read_by(f"{self}, element {index}")
            failure.__cause__ = cause
            return failure
        error = FunctionError(f"{self}, element {index}: {function} raised {type(cause).__name__}: {_text(cause)}")
        error.__cause__ = cause
        error.element = element
        return error


def _text(cause: Exception) -> str:
    # Exceptions of the user's may raise another one here, and the element's number would be lost.
    try:
        return str(cause)
    except Exception as refused:
        return f"(its text cannot be shown: {type(refused).__name__})"


def elements(indices: Indices) -> str:
    """What to call the elements with these numbers."""
    return f"element {indices[0]}" if len(indices) == 1 else f"elements {indices[0]} to {indices[-1]}"


@dataclass(frozen=True, slots=True)
class Setup:
    """What an operator is told when it is made: none of it may change its rows.

    Blocks grow to `block_bytes`, and hold a multiple of `unit` rows where that is free to choose; those of files hold
    one of `even` rows if that many fit. Sources that read by number may begin with blocks of `first` rows. `rules` are
    those that plans made while running (as in ``flat_map``) are optimised with. Only while the `gate` is open may rows
    come in another order than the usual one.
    `parallelism` is what steps may use of the machine, `ledger` what they may hold in memory, `spill` where the
    rest goes, `remote` how files elsewhere are read, and `ahead` who reads those that are here ahead, if anybody.
    """

    block_bytes: int
    rules: tuple[Any, ...] = ()
    unit: int = 1
    even: int = 1
    first: int = 1
    gate: Gate = field(default_factory=Gate)
    parallelism: Parallelism = field(default_factory=Parallelism)
    ledger: Ledger = field(default_factory=lambda: Ledger(1 << 62))
    spill: SpillStore = field(default_factory=SpillStore)
    remote: RemoteRun = field(default_factory=current)
    ahead: Errands | None = None

    def with_unit(self, unit: int) -> "Setup":
        """The same for an operator whose rows are wanted in multiples of `unit`."""
        return replace(self, unit=unit)

    def ordered(self) -> "Setup":
        """The same for operators that have to keep the order, whatever their steps and options say."""
        return replace(self, parallelism=replace(self.parallelism, ordered=True))


class Operator(ABC):
    """Pulls blocks from its inputs and gives blocks of its own.

    ``seek`` comes before the first ``pull``. It goes as near before the row that the cursor names as it can,
    and returns how many rows the caller still has to drop; ``Reader`` does that. How rows are cut into blocks
    may differ from one time to the next. After an error an operator is good for nothing but ``seek`` and
    ``close``: whoever goes on, goes on from a cursor. An operator is used by one thread at a time.
    """

    def __init__(self, site: Site, *inputs: "Operator") -> None:
        self.site = site
        self.inputs = inputs
        self._pending: Later | None = None
        self._abandoned = False
        self.meter = Meter()
        self._ledger: Ledger | None = None
        self._hand: Lease | None = None
        self.entered: list[Lease] = []
        """What sources that this reads from keep from one iterator to the next."""
        self._light, self._heavy = 0, 1 << 62  # Blocks of a size between these leave what is noted as it is.

    @property
    def free(self) -> bool:
        """Whether rows may come in another order next time, so that only a log in a cursor tells in which they came.

        If so, whoever goes on from one stream of this operator to another has to remember the cursor of the first row
        of the other: seeking to its start would not give the same rows again.
        """
        return any(operator.free for operator in self.inputs)

    def begin(self, cursor: Cursor, epoch: int) -> int:
        """``seek``, after which nothing is left of an error that was waiting. Readers call this."""
        self._pending = None
        try:
            return self.seek(cursor, epoch)
        except SpillError as error:
            error.met_by(str(self.site))
            raise

    @abstractmethod
    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Continue at or before the cursor in that epoch; the number of rows that come before it."""

    @abstractmethod
    def pull(self) -> Block | None:
        """The next rows, at least one; None once there are no more."""

    def fetch(self) -> Block | None:
        """``pull``, and count it. Readers call this."""
        if self._abandoned:
            raise ClosedError(f"{self.site} is closed")
        meter = self.meter
        began = time.perf_counter()
        try:
            block = self.pull()
        except SpillError as error:
            error.met_by(str(self.site))
            raise
        meter.seconds += time.perf_counter() - began
        if block is not None:
            size = block.nbytes
            if size > self.most_bytes and block.rows == 1:
                raise self.too_large(size)
            if not self._light <= size <= self._heavy:
                self._note(size)
            meter.blocks += 1
            meter.rows += block.rows
            meter.nbytes += size
        return block

    makes_rows = False
    """Whether blocks are in memory of this operator's own, rather than in that of its inputs."""

    most_bytes = 1 << 62
    """The budget, which no single element may exceed."""
    most_given: Any = None
    """The same as it was written."""

    def count_in(self, ledger: Ledger) -> None:
        """Have the block that was given out last noted there, if this operator made it: somebody holds it."""
        self.most_bytes, self.most_given = ledger.budget, ledger.given
        if self.makes_rows or not self.inputs:
            self._ledger = ledger
            self._heavy = min(_LIGHT, ledger.budget // _LIGHT_PART)

    def _note(self, size: int) -> None:
        if self._hand is None:
            assert self._ledger is not None
            self._hand = self._ledger.lease(str(self.site))
        # With some room, since blocks differ a little.
        self._light, self._heavy = size // 2, size + size // 4
        self._hand.note(size)

    def too_large(self, size: int) -> DataError:
        """The error for an element that the budget has no room for, however it is dealt with."""
        most = self.most_bytes
        question = larger_unit(self.most_given) if most < _SURELY_MEANT else ""
        hint = f". {question}" if question else ""
        return DataError(
            f"{self.site}: one element takes {size:,} bytes, and the budget is {most:,} bytes (Options.memory): raise "
            f"it, or make elements smaller, for example with smaller batches{hint}"
        )

    uniform = False
    """Whether it puts the rows of its input into a uniform order."""

    own_thread = False
    """Whether inputs are pulled from on another thread than the one that pulls from this."""

    def load(self) -> tuple[int, int, str]:
        """Results that wait to be asked for, workers, and what these are."""
        return 0, 0, ""

    def origin(self, cursor: Cursor) -> str | None:
        """Which place in a file the row at a cursor of this operator was read from, if that can be told at once.

        Asked for errors. Changes nothing, and may be asked while another thread pulls.
        """
        return None

    def held(self) -> tuple[int, float]:
        """Bytes kept for later in a buffer of its own, and how full that is, from 0 to 1. Called from any thread."""
        return 0, 0.0

    def moved(self) -> tuple[float, float] | None:
        """By how many places rows have moved on average, and among how many; None unless they move within limits."""
        return None

    def fail_next(self, error: ForebayError) -> None:
        """Have ``raise_pending`` raise this: rows made before the fault go out first."""
        self._pending = Later(error)

    def raise_pending(self) -> None:
        """Raise the error that the rows handed out last ended with, if any."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            raise pending.error

    def abandon(self) -> None:
        """Have what is under way end soon, since ``close`` follows; waits for nothing, and may come from any thread.

        Whoever has a thread that pulls from an operator calls this before it waits for that thread.
        """
        self._abandoned = True
        for operator in self.inputs:
            operator.abandon()

    def close(self) -> None:
        """Stop threads and release what is held. From any state, and again if it was interrupted."""
        if self._hand is not None:
            self._hand.release()
        self.entered = []
        for operator in self.inputs:
            operator.close()
