"""A function on chunks of rows: on the thread that asks, or on workers."""

import time
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import numpy as np

from forebay.block import START, Block, Cursor, Indices, concat_blocks
from forebay.errors import ClosedError, ForebayError, TransferError
from forebay.ledger import UNSEEN
from forebay.run.executor import Executor, Job
from forebay.run.later import Later
from forebay.run.log import Logs, decisions
from forebay.run.operator import Operator, Setup, Site, elements
from forebay.run.pace import MAX_SECONDS, MAX_SECONDS_AHEAD, Pace, on_threads_bytes
from forebay.run.reader import Reader
from forebay.uninterrupted import take

R = TypeVar("R")

# Chunks under way for every worker: one that it works on, and one that waits so that it need not.
_AHEAD = 2
# Functions that wait for a disk or a network gain from more workers than processors, but not without end.
_MOST_WORKERS = 64


@dataclass(slots=True)
class Chunk(Generic[R]):
    """Rows of the input, where they are, and the call that is made with them."""

    block: Block
    index: int
    job: Job[R]
    rest: bool = False
    """Whether it is what another one left, which comes before anything else."""

    @property
    def place(self) -> list[Any]:
        """What leads back to these rows."""
        return [self.index, self.block.rows, self.block.cursor.to_json()]


class Stage(Operator, Generic[R]):
    """Reads chunks, has the executor work on several of them, and finishes them in the order of the rows.

    State: where a block's chunk began in the input. However many chunks are under way, that means the same at any
    number of workers. With `free_order` chunks are finished as they come. Their state then also holds which others
    were under way, where reading goes on behind them, and a log of what was finished afterwards.
    """

    makes_rows = True

    def __init__(
        self,
        site: Site,
        source: Operator,
        setup: Setup,
        executor: Executor[R],
        free_order: bool = False,
        tuned: bool = False,
    ) -> None:
        super().__init__(site, source)
        self._reader = Reader(source)
        self._executor = executor
        seconds = MAX_SECONDS_AHEAD if executor.workers else MAX_SECONDS
        self._block_bytes = setup.block_bytes
        self._pace = Pace(setup.block_bytes, setup.unit, seconds=seconds)
        self._free = free_order and executor.workers > 0
        self._gate = setup.gate
        self._lease = setup.ledger.lease(str(site))
        self._held = 0  # Bytes of the chunks that are under way,
        self._growth = 1.0  # and how many come out for each of them,
        self._seen = False  # once that is known.
        self._logs = Logs()
        self._bell: SimpleQueue[None] = SimpleQueue()
        if self._free:
            executor.bell = self._bell
        means = setup.parallelism
        self.most_workers = means.most or _MOST_WORKERS
        self.tuned_workers = executor.workers
        if tuned and executor.workers:
            self.tuned_workers = means.crew.parking.workers.get(site.key, executor.workers)
            means.crew.tuner.add(self)
        self._tuned = executor.workers  # What the executor has been told.
        self._parking = means.crew.parking
        self._chunks: deque[Chunk[R]] = deque()
        self._rest: tuple[Block, int] | None = None  # What the chunk that was finished last has left.
        # What a log says: chunks to read again, [index, rows, cursor], and the numbers of those to finish, in order.
        self._to_read: deque[list[Any]] = deque()
        self._to_finish: deque[int] = deque()
        self._index = 0
        self._next = START  # The cursor of the row at `_index`.
        self._loaded = False  # Whether that cursor was found in a state.
        self._stands = -1  # Which row the reader gives next, while chunks are read again.
        self._epoch = 0
        self._ended = False
        self._input_error: Later | None = None

    @abstractmethod
    def finish(self, chunk: Chunk[R], result: R) -> Block | None:
        """The block that a result makes; None if it has no rows. Errors go through ``fail``."""

    def seek_input(self, cursor: Cursor, epoch: int, one_to_one: bool) -> int:
        """Go to the cursor; the number of rows still to drop. One to one, rows can be passed over in the input."""
        state = cursor.state or {"index": 0, "in": [None, 0]}
        log = state.get("log")
        skip = cursor.skip if one_to_one and log is None else 0
        self._index = state["index"] + skip
        self._next = Cursor.from_json(state["in"]).after(skip)
        self._epoch = epoch
        self._drop_chunks()
        self._executor.through = False
        self._to_read.clear()
        self._to_finish.clear()
        self._ended = False
        self._input_error = None
        self._loaded = log is not None
        if log is not None:
            self._repeat(state, decisions(log))
        self._stands = -1
        if not self._to_read:
            self._stand(self._index, self._next.to_json())
        return cursor.skip - skip

    def _repeat(self, state: dict[str, Any], log: list[list[int]]) -> None:
        """Plan to read and finish the same chunks in the same order as when the log was written."""
        self._to_finish.extend([state["index"], *(index for index, _ in log)])
        read = sorted([[state["index"], state["rows"], state["in"]], *state["open"]], key=lambda place: place[0])
        index, at = state["next"]
        self._to_read.extend(read)
        # Chunks that were read later follow one another, as do the gaps that others under way left between them.
        for start, rows in sorted(entry for entry in log if entry[0] >= index):
            for size in (start - index, rows):
                if size:
                    self._to_read.append([index, size, at])
                    at = Cursor.from_json(at).after(size).to_json()
                    index += size
        self._index, self._next = index, Cursor.from_json(at)

    def pull(self) -> Block | None:
        """The next rows, after having put enough work under way for the ones behind them."""
        self.raise_pending()
        while True:
            self._fill()
            if not self._chunks:
                if self._input_error is not None:
                    raise self._input_error.error
                self._executor.through = True
                return None
            chunk = self._take()
            result = self._result(chunk)
            block = self.finish(chunk, result)
            self._held -= chunk.block.nbytes
            done = chunk.block
            if left := self.left(chunk, result):
                done = chunk.block.slice(0, done.rows - left)
                self._rest = chunk.block.slice(done.rows, chunk.block.rows), chunk.index + done.rows
            # What was made of many rows may be there twice otherwise, while the block goes on its way.
            del result
            self._executor.observe(done.rows, self.meter.waited)
            size = done.nbytes if block is None else block.nbytes
            self._growth = max(size / max(done.nbytes, 1), 0.9 * self._growth)
            self._seen = True
            self._lease.note(int(self._held * (1 + self._growth)))
            self._pace.observe(done.rows, size, chunk.job.seconds, chunk.job.cpu > chunk.job.seconds / 2)
            if self._executor.workers:
                # Without workers the time is in the caller's already.
                self.meter.worked += chunk.job.seconds
                self.meter.cpu += chunk.job.cpu
            if block is not None:
                return block
            self.raise_pending()

    def left(self, chunk: Chunk[R], result: R) -> int:
        """How many of the chunk's rows, the last ones, nothing was made of yet."""
        return 0

    def _take(self) -> Chunk[R]:
        """The chunk to finish next."""
        if self._chunks[0].rest:
            # Logs tell of whole chunks.
            return self._chunks.popleft()
        if self._to_finish:
            index = self._to_finish.popleft()
            chunk = next(chunk for chunk in self._chunks if chunk.index == index)
        elif self._free and self._gate.open:
            chunk = self._first_done()
        else:
            chunk = self._chunks[0]
        self._chunks.remove(chunk)
        self._logs.add([chunk.index, chunk.block.rows])
        return chunk

    def _first_done(self) -> Chunk[R]:
        began = time.perf_counter()
        while not self._bell.empty():
            # Of chunks that are looked at now, or were finished without waiting for any.
            self._bell.get()
        while (first := next((chunk for chunk in self._chunks if chunk.job.done), None)) is None:
            take(self._bell)
        self.meter.waited += time.perf_counter() - began
        return first

    def state_of(self, chunk: Chunk[R]) -> dict[str, Any]:
        """The state of the block that this chunk has made."""
        state = {"index": chunk.index, "in": chunk.block.cursor.to_json()}
        if self._free or self._to_finish or self._to_read:
            self._refresh()
            open_chunks = [other.place for other in self._chunks] + list(self._to_read)
            state |= {"rows": chunk.block.rows, "open": open_chunks, "next": [self._index, self._next.to_json()]}
            state["log"] = self._logs.new()
        return state

    def _refresh(self) -> None:
        """Have a cursor for the next row that hears of what a free input decides from now on; a loaded one does not."""
        if self._loaded and self.free and not self._to_read and not self._ended:
            self._loaded = False
            try:
                block = self._reader.peek()
            except ForebayError as error:
                self._input_error, self._ended = Later(error), True
                return
            if block is not None:
                self._next = block.cursor

    @property
    def free(self) -> bool:
        """Also by itself."""
        return self._free or super().free

    def _result(self, chunk: Chunk[R]) -> R:
        began = time.perf_counter()
        try:
            while True:
                try:
                    return chunk.job.result()
                except (TransferError, ClosedError) as error:
                    again = self._executor.again(chunk.job, error)
                    if again is None:
                        raise self._located(chunk, error) from error.__cause__
                    chunk.job = again
        finally:
            self.meter.waited += time.perf_counter() - began

    def _located(self, chunk: Chunk[R], error: ForebayError) -> ForebayError:
        """The error with the place where it came up, which workers know nothing of."""
        if not isinstance(error, TransferError):
            return error
        which = elements(self.numbers(chunk.block, chunk.index))
        return TransferError(f'{self.site}, {which}: {error}; executor="thread" need not send anything')

    def load(self) -> tuple[int, int, str]:
        """Chunks that are done, and who does them."""
        return sum(chunk.job.done for chunk in list(self._chunks)), self._executor.workers, self._executor.kind

    def _tune(self) -> None:
        if self.tuned_workers != self._tuned:
            self._tuned = self.tuned_workers
            self._executor.resize(self._tuned)
            self._parking.workers[self.site.key] = self._tuned

    def _chunk_bytes(self) -> int:
        """How large a block each chunk is to make."""
        executor = self._executor
        if executor.kind != "thread":
            return self._block_bytes
        return on_threads_bytes(self._block_bytes, executor.workers, self._lease.budget)

    def _fill(self) -> None:
        self._tune()
        self._pace.block_bytes = self._chunk_bytes()
        if self._rest is not None:
            rest, self._rest = self._rest, None
            self._chunks.appendleft(self._submitted(*rest, rest=True))
        most = max(1, self._executor.workers * _AHEAD)
        while (len(self._chunks) < most or self._awaited()) and not self._ended and self._afford():
            try:
                block, index = self._read()
            except ForebayError as error:
                # Rows that are under way come out first.
                self._input_error = Later(error)
                block = None
            if block is None:
                self._ended = True
                return
            self._chunks.append(self._submitted(block, index))

    def _submitted(self, block: Block, index: int, rest: bool = False) -> Chunk[R]:
        job = self._executor.submit(self.argument(block), self.numbers(block, index), self._epoch)
        self._held += block.nbytes
        return Chunk(block, index, job, rest)

    def _afford(self) -> bool:
        """Whether the budget has room for one more chunk and what will come of it. One is always worked on."""
        if not self._chunks or not self._executor.workers:
            return True
        # Workers are started for chunks, and have not told what they take up either.
        unseen = UNSEEN + self._executor.worker_bytes
        if not self._seen and (len(self._chunks) + 1) * unseen > self._lease.budget:
            return self._awaited()
        more = self._held // len(self._chunks)
        # What a function returns is there beside the copy that is kept of it and the block that is made of copies.
        making = 2 * more * (1 + sum(not chunk.job.done for chunk in self._chunks))
        return self._awaited() or self._lease.ask(int((self._held + more) * (1 + self._growth) + making * self._growth))

    def _awaited(self) -> bool:
        """Whether the log asks for a chunk that has not been read yet."""
        return bool(self._to_finish) and all(chunk.index != self._to_finish[0] for chunk in self._chunks)

    def _read(self) -> tuple[Block | None, int]:
        if self._to_read:
            index, rows, at = self._to_read.popleft()
            self._stand(index, at)
            again = self._read_again(index, rows)
            if not self._to_read:
                self._stand(self._index, self._next.to_json())
            return again, index
        index = self._index
        block = self._reader.read(self._pace.rows)
        if block is not None:
            self._index += block.rows
            self._next = block.cursor.after(block.rows)
            self._loaded = False
        return block, index

    def _stand(self, index: int, at: list[Any]) -> None:
        if self._stands != index:
            self._reader.seek(Cursor.from_json(at), self._epoch)
            self._stands = index

    def _read_again(self, index: int, rows: int) -> Block:
        blocks = []
        self._stands = index + rows
        while rows:
            block = self._reader.read(rows)
            if block is None:
                raise self.site.data_error(index, "the input ends before the place where it is to be resumed")
            blocks.append(block)
            rows -= block.rows
        return concat_blocks(blocks)

    def numbers(self, block: Block, index: int) -> Indices:
        """The elements' numbers; the first one's is `index`."""
        return np.arange(index, index + block.rows)

    def argument(self, block: Block) -> Block:
        """The rows as the function gets them. It has no use for the cursor, which may be large."""
        return block.at(START)

    def fail(self, error: ForebayError | None, block: Block | None) -> None:
        """Raise the error now, or after the rows that came before it."""
        if error is not None:
            if block is None:
                raise error
            self.fail_next(error)

    def abandon(self) -> None:
        """A thread that waits for a result need not wait for the user's function."""
        self._executor.abandon()
        super().abandon()

    def close(self) -> None:
        """The workers first, since they may be busy with the input's rows."""
        self._executor.close()
        self._drop_chunks()
        super().close()

    def _drop_chunks(self) -> None:
        self._chunks.clear()
        self._rest = None
        self._held = 0
        self._lease.release()
