"""``to_parquet`` and ``to_arrow``: all rows of a dataset as tables."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from forebay.block import Block, Column, RowError, Structure, TensorSpec, concat_blocks, flatten
from forebay.errors import DataError, FileError, ForebayError, PlanError
from forebay.sinks.files import FilesWriter
from forebay.storage.arrow import arrow
from forebay.storage.columns import encode
from forebay.storage.leaf import Leaf, leaf_of_column, leaf_of_spec
from forebay.storage.output import OutputFile
from forebay.storage.structures import structure_to_json, written_names
from forebay.storage.table_files import OWN, open_table, own_columns
from forebay.storage.tables import table_form

CODECS = {"parquet": ("zstd", "snappy", "gzip", "brotli", "lz4"), "arrow": ("zstd", "lz4")}
# So much is looked at before the columns' types are settled.
_LOOK_BYTES = 4 << 20
_PIECE = 1 << 20


def codec_of(call: str, kind: str, value: Any) -> str | None:
    """The compression that a user means."""
    if value is None or value in CODECS[kind]:
        return None if value is None else str(value)
    raise PlanError(f"{call}(compression={value!r}): it must be None or one of {', '.join(CODECS[kind])}")


class TableWriter(FilesWriter):
    """Blocks as row groups or record batches.

    Types are settled by the first rows. If a later one does not fit, what has been written is read back and written
    again with wider types. If there are no rows, `spec` is asked what they would have been.
    """

    def __init__(
        self,
        call: str,
        kind: str,
        pattern: str,
        rows_per_file: int | None,
        compression: str | None,
        group_bytes: int,
        spec: Callable[[], Any],
    ) -> None:
        arrow()
        super().__init__(call, pattern, rows_per_file)
        self._kind = kind
        self._compression = compression
        self._group_bytes = group_bytes
        self._spec = spec
        self._structure: Structure | None = None
        self._leaves: tuple[Leaf, ...] = ()
        self._looked: list[Block] | None = []
        self._waiting: list[Block] = []
        self._flushed = 0  # Rows, the first of those that wait comes after them.
        self._writer: Any = None

    def add(self, block: Block) -> None:
        """Look at the first rows, write the others."""
        if self._structure is None:
            self._structure = block.structure
            if not self._structure.size:
                raise PlanError(f"{self._call}(): elements hold no values, so there is nothing to write")
        block = block.ordered_as(self._structure)
        if block.structure != self._structure:
            raise self._error(self._added, f"has the structure {block.structure}, earlier {self._structure}")
        leaves = self._leaves_of(block)
        if self._looked is not None:
            self._leaves = tuple(a.merged(b) for a, b in zip(self._leaves, leaves)) if self._leaves else leaves
            self._looked.append(block)
            if sum(each.nbytes for each in self._looked) >= _LOOK_BYTES:
                self._settle()
            return
        self._widen(leaves)
        super().add(block)

    @property
    def _added(self) -> int:
        """Rows so far, with those that are only looked at."""
        return self.rows + sum(block.rows for block in self._looked or ())

    def _leaves_of(self, block: Block) -> tuple[Leaf, ...]:
        leaves: list[Leaf] = []
        for name, column in zip(written_names(self._call, block.structure), block.columns):
            try:
                leaf = leaf_of_column(name, column)
                if self._leaves:
                    self._leaves[len(leaves)].merged(leaf)
            except RowError as error:
                raise self._error(self._added + error.row, f"{name} {error.text}") from None
            leaves.append(_open_to_nulls(leaf))
        return tuple(leaves)

    def _declare(self) -> None:
        """The columns of a dataset without elements, if they can be known."""
        try:
            specs, structure = flatten(self._spec(), (TensorSpec,))
            leaves = [leaf_of_spec(name, spec) for name, spec in zip(written_names(self._call, structure), specs)]
        except (ForebayError, RowError):
            return
        known = [_open_to_nulls(leaf) for leaf in leaves if leaf is not None]
        if known and len(known) == len(leaves):
            self._structure, self._leaves = structure, tuple(known)

    def _settle(self) -> None:
        looked, self._looked = self._looked or [], None
        self._leaves = tuple(leaf.settled() for leaf in self._leaves)
        for block in looked:
            super().add(block)

    def _widen(self, leaves: tuple[Leaf, ...]) -> None:
        """Types that hold these rows too, in all files."""
        wider = tuple(a.merged(b) for a, b in zip(self._leaves, leaves))
        if wider == self._leaves:
            return
        before, rows = self._leaves, self.rows
        open_file = self._output is not None
        self._complete()
        done, self._done, self._leaves, self._number, self.rows, self._flushed = self._done, [], wider, 0, 0, 0
        try:
            for output in done:
                for block in self._again(output, before, rows):
                    super().add(block)
                if output is not done[-1] or not open_file:
                    self._complete()
        finally:
            for output in done:
                output.discard()
        assert self.rows == rows

    def _again(self, output: OutputFile, leaves: tuple[Leaf, ...], misfit: int) -> Any:
        if output.temporary is None:
            raise self._error(
                misfit,
                "has another shape or type than those before, and what is at a URL cannot be written again: "
                "write to a local file, or make elements equal with map()",
            )
        assert self._structure is not None
        file = open_table(output.temporary, self._kind)
        try:
            form = table_form(file.schema, None, *own_columns(file.schema))
            form = replace(form, names=tuple(leaf.name for leaf in leaves), structure=self._structure)
            for group in range(len(file.group_rows or ())):
                for batch in file.group(group, 0, form.names, _PIECE) or ():
                    yield form.block(batch)
        finally:
            file.close()

    def begin(self, output: OutputFile) -> None:
        """The schema, with what Forebay has to know to give back the same elements."""
        pa = arrow()
        encoded = None
        try:
            encoded = structure_to_json(self._structure) if self._structure is not None else None
        except PlanError:
            # A class that nobody else can find: others read dicts.
            encoded = {"kind": "unknown", "children": []}
        own = {"structure": encoded, "leaves": [leaf.to_json() for leaf in self._leaves]}
        self._schema = pa.schema([leaf.field() for leaf in self._leaves], metadata={OWN: json.dumps(own).encode()})
        sink = pa.PythonFile(_Sink(output), mode="w")
        if self._kind == "parquet":
            import pyarrow.parquet

            self._writer = pyarrow.parquet.ParquetWriter(sink, self._schema, compression=self._compression or "none")
        else:
            options = pa.ipc.IpcWriteOptions(compression=self._compression)
            self._writer = pa.ipc.new_file(sink, self._schema, options=options)

    def write(self, block: Block) -> None:
        """Rows wait until there are enough for a group."""
        self._waiting.append(block)
        if sum(each.nbytes for each in self._waiting) >= self._group_bytes:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        pa = arrow()
        block = concat_blocks(waiting)
        first, self._flushed = self._flushed, self._flushed + block.rows
        arrays = [self._encoded(leaf, column, first) for leaf, column in zip(self._leaves, block.columns)]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        try:
            if self._kind == "parquet":
                self._writer.write_table(table, row_group_size=max(block.rows, 1))
            else:
                self._writer.write_table(table)
        except FileError:
            raise
        except Exception as error:
            raise DataError(f"{self._call}(): writing failed: {error}") from error

    def _encoded(self, leaf: Leaf, column: Column, first: int) -> Any:
        try:
            return encode(leaf, column)
        except RowError as error:
            raise self._error(first + error.row, f"{leaf.name} {error.text}") from None

    def end(self) -> None:
        """The last group, and the footer."""
        self._flush()
        self._writer.close()
        self._writer = None

    def finish(self) -> None:
        """Also if there was not enough to look at."""
        if self._structure is None:
            self._declare()
        if self._looked is not None:
            self._settle()
        super().finish()

    def close(self) -> None:
        """Without a footer: pyarrow would write one when it is forgotten."""
        super().close()
        self._writer = None
        self._waiting = []

    def _error(self, element: int, text: str) -> DataError:
        return DataError(f"{self._call}(), element {element}: {text}")


def _open_to_nulls(leaf: Leaf) -> Leaf:
    """A null is also how Arrow says NaT, so that dates are None only where they have to be."""
    return leaf if leaf.dtype.kind in "mM" else replace(leaf, nullable=True)


class _Sink:
    """An ``OutputFile`` as a Python file, for Arrow to write to."""

    def __init__(self, output: OutputFile) -> None:
        self._output = output
        self._position = 0
        self.closed = False

    def write(self, data: Any) -> int:
        size = len(memoryview(data).cast("B"))
        # A writer that is given up completes its file in vain.
        if not self._output.closed:
            self._output.write(data)
        self._position += size
        return size

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Pieces are large."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True
