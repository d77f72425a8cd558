"""Samples of WebDataset archives by number."""

from typing import Any

import numpy as np

from forebay.block import Block, Indices
from forebay.errors import FileError
from forebay.ledger import Ledger
from forebay.sources.files import FileIndex, log_skipped
from forebay.sources.webdataset import Archives
from forebay.storage.files import Bytes, InputFile, open_file
from forebay.storage.row_index import RowIndex, load_index, save_index
from forebay.storage.tar import Member, TarFault, ranges, read_member


class ArchiveIndex(FileIndex):
    """Samples by number."""

    def __init__(self, node: Archives, path: str) -> None:
        self._node = node
        self._path = path
        skip = node.on_error == "skip"
        file = open_file(path)
        try:
            found = load_index(file, checked=skip)
            if found is None:
                found = self._build(skip)
                save_index(file, found)
        finally:
            file.close()
        self._rows = found
        self.length = len(found.starts)
        self._opened: InputFile | None = None

    def __reduce__(self) -> Any:
        return ArchiveIndex, (self._node, self._path)

    def _build(self, skip: bool) -> RowIndex:
        """Headers alone, or whole samples if damaged ones are to be left out."""
        rows = self._node.rows(self._path, 0, Ledger(1 << 62).lease("index"), 1 << 20, 1 << 62)
        found: list[tuple[int, int]] = []
        faults = 0
        try:
            while True:
                try:
                    if not skip:
                        for span in rows.spans():
                            found.append(span)  # noqa: PERF402 - what came before an error counts
                        break
                    begin = rows.at
                    if rows.read(1) is None:
                        break
                    found.append((begin, rows.at))
                except FileError as error:
                    if not skip:
                        # A row of its own that fails when it is read, so that those before it come out first.
                        found.append((rows.damaged, rows.damaged))
                        break
                    faults += 1
                    if faults > self._node.max_errors:
                        raise
                    log_skipped(error)
                    if not rows.recover():
                        break
        finally:
            rows.close()
        spans = ranges(found)
        return RowIndex(np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1]), checked=skip)

    def read(self, start: int, stop: int) -> Block:
        """As any others."""
        return self.gather(np.arange(start, stop))

    def gather(self, rows: Indices) -> Block:
        """One read for each run of samples that lie behind one another."""
        starts, stops = self._rows.starts[rows], self._rows.stops[rows]
        for bad in np.flatnonzero(starts == stops)[:1].tolist():
            raise self._fault(int(starts[bad]))
        if self._opened is None:
            self._opened = open_file(self._path)
        data = np.empty(int((stops - starts).sum()), np.uint8)
        breaks = np.flatnonzero(starts[1:] != stops[:-1]) + 1
        firsts, lasts = np.concatenate([[0], breaks]), np.concatenate([breaks, [len(starts)]]) - 1
        self._opened.read_ranges(starts[firsts], stops[lasts], data)
        samples = []
        ends = np.cumsum(stops - starts).tolist()
        at = 0
        for row, end in enumerate(ends):
            try:
                samples.append(self._sample(data, at, end))
            except TarFault as fault:
                raise FileError(self._path, str(fault), int(starts[row])) from None
            at = end
        return self._node.block(data, samples)

    def _sample(self, data: Bytes, at: int, end: int) -> tuple[str, dict[str, Member]]:
        key: str | None = None
        fields: dict[str, Member] = {}
        while at < end:
            member = read_member(lambda least: data[:end], at, end)
            if member is None:
                break
            if member.key is not None and member.field is not None:
                if member.field in fields:
                    raise TarFault(f"sample {member.key!r} has two members for the field {member.field!r}")
                key = member.key
                fields[member.field] = member
            at = member.end
        if key is None:
            raise TarFault("has changed since its index was made")
        self._node.check(key, fields)
        return key, fields

    def _fault(self, at: int) -> FileError:
        rows = self._node.rows(self._path, at, Ledger(1 << 62).lease("fault"), 1 << 16, 1 << 62)
        try:
            rows.read(1)
        except FileError as error:
            return error
        finally:
            rows.close()
        return FileError(self._path, "has changed since its index was made", at)
