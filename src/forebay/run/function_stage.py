"""Stages that call a function for every row, and what they do where it fails."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from forebay.block import Block, Cursor, Indices
from forebay.errors import FileError, ForebayError, FunctionError, RemoteError
from forebay.run.executor import Executor
from forebay.run.faults import Faults, Tolerance
from forebay.run.operator import Operator, Setup, Site
from forebay.run.stage import Chunk, Stage
from forebay.run.tracebacks import let_go

P = TypeVar("P")

Fault = FunctionError | FileError

Tried = tuple[P, tuple[int, ForebayError | None] | None, list[tuple[int, Fault]]]
"""What was made of a chunk; the row that it ended before, if it did, and why, unless it simply was enough; which rows
failed and are left out of it, and how."""

# What is kept of the message of a failure that is passed over: there may be one for every row of a chunk.
_LONGEST = 1000


class RowsFunction(ABC, Generic[P]):
    """What a step does to the rows of a block, each by itself. Every worker has one of its own."""

    @abstractmethod
    def __call__(self, block: Block, indices: Indices, epoch: int) -> tuple[P, ForebayError | None]:
        """What becomes of the rows up to the first that fails, and that failure; without one, perhaps not of all."""

    @abstractmethod
    def count(self, made: P) -> int:
        """Of how many rows this was made."""

    @abstractmethod
    def join(self, parts: list[P | None]) -> P:
        """Several parts as one; None stands for a row that failed."""


class FunctionStage(Stage[Tried[P]], Generic[P]):
    """Calls a function for the rows of each chunk. Those that it fails for are raised, or left out up to a limit.

    State: as every stage's, and how many rows had been left out before.
    """

    def __init__(
        self,
        site: Site,
        source: Operator,
        setup: Setup,
        make: Callable[[], RowsFunction[P]],
        start: Callable[[Setup, Callable[[], Callable[..., Tried[P]]]], Executor[Tried[P]]],
        tolerance: Tolerance,
        free_order: bool,
        tuned: bool,
    ) -> None:
        super().__init__(site, source, setup, start(setup, partial(_trying, make, tolerance.skips)), free_order, tuned)
        self._make = make
        self._tolerance = tolerance
        self._faults = Faults(tolerance, self.meter)
        self._before = 0  # Rows left out before the chunk that is being finished.

    @abstractmethod
    def made(self, chunk: Chunk[Tried[P]], made: P, error: ForebayError | None) -> Block | None:
        """The block that this makes, if any; errors go through ``fail``."""

    @abstractmethod
    def first(self, made: P, rows: int, missing: int) -> P:
        """What was made of the first rows of a chunk, of which so many are missing in it."""

    def seek_input(self, cursor: Cursor, epoch: int, one_to_one: bool) -> int:
        """Also back to the number of rows that had been left out."""
        self._faults.count = (cursor.state or {}).get("faults", 0)
        return super().seek_input(cursor, epoch, one_to_one)

    def state_of(self, chunk: Chunk[Tried[P]]) -> dict[str, Any]:
        """With the number of rows that had been left out before."""
        state = super().state_of(chunk)
        return state | {"faults": self._before} if self._tolerance.skips else state

    def finish(self, chunk: Chunk[Tried[P]], result: Tried[P]) -> Block | None:
        """Count the rows that failed; up to the one that is one too many, if there is such a one."""
        made, end, failed = result
        self._before = self._faults.count
        for missing, (row, what) in enumerate(failed):
            if self._faults.full:
                made, end = self.first(made, row, missing), (row, self._too_many(chunk, row, what))
                break
            if self._faults.told:
                self._tell_origin(chunk, row, what)
            self._faults.add(what)
        failure = None if end is None else end[1]
        if end is not None and failure is not None:
            self._tell_origin(chunk, end[0], failure)
        return self.made(chunk, made, failure)

    def left(self, chunk: Chunk[Tried[P]], result: Tried[P]) -> int:
        """The rows behind those that were enough."""
        end = result[1]
        return chunk.block.rows - end[0] if end is not None and end[1] is None else 0

    def _tell_origin(self, chunk: Chunk[Tried[P]], row: int, error: ForebayError) -> None:
        """Add where the row comes from."""
        if isinstance(error, FunctionError):
            error.origin = self.inputs[0].origin(chunk.block.cursor.after(row))

    def _too_many(self, chunk: Chunk[Tried[P]], row: int, told: Fault) -> ForebayError:
        """The error of a row, found by calling the function for it once more: of most, only the text is needed."""
        block, numbers = self.argument(chunk.block), self.numbers(chunk.block, chunk.index)
        _, error = self._make()(block.slice(row, row + 1), numbers[row : row + 1], self._epoch)
        return self._faults.refused(error or told)


def _of_a_row(error: ForebayError) -> Fault | None:
    """The error, if it is the function that failed, and for one row."""
    if isinstance(error, FunctionError):
        return None if error.together else error
    return error if isinstance(error, FileError) and not isinstance(error, RemoteError) else None


def _trying(make: Callable[[], RowsFunction[P]], skips: bool) -> Callable[..., Tried[P]]:
    return partial(_skip_failing if skips else _stop_at_failure, make())


def _stop_at_failure(function: RowsFunction[P], block: Block, indices: Indices, epoch: int) -> Tried[P]:
    made, error = function(block, indices, epoch)
    rows = function.count(made)
    return made, (rows, error) if rows < block.rows else None, []


def _brief(error: Fault) -> Fault:
    """What of an error goes back from a worker: what it says, and never what it refers to."""
    if isinstance(error, FileError):
        return FileError(error.path, error.reason[:_LONGEST], error.offset, error.step, error.line)
    brief = FunctionError(str(error.args[0])[:_LONGEST])
    brief.element = error.element
    return brief


def _skip_failing(function: RowsFunction[P], block: Block, indices: Indices, epoch: int) -> Tried[P]:
    """Go on behind each row that fails. Only failures of the function count, not results that do not fit together:
    which of them are at fault depends on which was first."""
    parts: list[P | None] = []
    failed: list[tuple[int, Fault]] = []
    at, some = 0, block.rows
    while at < block.rows:
        end = min(at + some, block.rows)
        made, error = function(block.slice(at, end), indices[at:end], epoch)
        rows = function.count(made)
        if rows:
            parts.append(made)
        if error is None and at + rows < end:
            return function.join(parts), (at + rows, None), failed
        if error is None:
            at, some = end, 2 * some
            continue
        fault = _of_a_row(error)
        if fault is None:
            return function.join(parts), (at + rows, error), failed
        parts.append(None)
        failed.append((at + rows, _brief(fault)))
        let_go(fault)
        # Their tracebacks lead to this frame too.
        del error, fault
        # A function on whole columns fails for all rows it is given. Where one failed others may, so that they come in
        # small pieces at first: all the rows behind each failure would be the square of their number.
        at, some = at + rows + 1, max(1, rows)
    return function.join(parts), None, failed
