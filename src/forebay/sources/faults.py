"""Rows that could not be read, left out after the step that found it out."""

from dataclasses import dataclass

import numpy as np

from forebay.block import Block, Cursor
from forebay.block.strings import Strings
from forebay.errors import FileError, InternalError
from forebay.plan.check import keep_whole
from forebay.plan.node import UNKNOWN, Build, Node
from forebay.run import Operator, Reader, Setup
from forebay.sources.files import log_skipped


@dataclass(frozen=True, eq=False, kw_only=True)
class DropFaults(Node):
    """Of pairs of a fault and an element, the elements whose fault is "". The others are logged.

    A fault is a reason, a line's end, and a path. After `max_errors` of them, the next is raised.
    """

    max_errors: int

    kind = "drop_faults"

    def __post_init__(self) -> None:
        keep_whole(self, "max_errors", 0)

    def cardinality(self) -> int:
        """Not known before all rows have been read."""
        return UNKNOWN

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Block by block."""
        return _DropFaults(self, build(self.input, setup))


class _DropFaults(Operator):
    """State: where a block's rows began in the input, and how many faults there were before."""

    def __init__(self, node: DropFaults, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._most = node.max_errors
        self._faults = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Which row of the input an element was can only be found by counting again."""
        state = cursor.state or {"in": [None, 0], "faults": 0}
        self._reader.seek(Cursor.from_json(state["in"]), epoch)
        self._faults = state["faults"]
        return cursor.skip

    def pull(self) -> Block | None:
        """The good rows of the next block that has some."""
        self.raise_pending()
        while (block := self._reader.next()) is not None:
            state = {"in": block.cursor.to_json(), "faults": self._faults}
            kept, error = self._good(block)
            rows = Block(block.structure.children[1], block.columns[1:], block.rows)
            made = None
            if len(kept):
                made = (rows if len(kept) == block.rows else rows.take(kept)).at(Cursor(state))
            if error is not None:
                if made is None:
                    raise error
                self.fail_next(error)
            if made is not None:
                return made
        return None

    def _good(self, block: Block) -> "tuple[np.ndarray[tuple[int], np.dtype[np.int64]], FileError | None]":
        """Which rows are good, up to the fault that is one too many, and that one."""
        column = block.columns[0]
        if not isinstance(column, Strings):
            raise InternalError("faults are not told as text")
        good = np.diff(column.offsets) == 0
        if good.all():
            return np.arange(block.rows), None
        texts = column.strings()
        for row in np.flatnonzero(~good).tolist():
            reason, _, path = texts[row].partition("\n")
            if self._faults >= self._most:
                reason = f"{reason}; {self._faults} broken files were passed over before (max_errors)"
                return np.flatnonzero(good[:row]), FileError(path, reason, step=str(self.site))
            self._faults += 1
            log_skipped(FileError(path, reason, step=str(self.site)))
        return np.flatnonzero(good), None
