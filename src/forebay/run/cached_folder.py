"""A cache in a folder, which later runs find again and which several processes may use at once.

``<key>.data`` has the records one behind another. ``<key>.index`` says where they are, and whether that is all; it is
replaced as a whole. Records that were written after it are found by looking behind the last one it knows, so a process
that is killed loses no more than the record it was writing, and the rows of about a second that wait for the next one.
``<key>.plan`` says what they are made of. Whoever writes holds ``lock``; all others only read.
"""

import errno
import os
import threading
from bisect import bisect_right
from contextlib import suppress
from pathlib import Path

from forebay.block import START, Block, Cursor
from forebay.errors import ForebayError, SpillError
from forebay.forks import is_torn, tell_children
from forebay.full_disk import is_full, refusal, room
from forebay.run.cached import Content, Damaged, compact, fitting, shared
from forebay.run.cached_index import Index, stamp, tell_missing
from forebay.run.cached_others import ENDINGS, LOCK, Origin, Others
from forebay.run.cached_record import Decoder, Record, describe, encode
from forebay.run.files import OpenFile, sync_folder
from forebay.run.operator import Setup
from forebay.run.stretches import Stretches
from forebay.run.waiting import Waiting


class FolderContent(Content):
    """The rows under one key in a folder.

    As in ``MemoryContent``, what is known of them is noted without a call.

    Args:
        folder: made if there is none.
        key: of the plan that the rows come from. Of rows under other keys, the most under one of them stay until these
            are complete, or need the room.
        codec: how to compress what is added.
        origin: what the key is of, for those who write.
    """

    def __init__(self, folder: Path, key: str, codec: str | None, origin: Origin | None = None) -> None:
        super().__init__()
        self._folder = folder
        self._data = folder / f"{key}.data"
        self._index = folder / f"{key}.index"
        self._key = key
        self._codec = codec
        self._origin = origin
        self._others = Others(folder, key)
        self._mutex = threading.RLock()
        self._records: list[Record] = []
        self._starts: list[int] = []
        self._waiting = Waiting()
        self._decoder = Decoder()
        self._file: OpenFile | None = None
        self._lock: OpenFile | None = None
        self._seen: tuple[int, int, int] | None = None
        self._end = 0
        self._committed = True
        self._outdated = False
        self._noted = self._told = False
        self._open()
        tell_children(self)

    def in_child(self) -> None:
        """Its parent writes, if anybody does, and what waits for that is not there yet."""
        super().in_child()
        self._lock = None
        self._drop_waiting()
        if is_torn(self._mutex):
            self._mutex = threading.RLock()
            self._forget()

    # Finding what is there.

    def _open(self) -> None:
        """Begin again with what is in the folder now."""
        self._forget()
        self.refresh()

    def _forget(self) -> None:
        empty = Waiting()  # Only an interrupt leaves something that waits in vain.
        self._records, self._starts, self._end, self._waiting = [], [], 0, empty
        self.rows, self.complete, self._seen, self._file = 0, False, None, None

    def refresh(self) -> None:
        """Read the index if it has been replaced, and look for records behind the last known one."""
        with self._mutex:
            try:
                self._look()
            except OSError as error:
                raise SpillError(f"cache({str(self._folder)!r}) cannot be read: {refusal(error)}") from error

    def _look(self) -> None:
        if self._lock is not None:
            return
        if self._file is not None and not self._file.is_at(self._data):
            # Somebody has cleared the folder: what is gone from it is not to be read for ever.
            self._open()
            return
        if self.complete:
            return
        if self._file is None:
            self._file = OpenFile.existing(self._data)
        if self._file is None:
            found = Index.read(self._index, self._key)
            if found is not None and found.records:
                self._tell_missing(0, found.records[-1].stop)
            return
        index = stamp(self._index)
        if index is not None and index != self._seen:
            self._load_index(self._file.size)
            self._seen = index
        self._scan(self._file, self._file.size)

    def _load_index(self, size: int) -> None:
        found = Index.read(self._index, self._key)
        if found is None:
            return
        records = found.records
        whole = next((i for i, record in enumerate(records) if record.end > size), len(records))
        if whole and records[whole - 1].stop < self.rows:
            return
        outdated = whole < len(records)
        if outdated:
            self._tell_missing(records[whole].row, records[-1].stop)
        # Behind a record that is missing there is nothing to go on from but its beginning.
        end = max((record.end for record in records[:whole]), default=0) if outdated else found.end
        stop = records[whole - 1].stop if whole else 0
        starts = [record.row for record in records[:whole]]
        self._records, self._starts, self._end, self._outdated = records[:whole], starts, end, outdated
        self.rows, self.complete = stop, found.complete and not outdated

    def _tell_missing(self, start: int, stop: int) -> None:
        """Once: what is computed again may take hours."""
        if self._told:
            return
        self._told = True
        tell_missing(self._data, start, stop)

    def _scan(self, file: OpenFile, size: int) -> None:
        while not self.complete:
            record = describe(file, self._end, size)
            if record is None or not self._place(record):
                return

    def _place(self, record: Record) -> bool:
        """Take in a record that lies at the end: the next rows, or a better copy of some."""
        end = record.end
        if record.row == self._written:
            rows = max(self.rows, record.stop)
            self._records += [record]
            self._starts += [record.row]
            self.rows = rows
        else:
            at = bisect_right(self._starts, record.row) - 1
            if at < 0 or self._records[at].row != record.row or self._records[at].rows != record.rows:
                return False
            self._records[at] = record
        self._end = end
        return True

    @property
    def _written(self) -> int:
        """Rows that are in the file."""
        return self._records[-1].stop if self._records else 0

    # Reading.

    def read(self, row: int, layout: str, stretches: Stretches) -> Block | None:
        """From the file, in memory of its own."""
        with self._mutex:
            if row >= self.rows or self._file is None:
                return None
            if row >= self._written:
                return self._waiting.read(row, layout)
            number = bisect_right(self._starts, row)
            record = self._records[number - 1]
            file = self._file
            then = self._records[number].stretch(file) if number < len(self._records) else None
        payload = record.read(file, stretches, then)
        block = None if payload is None else self._decoder.block(record, payload)
        cursor = fitting(record.cursor, record.layout, layout, record.row)
        if block is None:
            raise Damaged(record.row, record.stop, cursor)
        return block.at(cursor).slice(row - record.row, block.rows)

    def frontier(self, layout: str) -> tuple[int, Cursor]:
        """Behind the last row."""
        with self._mutex:
            if self._waiting.blocks:
                return self.rows, self._waiting.end(layout)
            if not self._records:
                return 0, START
            last = self._records[-1]
            return self.rows, fitting(last.cursor, last.layout, layout, last.row).after(last.rows)

    # Writing.

    def may_grow(self) -> bool:
        """Whether this process may write; asks for the lock if nobody has it."""
        with self._mutex:
            if self._lock is not None:
                return self._lock.mine
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SpillError(
                    f"cache({str(self._folder)!r}): the folder cannot be made: {refusal(error)}; name one that can be"
                ) from error
            try:
                lock = OpenFile.locked(self._folder / LOCK)
                if lock is None:
                    return False
                try:
                    self._begin_writing()
                except BaseException:
                    # Or nobody could write for as long as somebody has the error, whose traceback holds the lock.
                    lock.unlock()
                    raise
            except OSError as error:
                raise self._failed(error) from error
            self._lock = lock
            return True

    def _begin_writing(self) -> None:
        """Nobody else writes now: what is there is final, and most of what belongs to other plans can go."""
        self._others.sweep(but=self._others.largest())
        self._tmp.unlink(missing_ok=True)
        self._noted = False
        self._open()
        if self._file is None:
            self._file = OpenFile(os.open(self._data, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
        if self._end < self._file.size:
            os.ftruncate(self._file.number, self._end)
        if self._outdated or not self._records:
            # It speaks of records that are no longer there.
            self._index.unlink(missing_ok=True)

    def add(self, row: int, block: Block, layout: str, setup: Setup) -> Block:
        """Write it, if nobody else does."""
        if row != self.rows or self.complete or not self.may_grow():
            return block
        with self._mutex:
            if row != self.rows or self.complete:
                return block
            block = shared(compact(block))
            if self._waiting.is_due(block, layout, setup):
                self._write()
            self._waiting.add(row, block, layout)
            self.rows += block.rows
        return block

    @property
    def waiting(self) -> int:
        """Those that are not yet written."""
        return self._waiting.nbytes

    def held(self) -> int:
        """The same."""
        return self.waiting

    def _write(self) -> None:
        """Have in the file what waits for it. If that fails, it goes on waiting."""
        if self._waiting.blocks:
            empty = Waiting()
            self._append(self._waiting.together(), self._waiting.start, self._waiting.layout)
            self._waiting = empty

    def _drop_waiting(self) -> None:
        empty, written = Waiting(), self._written
        self._waiting, self.rows = empty, written

    def mend(self, block: Block, start: int, layout: str) -> None:
        """Write it once more, behind all others."""
        with self._mutex:
            if self.may_grow():
                self._write()
                self._append(compact(block), start, layout)

    def _append(self, block: Block, row: int, layout: str) -> None:
        assert self._file is not None
        self._note()
        record, pieces = encode(block, row, layout, self._end, self._codec)
        try:
            self._file.append(self._end, pieces)
        except OSError as error:
            if not is_full(error) or not self._others.sweep():
                raise self._failed(error) from error
            try:
                self._file.append(self._end, pieces)
            except OSError as again:
                raise self._failed(again) from again
        self._committed = False
        self._place(record)

    def _note(self) -> None:
        if not self._noted and self._origin is not None:
            self._others.note(self._origin, begins=not self._records)
            self._noted = True

    def finish(self, row: int) -> None:
        """Say that this is all, for good."""
        with self._mutex:
            if row != self.rows or self.complete:
                return
            try:
                if not self.may_grow():
                    return
            except SpillError:
                if row != self._written:
                    raise
                # All rows are there, only an index that says so is not, and cannot be written: whoever reads here
                # next finds them one by one again.
                self.complete = True
                return
            if row != self.rows or self.complete:
                # Asking for the lock looks at the folder again, which others may have cleared or completed since.
                return
            self._write()
            self._note()
            self.complete = True
            try:
                self._commit()
            except OSError as error:
                self.complete = False
                raise self._failed(error) from error
            with suppress(OSError):
                self._others.sweep()

    def rest(self) -> None:
        """Let others write."""
        with self._mutex:
            lock, self._lock = self._lock, None
            if lock is None:
                return
            try:
                # If that fails, the records tell as much as the index would; whoever comes next only has to look at
                # each of them, and to compute what could not be written.
                with suppress(OSError, ForebayError):
                    if lock.mine:
                        self._write()
                        if not self._committed:
                            self._commit()
            finally:
                self._drop_waiting()
                lock.unlock()

    @property
    def _tmp(self) -> Path:
        return self._folder / f"{self._key}.tmp"

    def _commit(self) -> None:
        """Replace the index, after everything it speaks of is on the disk."""
        assert self._file is not None
        os.fsync(self._file.number)
        found = Index(self.complete, self._end, self._records)
        try:
            found.write(self._tmp, self._key)
            os.replace(self._tmp, self._index)
        except OSError:
            self._tmp.unlink(missing_ok=True)
            raise
        sync_folder(self._folder)
        self._committed = True

    def _failed(self, error: OSError) -> SpillError:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return SpillError(f"cache({str(self._folder)!r}): the folder is gone; iterate again to fill it anew")
        more, what = (f", {room(self._folder)}", "Make room there") if is_full(error) else ("", "See to that")
        return SpillError(
            f"cache({str(self._folder)!r}) cannot be written: {refusal(error)}; {self.rows:,} elements are in it and "
            f"stay usable{more}. {what}, or name another folder"
        )

    def clear(self) -> None:
        """Delete the files of this and of other plans, and no others. SpillError if another process writes to them."""
        with self._mutex:
            if not self._folder.is_dir():
                return
            if not self.may_grow():
                raise SpillError(
                    f"cache({str(self._folder)!r}) is being filled by another process, or by an iteration of another "
                    "dataset; end that first"
                )
            self._others.sweep()
            # The rows last: an index without them would look like damage.
            for ending in reversed(ENDINGS):
                (self._folder / f"{self._key}.{ending}").unlink(missing_ok=True)
            self._committed = True
            self._drop_waiting()
            self.rest()
