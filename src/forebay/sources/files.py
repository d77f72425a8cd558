"""Rows from a list of files: what all formats share. A format says how one file is read; see ``FileRows``."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from forebay.block import START, Block, Cursor, Indices, concat_blocks
from forebay.errors import FileError, PlanError, place
from forebay.lazy import cached_property
from forebay.ledger import Lease
from forebay.plan.fingerprint import digest
from forebay.plan.node import UNKNOWN, Build
from forebay.plan.skips import Skips
from forebay.plan.text import brief, exact
from forebay.run import Access, Operator, Pace, ReadRows, Setup
from forebay.run.faults import Faults
from forebay.sources.slices import Slices, slices_of
from forebay.storage.files import local_version
from forebay.storage.line_numbers import LineNumbers

# Not more than this part of the rows that fit is given up for blocks to be even.
_LOST = 4


class FileRows(ABC):
    """One open file, read in order. What a format has to provide.

    `at` is the place of the next row: a number, or any other JSON value that ``FilesNode.open`` finds it again by.
    """

    at: Any

    @abstractmethod
    def read(self, rows: int) -> Block | None:
        """The next rows, at least one and at most so many; None at the end.

        At a fault, the rows before it; with the next call, FileError.
        """

    @property
    def offset(self) -> int | None:
        """The byte at which the next row begins, in formats that tell their places so."""
        return None

    @abstractmethod
    def recover(self) -> bool:
        """After a FileError: go on behind what cannot be read. False if that is the rest of the file."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""


class FileIndex(ABC):
    """The rows of one file by number, for formats that know where each of them is."""

    length: int
    looked_at: tuple[str, str | None] = "", None
    """Which file it is of, and of which version, where that can be asked at no cost."""

    def within(self, setup: Setup) -> list[Lease]:
        """As ``Access.within``."""
        return []

    def origin(self, row: int) -> str | None:
        """The place of a row in the file, in formats that know it."""
        return None

    @abstractmethod
    def read(self, start: int, stop: int) -> Block:
        """Rows start to stop, at least one."""

    @abstractmethod
    def gather(self, rows: Indices) -> Block:
        """The rows with these numbers, at least one, in this order."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FilesNode(Skips):
    """The rows of all files, one file after another.

    With ``on_error="skip"``, what cannot be read is passed over and logged, up to `max_errors` times in each file; a
    file that cannot be opened counts as one. A format adds fields for its own arguments.
    """

    files: tuple[str, ...]

    untold: ClassVar[tuple[str, ...]] = ()
    """Fields that say nothing to a reader of the plan that others do not say as well."""

    in_lines: ClassVar[bool] = False
    """Whether files are text, so that a line's number says more of a place than its offset."""

    def __post_init__(self) -> None:
        self.check_errors()

    @property
    def counts_lines(self) -> bool:
        """Whether an offset is one of the file as it lies there, in which lines can be counted."""
        return self.in_lines

    def first(self, setup: Setup) -> int:
        """How many rows the first block may have."""
        return setup.first

    @abstractmethod
    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """Begin to read a file, at its start if `at` is None. Buffers are held by the lease."""

    def index(self, path: str) -> FileIndex | None:
        """The rows of a file by number, where the format and the user's arguments allow it. Called once per file."""
        return None

    def reads(self) -> tuple[str, ...]:
        """All files."""
        return self.files

    @cached_property
    def indexes(self) -> "tuple[FileIndex, ...] | None":
        """Those of all files, if every one has one."""
        found = []
        # An index that led back here would be freed by the garbage collector alone, with all rows that it keeps.
        alike = copy(self)
        for path in self.files:
            version = local_version(path)
            try:
                index = alike.index(path)
            except FileError as error:
                raise error.read_by(str(self.site)) from error
            if index is None:
                return None
            index.looked_at = path, version
            found.append(index)
        return tuple(found) if found else None

    def cardinality(self) -> int:
        """Known only where there is an index."""
        return UNKNOWN if self.indexes is None else sum(index.length for index in self.indexes)

    def counted(self) -> tuple[str, ...] | None:
        """What its arguments lack for rows to be counted, in words; None if that cannot be had in this format."""
        return None

    def count_hint(self, *more: str) -> str | None:
        """The same as advice, with what other steps have to do about it."""
        changes = self.counted()
        told = ", ".join((*more, *changes)) if changes is not None else ""
        return f"{self.site} tells it ahead {told}" if told else None

    def access(self) -> Access | None:
        """By number, where there is an index."""
        return None if self.indexes is None else _IndexedFiles(self, self.indexes)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """By number, or in order."""
        access = self.access()
        return _ReadFiles(self, setup) if access is None else ReadRows(self.site, access, setup)

    def layout(self) -> str:
        """A row's number, or its place in a file."""
        return self.kind if self.indexes is None else f"indexed {self.kind}"

    def describe(self) -> str:
        """The first of the files, and how many there are."""
        params = {name: value for name, value in self.params().items() if name not in ("files", *self.untold)}
        given = self._arguments(params | self.settings(), lambda name, value: brief(repr(value)))
        names = brief(repr(self.files[0])) if self.files else "no files"
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.kind}({names}{more}{', ' if given else ''}{given})"

    def signature(self) -> str:
        """The files by name, wherever they lie now."""
        params = {name: value for name, value in self.params().items() if name != "files"}
        given = self._arguments(params, lambda name, value: exact(brief(repr(value)), repr(value)))
        return f"{self.kind}({len(self.files)} files{', ' if given else ''}{given})#{_names_digest(self.files)}"


class _ReadFiles(Operator):
    """State: which file, the place in it, and how many faults were passed over in it before."""

    def __init__(self, node: FilesNode, setup: Setup) -> None:
        super().__init__(node.site)
        self._node = node
        self._setup = setup
        self._lease = setup.ledger.lease(str(node.site))
        self._pace = Pace(setup.block_bytes, setup.unit, node.first(setup))
        self._unit = setup.unit
        self._even = setup.even
        self._given = 0  # Rows, since the row that was sought.
        self._rows: FileRows | None = None
        self._file = 0
        self._at: Any = None  # Where to open the file, as long as it is not open.
        self._faults = Faults(node.tolerance, self.meter)  # Of the present file.
        self._lines = LineNumbers() if node.counts_lines else None

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """To the row that the state names; those behind it are for the caller to drop."""
        self._close_file()
        self._given = -cursor.skip
        state = cursor.state or {"file": 0, "at": None, "faults": 0}
        self._file, self._at, self._faults.count = state["file"], state["at"], state["faults"]
        if self._file > len(self._node.files):
            raise ValueError(f"not a state of {self.site}: {state!r}")
        return cursor.skip

    def pull(self) -> Block | None:
        """As much of the present file as makes a block."""
        while self._file < len(self._node.files):
            try:
                rows = self._opened()
                state = {"file": self._file, "at": rows.at, "faults": self._faults.count}
                block = rows.read(self._wanted())
            except FileError as error:
                self._pass_over(error)
                continue
            if block is not None:
                self._pace.observe(block.rows, block.nbytes, 0.0)
                self._given += block.rows
                return block.at(Cursor(state))
            self._next_file()
        return None

    def _wanted(self) -> int:
        """Rows up to where a batch ends. A file that ends elsewhere would otherwise shift all blocks behind it."""
        rows, over = self._pace.rows, self._given % self._unit
        if rows > over:
            rows -= over
        over = (self._given + rows) % self._even
        return rows - over if _LOST * over <= rows else rows

    def _opened(self) -> FileRows:
        if self._rows is None:
            self._rows = self._node.open(self._node.files[self._file], self._at, self._lease, self._setup)
        return self._rows

    def _pass_over(self, error: FileError) -> None:
        """Go on behind a fault, or raise it."""
        error = error.read_by(str(self.site))
        passes = self._faults.passes(error)
        if not passes or self._faults.told:
            error = error.at_line(self._line(error.path, error.offset))
        if not passes:
            raise self._faults.refused(error)
        self._faults.add(error)
        if self._rows is None or not self._rows.recover():
            self._next_file()

    def _line(self, path: str, offset: int | None) -> int | None:
        return None if self._lines is None or offset is None else self._lines.at(path, offset)

    def _next_file(self) -> None:
        self._close_file()
        self._file, self._at, self._faults.count = self._file + 1, None, 0

    def _close_file(self) -> None:
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()

    def origin(self, cursor: Cursor) -> str | None:
        """The file, and the place in it where the format tells that, found by reading the block again up to there."""
        state = cursor.state or {"file": 0, "at": None}
        path = self._node.files[state["file"]]
        offset: int | None = None
        lease = self._setup.ledger.lease(str(self.site))
        try:
            with closing(self._node.open(path, state["at"], lease, self._setup)) as rows:
                left = cursor.skip
                while left and (block := rows.read(left)) is not None:
                    left -= block.rows
                offset = rows.offset
        except FileError:
            # The name alone still helps.
            offset = None
        finally:
            lease.release()
        return place(path, offset, self._line(path, offset))

    def held(self) -> tuple[int, float]:
        """What has been read of a file and not made into rows yet."""
        held = self._lease.held
        return held, 1.0 if held else 0.0

    def close(self) -> None:
        """The file, and the buffer with it."""
        self._close_file()
        self._lease.release()


class _IndexedFiles(Access):
    def __init__(self, node: FilesNode, indexes: tuple[FileIndex, ...]) -> None:
        self._node = node
        self._indexes = indexes
        self._starts = np.concatenate([[0], np.cumsum([index.length for index in indexes])]).astype(np.int64)
        super().__init__(int(self._starts[-1]))

    def within(self, setup: Setup) -> list[Lease]:
        """For each file, all of which have to be those that were counted."""
        for path, version in (index.looked_at for index in self._indexes):
            if version is not None and local_version(path) != version:
                raise changed(path).read_by(str(self._node.site))
        return [lease for index in self._indexes for lease in index.within(setup)]

    def origin(self, row: int, epoch: int) -> str | None:
        """As its file knows it."""
        file = int(np.searchsorted(self._starts, row, "right")) - 1
        return self._indexes[file].origin(row - int(self._starts[file]))

    def read(self, start: int, stop: int, epoch: int) -> Block:
        """In one piece from each file."""
        first, last = (int(np.searchsorted(self._starts, row, "right")) - 1 for row in (start, stop - 1))
        blocks = []
        for file in range(first, last + 1):
            base, end = int(self._starts[file]), int(self._starts[file + 1])
            if base < end:
                blocks.append(self._read(file, max(start, base) - base, min(stop, end) - base))
        return concat_blocks(blocks)

    def gather(self, indices: Indices, epoch: int) -> Block:
        """The rows of each file in the order they have there, then all of them in the order asked for."""
        order = np.argsort(indices, kind="stable")
        rows = indices[order]
        files = np.searchsorted(self._starts, rows, "right") - 1
        blocks = []
        try:
            for file in np.unique(files).tolist():
                low, high = np.searchsorted(files, [file, file + 1])
                blocks.append(self._indexes[file].gather(rows[low:high] - self._starts[file]))
        except FileError as error:
            raise error.read_by(str(self._node.site)) from error
        gathered = concat_blocks(blocks)
        if len(order) == 1 or (np.diff(order) == 1).all():
            return gathered
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return gathered.take(place).at(START)

    def _read(self, file: int, start: int, stop: int) -> Block:
        try:
            return self._indexes[file].read(start, stop)
        except FileError as error:
            raise error.read_by(str(self._node.site)) from error


@dataclass(frozen=True, eq=False, kw_only=True)
class FileNames(Slices):
    """Paths as elements, for files that are read in turns. They are told apart as those of a ``FilesNode`` are."""

    kind = "files"

    def signature(self) -> str:
        """The files by name, wherever they lie now."""
        return f"files({self.length})#{_names_digest(self.columns[0].rows())}"

    def reads(self) -> tuple[str, ...]:
        """The files that the next step opens."""
        return tuple(self.columns[0].rows())

    @staticmethod
    def of(paths: tuple[str, ...], where: str, label: str | None = None) -> "FileNames":
        """The node of these paths."""
        made = slices_of(np.array(paths, object), label, where)
        return FileNames(structure=made.structure, columns=made.columns, length=made.length, label=label, where=where)


def changed(path: str) -> FileError:
    """The error for rows that lie elsewhere by now."""
    return FileError(path, "has changed since this dataset looked at it, to know where its rows are; build it again")


def _names_digest(paths: Iterable[str]) -> str:
    return digest(tuple(os.path.basename(path) for path in paths))


def paths_of(call: str, filenames: Any) -> tuple[str, ...]:
    """Paths as a user gives them: one, or a list or an array of them."""
    if isinstance(filenames, (str, bytes, os.PathLike)):
        filenames = [filenames]
    elif isinstance(filenames, np.ndarray):
        filenames = filenames.reshape(-1).tolist()
    elif not isinstance(filenames, Iterable):
        raise PlanError(f"{call}({filenames!r}): give a path, a list of paths, or a dataset of paths")
    paths = []
    for each in filenames:
        try:
            paths.append(os.fsdecode(each))
        except TypeError:
            raise PlanError(f"{call}({brief(repr(filenames))}): {each!r} is not a path") from None
    return tuple(paths)
