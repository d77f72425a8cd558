"""WebDataset archives: ``from_webdataset``.

Members are read where they lie, never extracted. A sample's place is the offset of its first header. Uncompressed
archives can be read by number with an index of the samples' places, which is kept beside the archive.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import Block, Column, Structure, TensorSpec
from forebay.block.objects import Objects
from forebay.block.ragged import gather
from forebay.block.spec import OBJECT, TEXT
from forebay.block.strings import Strings, object_array
from forebay.block.structure import LEAF
from forebay.errors import FileError, PlanError
from forebay.lazy import cached_property
from forebay.ledger import Lease, Ledger
from forebay.plan.check import flag
from forebay.run import Setup
from forebay.sources.files import FileIndex, FileRows, FilesNode
from forebay.storage.files import Bytes, InputFile, open_file
from forebay.storage.marks import MARK, mark_of
from forebay.storage.streams import Window, compression_of, open_stream
from forebay.storage.tar import BLOCK, KEY, Member, TarFault, find_member, ranges, read_member

_SEARCH = 1 << 18


@dataclass(frozen=True, eq=False, kw_only=True)
class Archives(FilesNode):
    """The samples of archives: dicts of a key and the contents of the members that share it."""

    fields: Sequence[str] | None = None
    compression: str | None = None
    index_files: bool = False

    kind = "from_webdataset"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "compression", compression_of(self.kind, self.compression))
        flag(self.kind, "index", self.index_files)
        if self.fields is not None:
            if isinstance(self.fields, str) or not all(isinstance(name, str) for name in self.fields):
                raise PlanError(f"from_webdataset(fields={self.fields!r}): fields must be a list of names")
            # The key is there in any case.
            names = dict.fromkeys(name.lower() for name in self.fields if name != KEY)
            object.__setattr__(self, "fields", tuple(names))
        if self.index_files and any(map(self._compressed, self.files)):
            raise PlanError("from_webdataset(index=True): compressed archives can only be read from the start on")

    def _compressed(self, path: str) -> str | None:
        return self.compression or ("GZIP" if path.endswith((".gz", ".tgz")) else None)

    def params(self) -> dict[str, Any]:
        """What decides about the rows."""
        return {name: value for name, value in super().params().items() if name != "index_files"}

    def settings(self) -> dict[str, Any]:
        """How they are read."""
        return {"index": self.index_files or None}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The fields that the user wants, or those of the first sample there is."""
        if self.fields is not None:
            return tuple(self.fields)
        for path in self.files:
            try:
                rows = self.rows(path, 0, Ledger(1 << 62).lease("fields"), 1 << 16, 1 << 62)
            except FileError:
                # Whoever reads the files in turn will say so.
                continue
            try:
                found = rows.first_fields()
            finally:
                rows.close()
            if found is not None:
                return found
        return ()

    @cached_property
    def structure(self) -> Structure:
        """A dict."""
        return Structure(dict, (KEY, *self.names), (LEAF,) * (1 + len(self.names)))

    def spec(self, *inputs: Any) -> Any | None:
        """Bytes; None at times where samples may lack a field."""
        if self.fields is None:
            return None
        return {KEY: TensorSpec((), TEXT)} | {name: TensorSpec((), OBJECT) for name in self.fields}

    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """From an offset on."""
        return self.rows(path, at or 0, lease, setup.block_bytes, setup.ledger.budget)

    def rows(self, path: str, at: int, lease: Lease, piece: int, budget: int) -> "Samples":
        """Those of an archive from a place on."""
        return Samples(self, open_file(path), self._compressed(path), at, lease, piece, budget)

    def counted(self) -> tuple[str, ...] | None:
        """With an index, which compressed files cannot have."""
        if self.compression is not None or any(map(self._compressed, self.files)):
            return None
        return () if self.index_files else ("with index=True",)

    def index(self, path: str) -> FileIndex | None:
        """If the user wants one."""
        if not self.index_files:
            return None
        from forebay.sources.webdataset_index import ArchiveIndex

        return ArchiveIndex(self, path)

    def block(self, data: Bytes, samples: list[tuple[str, dict[str, Member]]]) -> Block:
        """Samples whose members lie in `data`."""
        columns: list[Column] = [Strings.of([key for key, _ in samples], (), True)]
        for name in self.names:
            found = [fields.get(name) for _, fields in samples]
            present = [member for member in found if member is not None]
            spans = ranges([(member.start, member.stop) for member in present])
            offsets = np.zeros(len(present) + 1, np.int64)
            np.cumsum(spans[:, 1] - spans[:, 0], out=offsets[1:])
            starts, stops = np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1])
            column = Strings(gather(data, starts, stops), offsets, (), False)
            if len(present) == len(found):
                columns.append(column)
            else:
                values = iter(column.rows())
                columns.append(Objects(object_array([None if member is None else next(values) for member in found])))
        return Block(self.structure, columns, len(samples))

    def add(self, fields: dict[str, Member], member: Member) -> None:
        """Put a member among the fields of its sample. TarFault if it cannot be one of them."""
        assert member.field is not None
        if member.field in fields:
            raise TarFault(f"sample {member.key!r} has two members for the field {member.field!r}")
        if member.refused is not None and (self.fields is None or member.field in self.fields):
            raise TarFault(f"sample {member.key!r}: its field {member.field!r} {member.refused}")
        fields[member.field] = member

    def check(self, key: str, fields: dict[str, Member]) -> None:
        """TarFault if a sample has other fields than the first one, and the user has not said which to take."""
        if self.fields is None and fields.keys() != set(self.names):
            raise TarFault(
                f"sample {key!r} has the fields {sorted(fields)}, the first one {sorted(self.names)}: name those that "
                "you want (fields=[...]); where one is missing, it is None"
            )


class Samples(FileRows):
    """Samples in order. What has been read waits in a window."""

    def __init__(
        self, node: Archives, file: InputFile, compression: str | None, at: int, lease: Lease, piece: int, budget: int
    ) -> None:
        self._node = node
        self._file = file
        try:
            stream = open_stream(file, compression, lease, at)
        except FileError:
            file.close()
            raise
        self._piece = piece if compression is not None else max(min(piece, file.size), 1)
        self._window = Window(stream, file.path, lease, self._piece, budget)
        self._data = self._window.data
        self._ended = False
        # Where to go on after a fault, from the window's first byte: at the next header from there on, if `search`.
        self._go_on = 0
        self._search = False
        self._place = 0  # Of the fault itself.
        self._faulty: str | None = None
        self.damaged = 0  # The sample that ``spans`` ended with.

    @property
    def at(self) -> int:
        """The offset of the next sample's first header."""
        return self._window.position

    @property
    def offset(self) -> int:
        """The same."""
        return self.at

    def _have(self, least: int) -> Bytes:
        # Asked twice for every member, mostly for what is there.
        if len(self._data) < least:
            self._window.fill(least)
            self._data = self._window.data
        return self._data

    def _move(self, count: int) -> None:
        self._window.move(count)
        self._data = self._window.data

    def read(self, rows: int) -> Block | None:
        """As many samples as make a block; their members' contents become columns at once."""
        samples: list[tuple[str, dict[str, Member]]] = []
        consumed = 0
        try:
            for key, fields, end in self._samples():
                self._go_on, self._search, self._place = end, False, consumed
                self._node.check(key, fields)
                samples.append((key, fields))
                consumed = end
                if len(samples) >= rows or end >= self._piece:
                    break
        except TarFault as fault:
            if not samples:
                raise self._error(fault, self._window.position + self._place) from None
        except FileError:
            if not samples:
                raise
        if not samples:
            return None
        block = self._node.block(self._window.data, samples)
        self._move(consumed)
        return block

    def _samples(self) -> Iterator[tuple[str, dict[str, Member], int]]:
        """Key, members, and where the next one begins."""
        key: str | None = None
        fields: dict[str, Member] = {}
        at = 0
        while not self._ended:
            self._go_on, self._search, self._place = at, True, at
            try:
                member = read_member(self._have, at, self._window.left)
            except TarFault:
                self._faulty = key
                raise
            if member is not None and member.key is None:
                at = self._behind(member)
                continue
            if key is not None and (member is None or member.key != key):
                yield key, fields, at
                fields = {}
            if member is None:
                self._ended = True
                return
            assert member.key is not None
            assert member.field is not None
            if len(self._have(member.stop)) < member.stop:
                raise TarFault(f"the archive ends in the middle of a member of {member.stop - member.start:,} bytes")
            try:
                self._node.add(fields, member)
            except TarFault:
                # The next header is known to be behind it.
                self._go_on, self._search = self._behind(member), False
                self._faulty = member.key
                raise
            key = member.key
            at = self._behind(member)

    def _behind(self, member: Member) -> int:
        """The place behind a member; the last one may lack its padding."""
        left = self._window.left
        return member.end if left is None else min(member.end, left)

    def first_fields(self) -> tuple[str, ...] | None:
        """Those of the first sample, or, where faults are passed over, of the first good one; None if there is none."""
        while True:
            try:
                first = next(self._samples(), None)
            except (TarFault, FileError):
                if self._node.skips and self.recover():
                    continue
                return None
            return None if first is None else tuple(first[1])

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where samples begin and end in the archive, without looking at their contents."""
        key: str | None = None
        start = 0
        while True:
            begin = self._window.position
            try:
                member = read_member(self._have, 0, self._window.left)
            except TarFault as fault:
                self.damaged = begin if key is None else start
                raise self._error(fault, begin) from None
            if member is None or (member.key is not None and member.key != key):
                if key is not None:
                    yield start, begin
                if member is None:
                    return
                key, start = member.key, begin
            self._move(self._behind(member))

    def _error(self, fault: TarFault, at: int) -> FileError:
        what = None if at else mark_of(self._window.data[:MARK].tobytes())
        return FileError(self._file.path, str(fault), at) if what is None else FileError(self._file.path, what)

    def recover(self) -> bool:
        """Behind the sample that is at fault, or at the next header that there is."""
        try:
            return self._found_next()
        except FileError:
            # The compressed data itself is damaged, and nothing comes behind that.
            return False

    def _found_next(self) -> bool:
        self._move(self._go_on)
        if not self._search:
            return self._behind_faulty()
        # Headers stand at multiples of a block, counted from the start of the archive.
        self._move(BLOCK - self._window.position % BLOCK)
        while len(data := self._have(_SEARCH)) >= BLOCK:
            found = find_member(data)
            self._move(found if found >= 0 else len(data) // BLOCK * BLOCK)
            if found >= 0:
                return self._behind_faulty()
        return False

    def _behind_faulty(self) -> bool:
        """What is left of a sample that is at fault is no sample of its own."""
        key, self._faulty = self._faulty, None
        while len(self._have(BLOCK)) >= BLOCK:
            try:
                member = read_member(self._have, 0, self._window.left)
            except TarFault:
                return True
            if member is None or (member.key is not None and member.key != key):
                return member is not None
            self._move(self._behind(member))
        return False

    def close(self) -> None:
        """The archive and the window."""
        self._window.close()
        self._file.close()


class Decode:
    """The function of ``map`` that decodes fields."""

    def __init__(self, functions: dict[str, Callable[[bytes], Any]]) -> None:
        for name, function in functions.items():
            if not callable(function):
                raise PlanError(f"from_webdataset(decode={{{name!r}: {function!r}}}): it must be a function")
        self._functions = {name.lower(): function for name, function in functions.items()}

    def __call__(self, sample: dict[str, Any]) -> dict[str, Any]:
        """The sample with these fields decoded."""
        for name, function in self._functions.items():
            if sample.get(name) is not None:
                sample[name] = function(sample[name])
        return sample
