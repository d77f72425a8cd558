"""Files that a dataset is written to: which rows go where, and under their names only when all of them are whole."""

import os
from abc import ABC, abstractmethod
from typing import Any

from forebay.block import Block
from forebay.errors import PlanError
from forebay.plan.check import whole_number
from forebay.storage.output import OutputFile, check_folder_of


def file_names(call: str, path: Any, shards: Any, rows_per_file: Any, total: int) -> tuple[str, int | None]:
    """The pattern of names, and how many rows go to each file; None for all of them to one."""
    try:
        pattern = os.fsdecode(path)
    except TypeError:
        raise PlanError(f"{call}(path={path!r}): path must be the name of a file") from None
    if shards is not None and rows_per_file is not None:
        raise PlanError(f"{call}(): give shards or rows_per_file, not both")
    if shards is not None:
        shards = whole_number(call, "shards", shards, 1)
        if total < 0:
            raise PlanError(f"{call}(shards={shards}): how many elements there are is not known; give rows_per_file")
        rows = max(-(-total // shards), 1)
    elif rows_per_file is not None:
        rows = whole_number(call, "rows_per_file", rows_per_file, 1)
    else:
        return pattern, None
    try:
        if numbered(pattern, 0) == numbered(pattern, 1):
            raise IndexError
    except (IndexError, KeyError, ValueError):
        raise PlanError(
            f"{call}({pattern!r}): names of several files need a place for the number, as in 'part-{{shard:05d}}.x'"
        ) from None
    return pattern, rows


def numbered(pattern: str, number: int) -> str:
    """The name of a file: ``{shard}``, or ``{}`` for short, stands for its number."""
    return pattern.format(number, shard=number)


class FilesWriter(ABC):
    """Rows into files, so many to each. A format says how an open file takes them."""

    def __init__(self, call: str, pattern: str, rows_per_file: int | None) -> None:
        self._call = call
        self._pattern = pattern
        self._most = rows_per_file
        self._done: list[OutputFile] = []
        self._output: OutputFile | None = None
        self._in_file = 0
        self._number = 0
        self.rows = 0
        # Before rows are made that would have no place to go.
        check_folder_of(self._name())

    def add(self, block: Block) -> None:
        """Rows in the order they come."""
        while block.rows:
            if self._output is None:
                self._open()
            room = block.rows if self._most is None else min(block.rows, self._most - self._in_file)
            self.write(block.slice(0, room))
            self._in_file += room
            self.rows += room
            if self._in_file == self._most:
                self._complete()
            if room == block.rows:
                break
            block = block.slice(room, block.rows)

    def _open(self) -> OutputFile:
        self._output = OutputFile(self._name(), atomic=True)
        self._number += 1
        self._in_file = 0
        self.begin(self._output)
        return self._output

    def _name(self) -> str:
        return self._pattern if self._most is None else numbered(self._pattern, self._number)

    def _complete(self) -> None:
        output, self._output = self._output, None
        if output is not None:
            self._done.append(output)
            self.end()
            output.finish()

    def finish(self) -> None:
        """Complete the last file, then give all of them their names."""
        if self._output is None and not self._done:
            # A dataset of no elements is a file of no rows.
            self._open()
        self._complete()
        for output in self._done:
            output.close()
        self._done = []

    def close(self) -> None:
        """Give up what has no name yet."""
        if self._output is not None:
            self._done.append(self._output)
            self._output = None
        for output in self._done:
            output.discard()
        self._done = []

    @abstractmethod
    def begin(self, output: OutputFile) -> None:
        """A new file."""

    @abstractmethod
    def write(self, block: Block) -> None:
        """Rows for it."""

    @abstractmethod
    def end(self) -> None:
        """No more rows for it."""
