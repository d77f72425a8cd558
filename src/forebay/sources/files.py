"""Rows from a list of files: what all formats share. A format says how one file is read; see ``FileRows``."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from forebay.block import START, Block, Cursor, Indices, concat_blocks
from forebay.errors import FileError, PlanError
from forebay.ledger import Lease
from forebay.plan.check import keep_whole
from forebay.plan.fingerprint import digest
from forebay.plan.node import UNKNOWN, Build, Node
from forebay.plan.text import brief
from forebay.run import Access, Operator, Pace, ReadRows, Setup
from forebay.sources.slices import Slices, slices

MAX_ERRORS = 100
"""How many faults of one file are passed over if nothing else is said."""


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

    @abstractmethod
    def recover(self) -> bool:
        """After a FileError: go on behind what cannot be read. False if that is the rest of the file."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""


class FileIndex(ABC):
    """The rows of one file by number, for formats that know where each of them is."""

    length: int

    def within(self, setup: Setup) -> None:
        """Told before reading: the budget and the disk that rows kept between reads may use."""
        return

    @abstractmethod
    def read(self, start: int, stop: int) -> Block:
        """Rows start to stop, at least one."""

    @abstractmethod
    def gather(self, rows: Indices) -> Block:
        """The rows with these numbers, at least one, in this order."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FilesNode(Node):
    """The rows of all files, one file after another.

    With ``on_error="skip"``, what cannot be read is passed over and logged, up to `max_errors` times in each file; a
    file that cannot be opened counts as one. A format adds fields for its own arguments.
    """

    files: tuple[str, ...]
    on_error: str = "raise"
    max_errors: int = MAX_ERRORS

    def __post_init__(self) -> None:
        if self.on_error not in ("raise", "skip"):
            raise PlanError(f"{self.kind}(on_error={self.on_error!r}): on_error must be 'raise' or 'skip'")
        keep_whole(self, "max_errors", 0)

    @abstractmethod
    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """Begin to read a file, at its start if `at` is None. Buffers are held by the lease."""

    def index(self, path: str) -> FileIndex | None:
        """The rows of a file by number, where the format and the user's arguments allow it. Called once per file."""
        return None

    @cached_property
    def indexes(self) -> "tuple[FileIndex, ...] | None":
        """Those of all files, if every one has one."""
        found = []
        for path in self.files:
            try:
                index = self.index(path)
            except FileError as error:
                raise error.read_by(str(self.site)) from error
            if index is None:
                return None
            found.append(index)
        return tuple(found) if found else None

    def cardinality(self) -> int:
        """Known only where there is an index."""
        return UNKNOWN if self.indexes is None else sum(index.length for index in self.indexes)

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
        params = {name: value for name, value in self.params().items() if name != "files"}
        given = self._arguments(params | self.settings(), lambda name, value: repr(value))
        names = brief(repr(self.files[0])) if self.files else "no files"
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.kind}({names}{more}{', ' if given else ''}{given})"

    def signature(self) -> str:
        """The files by name, wherever they lie now."""
        params = {name: value for name, value in self.params().items() if name != "files"}
        given = self._arguments(params, lambda name, value: repr(value))
        return f"{self.kind}({len(self.files)} files{', ' if given else ''}{given})#{_names_digest(self.files)}"


class _ReadFiles(Operator):
    """State: which file, the place in it, and how many faults were passed over in it before."""

    def __init__(self, node: FilesNode, setup: Setup) -> None:
        super().__init__(node.site)
        self._node = node
        self._setup = setup
        self._lease = setup.ledger.lease(str(node.site))
        self._pace = Pace(setup.block_bytes, setup.unit, setup.first)
        self._unit = setup.unit
        self._given = 0  # Rows, since the row that was sought.
        self._rows: FileRows | None = None
        self._file = 0
        self._at: Any = None  # Where to open the file, as long as it is not open.
        self._faults = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """To the row that the state names; those behind it are for the caller to drop."""
        self._close_file()
        self._given = -cursor.skip
        state = cursor.state or {"file": 0, "at": None, "faults": 0}
        self._file, self._at, self._faults = state["file"], state["at"], state["faults"]
        if self._file > len(self._node.files):
            raise ValueError(f"not a state of {self.site}: {state!r}")
        return cursor.skip

    def pull(self) -> Block | None:
        """As much of the present file as makes a block."""
        while self._file < len(self._node.files):
            try:
                rows = self._opened()
                state = {"file": self._file, "at": rows.at, "faults": self._faults}
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
        return rows - over if rows > over else rows

    def _opened(self) -> FileRows:
        if self._rows is None:
            self._rows = self._node.open(self._node.files[self._file], self._at, self._lease, self._setup)
        return self._rows

    def _pass_over(self, error: FileError) -> None:
        """Go on behind a fault, or raise it."""
        error = error.read_by(str(self.site))
        if self._node.on_error == "raise":
            raise error
        if self._faults >= self._node.max_errors:
            reason = f"{error.reason}; {self._faults} faults of this file were passed over before (max_errors)"
            raise FileError(error.path, reason, error.offset, error.step) from error
        self._faults += 1
        log_skipped(error)
        if self._rows is None or not self._rows.recover():
            self._next_file()

    def _next_file(self) -> None:
        self._close_file()
        self._file, self._at, self._faults = self._file + 1, None, 0

    def _close_file(self) -> None:
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()

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

    def within(self, setup: Setup) -> None:
        """For each file."""
        for index in self._indexes:
            index.within(setup)

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

    @staticmethod
    def of(paths: tuple[str, ...], where: str, label: str | None = None) -> "FileNames":
        """The node of these paths."""
        made = slices(np.array(paths, object), label, where)
        return FileNames(structure=made.structure, columns=made.columns, length=made.length, label=label, where=where)


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


def log_skipped(error: FileError) -> None:
    """What was left out, in the log of the program."""
    import logging

    logging.getLogger("forebay").warning("skipped: %s", error)
