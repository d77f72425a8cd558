"""Rows by number: what makes permuted reads, cheap skips and instant resume possible."""

import time
from abc import ABC, abstractmethod

import numpy as np

from forebay.block import Block, Cursor, Indices
from forebay.errors import ForebayError, SpillError
from forebay.ledger import Lease
from forebay.run.operator import Operator, Setup, Site
from forebay.run.pace import MAX_SECONDS, Pace


class Access(ABC):
    """Rows 0 to `length` of a dataset, in any order, at any time. Has no position of its own."""

    def __init__(self, length: int) -> None:
        self.length = length

    def within(self, setup: Setup) -> list[Lease]:
        """Told before reading: the budget and the disk that rows kept between reads may use. What of them was kept
        before counts there for as long as the reader refers to what this returns."""
        return [lease for each in self._below() for lease in each.within(setup)]

    @property
    def seconds(self) -> float:
        """How long a block of rows may take: longer where rows are decoded with others, for many to share that."""
        return max([MAX_SECONDS, *(each.seconds for each in self._below())])

    def _below(self) -> "list[Access]":
        inner = [getattr(self, "_inner", None), *getattr(self, "_parts", ())]
        return [each for each in inner if each is not None]

    def origin(self, row: int, epoch: int) -> str | None:
        """Which place in a file a row is read from, if it is from one."""
        return None

    @abstractmethod
    def gather(self, indices: Indices, epoch: int) -> Block:
        """The rows with these numbers, at least one, in this order."""

    def read(self, start: int, stop: int, epoch: int) -> Block:
        """Rows start to stop. Sources override this to hand out views."""
        return self.gather(np.arange(start, stop, dtype=np.int64), epoch)


class ReadRows(Operator):
    """Reads an Access from front to back. Its whole state is a row number."""

    def __init__(self, site: Site, access: Access, setup: Setup) -> None:
        super().__init__(site)
        self._access = access
        self.entered = access.within(setup)
        self._pace = Pace(setup.block_bytes, setup.unit, setup.first, access.seconds)
        self._position = 0
        self._epoch = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """O(1), whatever the position."""
        self._position = (cursor.state or {"row": 0})["row"] + cursor.skip
        self._epoch = epoch
        return 0

    def origin(self, cursor: Cursor) -> str | None:
        """As the Access knows it."""
        return self._access.origin((cursor.state or {"row": 0})["row"] + cursor.skip, self._epoch)

    def pull(self) -> Block | None:
        """The next rows by number."""
        start = self._position
        rows = min(self._pace.rows, self._access.length - start)
        if rows <= 0:
            return None
        began = time.perf_counter()
        try:
            block = self._access.read(start, start + rows, self._epoch)
        except SpillError:
            raise
        except ForebayError:
            block = gather_until_fault(self._access, np.arange(start, start + rows), self._epoch)
        self._pace.observe(block.rows, block.nbytes, time.perf_counter() - began)
        self._position += block.rows
        return block.at(Cursor({"row": start}))


def gather_until_fault(access: Access, indices: Indices, epoch: int) -> Block:
    """These rows, or as many of the first ones as can be had: rows before a faulty one come out before the error."""
    while True:
        try:
            return access.gather(indices, epoch)
        except SpillError:
            # Not of any row: to ask for fewer of them would fill the disk again.
            raise
        except ForebayError:
            if len(indices) == 1:
                raise
            indices = indices[: len(indices) // 2]
