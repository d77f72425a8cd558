"""Samples of WebDataset archives by number."""

from typing import Any

import numpy as np

from forebay.block import Block, Indices
from forebay.errors import FileError, RemoteError
from forebay.ledger import Ledger
from forebay.run.faults import Faults
from forebay.sources.span_index import SpanIndex
from forebay.sources.webdataset import Archives, Samples
from forebay.storage.files import Bytes, InputFile
from forebay.storage.row_index import RowIndex
from forebay.storage.tar import Member, TarFault, ranges, read_member


class ArchiveIndex(SpanIndex):
    """Samples by number."""

    def __init__(self, node: Archives, path: str) -> None:
        self._node = node
        super().__init__(path, self._checked, node.tolerance, self._build)

    def __reduce__(self) -> Any:
        return ArchiveIndex, (self._node, self._path)

    @property
    def _checked(self) -> str | None:
        """Which samples are good depends on the fields that are wanted of them."""
        return f"fields {self._node.names}, all alike: {self._node.fields is None}" if self._node.skips else None

    def _build(self, file: InputFile) -> RowIndex:
        """Headers alone, or whole samples if damaged ones are to be left out."""
        rows = self._node.rows(file.path, 0, Ledger(1 << 62).lease("index"), 1 << 20, 1 << 62)
        skip = self._node.skips
        found: list[tuple[int, int]] = []
        faults = Faults(self._node.tolerance)
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
                except RemoteError:
                    raise
                except FileError as error:
                    if not skip:
                        # A row of its own that fails when it is read, so that those before it come out first.
                        found.append((rows.damaged, rows.damaged))
                        break
                    if faults.full:
                        raise faults.refused(error) from error
                    faults.add(error)
                    if not rows.recover():
                        break
        finally:
            rows.close()
        starts, stops = (np.ascontiguousarray(side) for side in ranges(found).T)
        return RowIndex(starts, stops, self._checked, faults.count)

    def made(self, data: Bytes, starts: Indices, stops: Indices) -> Block:
        """Their headers are parsed where they lie."""
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
            if member.key is not None:
                self._node.add(fields, member)
                key = member.key
            at = member.end
        if key is None:
            raise TarFault("has changed since its index was made")
        self._node.check(key, fields)
        return key, fields

    def rows_from(self, at: int) -> Samples:
        """As they are read in order."""
        return self._node.rows(self._path, at, Ledger(1 << 62).lease("fault"), 1 << 16, 1 << 62)
