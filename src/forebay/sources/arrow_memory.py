"""Arrow data in memory: ``from_arrow`` of tables and of readers, and the tables of other libraries."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forebay.block import START, Block, Cursor, Indices, concat_blocks
from forebay.errors import DataError, PlanError
from forebay.lazy import cached_property
from forebay.plan.fingerprint import digest, function_name
from forebay.plan.node import UNKNOWN, Build, Node
from forebay.run import Access, Operator, ReadRows, Setup
from forebay.storage.fill_nulls import checked_fills, with_fills
from forebay.storage.table_cuts import cut
from forebay.storage.table_files import own_columns
from forebay.storage.tables import TableForm, picked, table_form

_SAMPLED = 64


def is_arrow(source: Any) -> bool:
    """Whether something is Arrow data, or a function that might return some, rather than names of files."""
    module = type(source).__module__.partition(".")[0]
    return module == "pyarrow" or (callable(source) and not hasattr(source, "plan"))


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowRows(Node):
    """A table, or the rows of it that `indices` number."""

    table: Any = field(repr=False)
    form: TableForm = field(repr=False)
    indices: Indices | None = field(default=None, repr=False)
    call: str = "from_arrow"

    kind = "from_arrow"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.call)

    def cardinality(self) -> int:
        """Known."""
        return int(self.table.num_rows) if self.indices is None else len(self.indices)

    def spec(self, *inputs: Any) -> Any | None:
        """From the schema, as far as there are no nulls in the columns."""
        nulls: dict[str, bool] = {}
        for name in self.form.names:
            column = self.table.column(name)
            kind = column.type
            if (
                (column.null_count and name not in self.form.fills)
                or hasattr(kind, "storage_type")
                or hasattr(kind, "value_type")
                or kind.num_fields
            ):
                # Nulls may be deeper than the column tells.
                return None
            nulls[name] = False
        return self.form.specs(self.table.schema, nulls)

    @cached_property
    def batches(self) -> tuple[Any, ...]:
        """The table without chunks that reach across others', in the same memory."""
        return tuple(self.table.select(list(self.form.names)).to_batches())

    def access(self) -> Access:
        """By number."""
        return _Rows(self)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read by number."""
        return ReadRows(self.site, self.access(), setup)

    def describe(self) -> str:
        """Rows and columns, not the data."""
        shown = {name: value.as_py() for name, value in self.form.fills.items()}
        fills = f"; fill_nulls={shown}" if shown else ""
        return f"{self.kind}({self.cardinality()} rows; {', '.join(self.form.names)}{fills})"

    def signature(self) -> str:
        """Rows, columns, and a digest of a few rows."""
        rows = self.cardinality()
        kinds = ", ".join(f"{name}: {kind}" for name, kind in zip(self.form.names, self.form.kinds))
        few = np.unique(np.linspace(0, rows - 1, min(rows, _SAMPLED)).astype(np.int64)) if rows else None
        sample = () if few is None else tuple(tuple(c.rows()) for c in self.access().gather(few, 0).columns)
        fills = f"; fill_nulls={self.form.fills!r}" if self.form.fills else ""
        return f"{self.kind}({rows} rows; {kinds}{fills})#{digest(sample)}"


class _Rows(Access):
    def __init__(self, node: ArrowRows) -> None:
        super().__init__(node.cardinality())
        self._form = node.form
        self._indices = node.indices
        self._batches = node.batches
        self._starts = np.concatenate([[0], np.cumsum([batch.num_rows for batch in node.batches])]).astype(np.int64)

    def read(self, start: int, stop: int, epoch: int) -> Block:
        """Views, where rows lie in the order they come in."""
        if self._indices is not None:
            return super().read(start, stop, epoch)
        first, last = (int(np.searchsorted(self._starts, row, "right")) - 1 for row in (start, stop - 1))
        blocks = []
        for i in range(first, last + 1):
            base, end = int(self._starts[i]), int(self._starts[i + 1])
            if base < end:
                low = max(start, base)
                blocks.append(self._form.block(self._batches[i].slice(low - base, min(stop, end) - low)))
        return concat_blocks(blocks)

    def gather(self, indices: Indices, epoch: int) -> Block:
        """The rows of each batch at once, then all in the order asked for."""
        rows = indices if self._indices is None else self._indices[indices].astype(np.int64)
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        owners = np.searchsorted(self._starts, ascending, "right") - 1
        needed, first = np.unique(owners, return_index=True)
        bounds = [*first.tolist(), len(rows)]
        blocks = [
            self._form.block(picked(self._batches[batch], ascending[bounds[i] : bounds[i + 1]] - self._starts[batch]))
            for i, batch in enumerate(needed.tolist())
        ]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return concat_blocks(blocks).take(back).at(START)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrowReader(Node):
    """Record batches as a function or a reader gives them."""

    make: Callable[[], Any]
    columns: tuple[str, ...] | None = None
    fill_nulls: Any = None

    kind = "from_arrow"

    def cardinality(self) -> int:
        """Nobody knows before it has ended."""
        return UNKNOWN

    def signature(self) -> str:
        """With the values that fill nulls, which are in a dict, whose contents do not count by themselves."""
        fills = "" if self.fill_nulls is None else f"#{digest(repr(self.fill_nulls))}"
        return f"{super().signature()}{fills}"

    def spec(self, *inputs: Any) -> Any | None:
        """What is at hand of a reader that cannot be opened again."""
        return self.make.spec(self.columns, self.fill_nulls) if isinstance(self.make, _Once) else None

    def lower(self, setup: Setup, build: Build) -> Operator:
        """From the start on."""
        return _ReadBatches(self, setup)


class _ReadBatches(Operator):
    """State: the number of the next row."""

    def __init__(self, node: ArrowReader, setup: Setup) -> None:
        super().__init__(node.site)
        self._node = node
        self._piece = setup.block_bytes
        self._pieces: Iterator[Block] | None = None
        self._row = 0
        self._drop = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """By reading up to there."""
        self._pieces = None
        self._drop = (cursor.state or {"row": 0})["row"] + cursor.skip
        self._row = 0
        return 0

    def pull(self) -> Block | None:
        """The next record batch, or a slice of it."""
        if self._pieces is None:
            self._pieces = self._read()
        block = next(self._pieces, None)
        if block is None:
            return None
        state = {"row": self._row}
        self._row += block.rows
        return block.at(Cursor(state))

    def _read(self) -> Iterator[Block]:
        name = function_name(self._node.make)
        try:
            form: TableForm | None = None
            for batch in self._node.make():
                form = form or form_of(batch.schema, self._node.columns, self._node.fill_nulls)
                drop = min(self._drop, batch.num_rows)
                self._drop -= drop
                self._row += drop
                for part in cut(batch, drop, self._piece):
                    yield form.block(part)
        except (DataError, PlanError):
            raise
        except Exception as error:
            raise self.site.function_error(self._row, name, error) from error

    def close(self) -> None:
        """Let go of the reader."""
        self._pieces = None


class _Once:
    """A reader that is read by the first iteration. Its first batch is looked at before."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._first = next(iter(reader), None)

    def spec(self, columns: "tuple[str, ...] | None", fill_nulls: Any) -> Any | None:
        """That of the first row."""
        batch = self._first
        if batch is None or not batch.num_rows:
            return None
        block = form_of(batch.schema, columns, fill_nulls).block(batch.slice(0, 1))
        return block.structure.unflatten([column.spec for column in block.columns])

    def __call__(self) -> Iterator[Any]:
        reader, self._reader = self._reader, None
        if reader is None:
            raise DataError(
                "from_arrow(): the reader has been read, and can be read only once: give a function that opens it, "
                "which is called for every iteration and when a state is loaded"
            )
        if self._first is not None:
            yield self._first
        yield from reader


def form_of(schema: Any, columns: Any, fill_nulls: Any = None) -> TableForm:
    """What elements of a table with that schema are like."""
    try:
        form = table_form(schema, None if columns is None else tuple(columns), *own_columns(schema))
        return with_fills(form, schema, fill_nulls)
    except ValueError as error:
        raise PlanError(f"from_arrow(): the table {error}") from None


def arrow_source(call: str, source: Any, columns: Any, fill_nulls: Any, label: str | None, where: str) -> Node:
    """The node of Arrow data that is no file."""
    import pyarrow

    fills = checked_fills(call, fill_nulls)

    if isinstance(source, pyarrow.RecordBatch):
        source = pyarrow.Table.from_batches([source])
    if isinstance(source, pyarrow.Table):
        form = form_of(source.schema, columns, fills)
        return ArrowRows(table=source, form=form, call=call, label=label, where=where)
    chosen = None if columns is None else tuple(columns)
    if isinstance(source, pyarrow.RecordBatchReader):
        return ArrowReader(make=_Once(source), columns=chosen, fill_nulls=fills, label=label, where=where)
    if callable(source):
        return ArrowReader(make=source, columns=chosen, fill_nulls=fills, label=label, where=where)
    raise PlanError(f"{call}({type(source).__name__}): give files, a table, a RecordBatchReader, or a function")
