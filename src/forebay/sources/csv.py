"""CSV files: ``CsvDataset`` and ``Dataset.from_csv``.

A record's place in an uncompressed file is its offset, so resuming is a seek; a compressed file is unfolded again up
to there. Records have no numbers: where one begins depends on the quotes before it.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from forebay._native import CsvParser, csv_fields
from forebay.block import Block, Column, Structure, TensorSpec
from forebay.block.dense import Dense
from forebay.block.spec import BYTES
from forebay.block.strings import Strings
from forebay.errors import FileError, PlanError
from forebay.ledger import Lease
from forebay.plan.check import flag
from forebay.plan.text import brief
from forebay.run import Setup
from forebay.sources.files import FileRows
from forebay.sources.streamed import StreamedFile, StreamedFiles, StreamedRows

TYPES = {np.dtype(name): number for number, name in enumerate(("int32", "int64", "float32", "float64"))} | {BYTES: 4}
# Bytes of the longest header.
_HEADER = 1 << 20
_MORE, _FAULT = 1, 2
_OPEN_QUOTE, _STRAY_QUOTE, _QUOTE_INSIDE, _FEW, _MANY, _MISSING, _NO_NUMBER = range(1, 8)


@dataclass(frozen=True, slots=True, repr=False)
class CsvField:
    """A column that is wanted. Without a default, a record in which it is empty is at fault.

    `inferred` says that nobody declared its type.
    """

    dtype: np.dtype[Any]
    default: Any = None
    name: str | None = None
    inferred: bool = False

    def __repr__(self) -> str:
        kind = "bytes" if self.dtype == BYTES else self.dtype.name
        default = "" if self.default is None else f"={self.default!r}"
        return f"{self.name or ''}{':' if self.name else ''}{kind}{default}"


@dataclass(frozen=True, eq=False, kw_only=True)
class CsvRecords(StreamedFiles):
    """The records of files. `order` says which field is which leaf of the structure.

    `names` are those that the header of every file must have, if that is known.
    """

    columns: tuple[CsvField, ...]
    structure: Structure
    order: tuple[int, ...]
    header: bool = False
    field_delim: str = ","
    use_quote_delim: bool = True
    na_value: bytes = b""
    select_cols: tuple[int, ...] = ()
    names: tuple[bytes, ...] | None = None

    kind = "CsvDataset"
    in_lines = True
    declared_by: ClassVar[str] = "record_defaults"
    untold = ("structure", "names")

    def __post_init__(self) -> None:
        super().__post_init__()
        flag(self.kind, "header", self.header)
        flag(self.kind, "use_quote_delim", self.use_quote_delim)
        check_delimiter(self.kind, self.field_delim)

    def params(self) -> dict[str, Any]:
        """What decides about the rows."""
        return {name: value for name, value in super().params().items() if name != "order"}

    def spec(self, *inputs: Any) -> Any:
        """As the columns were declared."""
        return self.structure.unflatten([TensorSpec((), self.columns[i].dtype) for i in self.order])

    def parser(self) -> CsvParser:
        """What turns bytes into columns."""
        columns = [(TYPES[field.dtype], field.default is None, field.default) for field in self.columns]
        return CsvParser(columns, list(self.select_cols), ord(self.field_delim), self.use_quote_delim, self.na_value)

    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """From an offset on; from the record behind the header at first."""
        rows = _Records(self, path, at or 0, lease, setup)
        if at is None and self.header:
            try:
                found = rows.header()
                if found is not None:
                    self._check_header(path, found)
            except FileError:
                rows.close()
                raise
        return rows

    def hint(self, column: CsvField, text: bytes) -> str:
        """What to do about a field that its column does not hold."""
        # Only those whose file is at fault need it.
        from forebay.sources.csv_schema import wider

        wanted = wider(column.dtype, text)
        if column.inferred:
            return (
                f"the type is that of the first records: set column_defaults={{{column.name!r}: {wanted}}}, or look at "
                "more of them with num_rows_for_inference"
            )
        return "" if wanted == '""' else f"{wanted} in {self.declared_by} holds it"

    def _check_header(self, path: str, found: list[bytes]) -> None:
        if self.names is not None and tuple(found) != self.names:
            raise FileError(
                path,
                f"its header {brief(repr(found))} is not that of the first file, {brief(repr(list(self.names)))}",
                0,
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class CsvTable(CsvRecords):
    """The same, as ``from_csv`` makes it: elements are dicts."""

    kind = "from_csv"
    declared_by = "column_defaults"


class _Records(StreamedRows):
    """Records in order. A fault is remembered as where the next record begins, if that is known."""

    def __init__(self, node: CsvRecords, path: str, at: int, lease: Lease, setup: Setup) -> None:
        super().__init__(node, path, at, lease, setup)
        self._node = node
        self._parser = node.parser()
        self._behind: int | None = None
        self._fault: FileError | None = None  # Of the header, for the first read.

    def header(self) -> list[bytes] | None:
        """The fields of the first record, which is passed over. None if it is at fault, as the first read will say."""
        delimiter, quotes = self._node.field_delim, self._node.use_quote_delim
        try:
            return read_fields(self, delimiter, quotes)
        except FileError as error:
            if not self.window.size or self._node.names is not None:
                raise
            # Where no names are compared, records behind it are as good as any.
            self._fault = error
            self._behind = csv_fields(self.window.data, self.last, ord(delimiter), quotes)[1][-1] or None
            return None

    def read(self, rows: int) -> Block | None:
        """As many whole records as are at hand."""
        if self._fault is not None:
            header, self._fault = self._fault, None
            raise header
        self.show(rows)
        while self.window.size:
            columns, (count, consumed, stop, fault, field, start, end, behind) = self._parser.parse(
                self.window.data, self.last, rows
            )
            if count:
                self.used(count, consumed)
                made = [_column(field.dtype, values) for field, values in zip(self._node.columns, columns)]
                return Block(self._node.structure, [made[i] for i in self._node.order], count)
            if stop == _FAULT:
                # Nobody knows where a quote that is never closed was meant to be.
                self._behind = behind or None
                reason = self._reason(fault, field, self.window.data[start:end].tobytes())
                raise FileError(self.path, reason, self.window.position + start)
            self._behind = None
            self.show_more()
        return None

    def _reason(self, fault: int, field: int, text: bytes) -> str:
        if fault in (_MISSING, _NO_NUMBER):
            column = self._node.columns[field]
            named = f"field {field}" if column.name is None else f"field {field} ({column.name})"
            if fault == _MISSING:
                return f"{named} is empty, and has no default"
            first = self.window.position == 0 and not self._node.header
            hint = "if this is a header: header=True" if first else self._node.hint(column, text)
            return f"{named} is not a valid {column.dtype.name}: {brief(repr(text))}{hint and f'; {hint}'}"
        if fault == _FEW and self._node.select_cols:
            return f"column {self._node.select_cols[-1]} is wanted, and the record has {field} fields"
        return fault_text(fault, len(self._node.columns), field)

    def recover(self) -> bool:
        """Behind the record at fault. If it has no end, or is too large to be held, behind its first line."""
        if self._behind is None:
            try:
                return self.next_line()
            except FileError:
                return False
        self.window.move(self._behind)
        self._behind = None
        return True


def fault_text(fault: int, wanted: int, found: int) -> str:
    """What is wrong with a record as a whole."""
    return {
        _OPEN_QUOTE: "the file ends in the middle of a quoted field",
        _STRAY_QUOTE: "a quote inside a quoted field is not doubled",
        _QUOTE_INSIDE: "a field that does not begin with a quote has one inside (use_quote_delim=False allows it)",
        _FEW: f"{wanted} fields are wanted, and the record has {found}",
        _MANY: f"the record has more than {wanted} fields",
    }[fault]


def read_fields(rows: StreamedFile, delimiter: str, quotes: bool) -> list[bytes]:
    """The fields of the next record, however many. FileError if there is no record."""
    while rows.window.fill():
        fields, (count, consumed, stop, fault, field, start, _, _) = csv_fields(
            rows.window.data, rows.last, ord(delimiter), quotes
        )
        if count:
            rows.window.move(consumed)
            return fields
        if stop == _FAULT:
            raise FileError(rows.path, fault_text(fault, 0, field), rows.window.position + start)
        if rows.window.size > _HEADER:
            # As names, these take up to seventy times as much.
            raise FileError(rows.path, f"has no end of a header within {_HEADER:,} bytes", rows.window.position)
        rows.show_more()
    raise FileError(rows.path, "ends before its header", rows.window.position)


def check_delimiter(call: str, value: Any) -> None:
    """PlanError unless it is one character of ASCII."""
    if not isinstance(value, str) or len(value) != 1 or not value.isascii():
        raise PlanError(f"{call}(field_delim={value!r}): field_delim must be one ASCII character")
    if value in '\n\r"':
        raise PlanError(f"{call}(field_delim={value!r}): a line end or a quote cannot separate fields")


def _column(dtype: np.dtype[Any], values: Any) -> Column:
    # What comes from a kernel is the C compiler's long long, which NumPy takes for another type of the same size.
    if dtype == BYTES:
        data, offsets = values
        return Strings(data, offsets.view(np.int64), (), False)
    return Dense(values.view(dtype))
