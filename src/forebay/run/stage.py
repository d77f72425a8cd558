"""A function on chunks of rows: on the thread that asks, or on workers, with the results always in order."""

from abc import abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from forebay.block import Block, Cursor, Indices
from forebay.errors import ForebayError
from forebay.run.executor import Executor, Job
from forebay.run.operator import Operator, Setup, Site
from forebay.run.pace import Pace
from forebay.run.reader import Reader

R = TypeVar("R")

# Chunks under way for every worker: one that it works on, and one that waits so that it need not.
_AHEAD = 2


@dataclass(slots=True)
class Chunk(Generic[R]):
    """Rows of the input, where they are, and the call that is made with them."""

    block: Block
    index: int
    job: Job[R]

    @property
    def state(self) -> dict[str, Any]:
        """What leads back to these rows."""
        return {"index": self.index, "in": self.block.cursor.to_json()}


class Stage(Operator, Generic[R]):
    """Reads chunks, has the executor work on several of them, and finishes them in the order of the rows.

    State: the number of the next input element. However many chunks are under way, a block's cursor is that of the
    rows it was made from, so it means the same at any number of workers.
    """

    def __init__(self, site: Site, source: Operator, setup: Setup, executor: Executor[R]) -> None:
        super().__init__(site, source)
        self._reader = Reader(source)
        self._executor = executor
        self._pace = Pace(setup.block_bytes, setup.unit)
        self._chunks: deque[Chunk[R]] = deque()
        self._index = 0
        self._epoch = 0
        self._ended = False
        self._input_error: ForebayError | None = None

    @abstractmethod
    def finish(self, chunk: Chunk[R], result: R) -> Block | None:
        """The block that a result makes; None if it has no rows. Errors go through ``fail``."""

    def seek_input(self, state: dict[str, Any] | None, skip: int, epoch: int) -> None:
        """Continue `skip` input rows after those that the state leads to."""
        state = state or {"index": 0, "in": [None, 0]}
        self._reader.seek(Cursor.from_json(state["in"]).after(skip), epoch)
        self._index = state["index"] + skip
        self._epoch = epoch
        self._chunks.clear()
        self._ended = False
        self._input_error = None

    def pull(self) -> Block | None:
        """The next rows in order, after having put enough work under way for the ones behind them."""
        self.raise_pending()
        while True:
            self._fill()
            if not self._chunks:
                if self._input_error is not None:
                    raise self._input_error
                return None
            chunk = self._chunks.popleft()
            block = self.finish(chunk, chunk.job.result())
            size = chunk.block.nbytes if block is None else block.nbytes
            self._pace.observe(chunk.block.rows, size, chunk.job.seconds)
            if block is not None:
                return block
            self.raise_pending()

    def _fill(self) -> None:
        most = max(1, self._executor.workers * _AHEAD)
        while len(self._chunks) < most and not self._ended:
            try:
                block = self._reader.read(self._pace.rows)
            except ForebayError as error:
                # Rows that are under way come out first.
                self._input_error = error
                block = None
            if block is None:
                self._ended = True
                return
            indices = self.numbers(block)
            job = self._executor.submit(self.argument(block), indices, self._epoch)
            self._chunks.append(Chunk(block, self._index, job))
            self._index += block.rows

    def numbers(self, block: Block) -> Indices:
        """The elements' numbers."""
        return np.arange(self._index, self._index + block.rows)

    def argument(self, block: Block) -> Block:
        """The rows as the function gets them."""
        return block

    def fail(self, error: ForebayError | None, block: Block | None) -> None:
        """Raise the error now, or after the rows that came before it."""
        if error is not None:
            if block is None:
                raise error
            self.fail_next(error)

    def close(self) -> None:
        """The workers first, since they may be busy with the input's rows."""
        self._chunks.clear()
        self._executor.close()
        super().close()
