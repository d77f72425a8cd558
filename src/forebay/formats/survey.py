"""A look at rows: how many, how large, of what columns. Blocks are looked at as they come, and none is kept."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from forebay.block import Block, Column, Indices
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.spec import BYTES, OBJECT, TEXT
from forebay.block.strings import Strings
from forebay.formats.format import ColumnReport, Elements, Watcher
from forebay.formats.shown import shown
from forebay.storage.structures import column_names

if TYPE_CHECKING:
    from forebay.dataset import Dataset

_NAMES = {"S": "bytes", "U": "str", "O": "object"}
_STRINGS: dict[type, np.dtype[Any]] = {bytes: BYTES, str: TEXT}


@dataclass(frozen=True)
class Limits:
    """Where to stop looking, whichever comes first; at the end of the data if there are none."""

    rows: int = 1 << 62
    bytes: int = 1 << 62


@dataclass
class _Column:
    dtypes: list[str] = field(default_factory=list)
    shape: "tuple[int | None, ...] | None" = None
    rows: int = 0
    missing: int = 0
    least: int = 1 << 62
    most: int = 0
    varies: bool = False
    mixed: bool = False

    def add(self, column: Column) -> None:
        """Some rows."""
        self.rows += len(column)
        if isinstance(column, Objects):
            for value in column.rows():
                self._value(value)
            return
        self._merge(column.dtype, column.spec.shape)
        if isinstance(column, Ragged):
            self._count(np.diff(column.offsets))

    def _value(self, value: Any) -> None:
        if value is None:
            self.missing += 1
        elif isinstance(value, (np.ndarray, np.generic)):
            self._merge(_item_dtype(value), value.shape)
            if value.ndim:
                self._count(np.array([value.size]))
        else:
            self._merge(_STRINGS.get(type(value), OBJECT), ())

    def _count(self, counts: "Indices") -> None:
        self.least, self.most = min(self.least, int(counts.min())), max(self.most, int(counts.max()))
        self.varies |= self.least < self.most

    def _merge(self, dtype: np.dtype[Any], shape: "tuple[int | None, ...] | None") -> None:
        name = _NAMES.get(dtype.char, dtype.name)
        if name not in self.dtypes:
            self.dtypes.append(name)
        if len(self.dtypes) == 1 and self.shape is None and not self.mixed:
            self.shape = shape
        elif self.shape is None or shape is None or len(shape) != len(self.shape):
            self.shape, self.mixed = None, True
        else:
            self.shape = tuple(a if a == b else None for a, b in zip(self.shape, shape))

    def report(self, name: str) -> ColumnReport:
        """What is known by now."""
        present = 1 - self.missing / max(self.rows, 1)
        values = (self.least, self.most) if self.varies else None
        return ColumnReport(name, " or ".join(self.dtypes) or "None", self.shape, present, values)


class Survey:
    """What rows have shown so far. `complete` says that there are no others."""

    def __init__(self, watcher: Watcher, head: int) -> None:
        self.rows = 0
        self.complete = False
        self.least = self.most = self.total = 0
        self._columns: dict[str, _Column] = {}
        self._watcher = watcher
        self._head = head
        self._elements: Elements = []
        # The place in the files that a block began at, and the rows that came before it.
        self.place: tuple[int, int] | None = None
        self.before = 0

    def add(self, block: Block) -> None:
        """The next rows."""
        names = column_names(block.structure)
        self._place(block.cursor.state)
        sizes = sum((_row_bytes(column) for column in block.columns), np.zeros(block.rows, np.int64))
        self.least = min(self.least, int(sizes.min())) if self.rows else int(sizes.min())
        self.most = max(self.most, int(sizes.max()))
        self.total += int(sizes.sum())
        for name, column in zip(names, block.columns):
            self._columns.setdefault(name, _Column()).add(column)
        wanted = min(self._head - self.rows, block.rows)
        if wanted > 0:
            columns = [column.slice(0, wanted).rows() for column in block.columns]
            self._elements += [dict(zip(names, map(shown, row))) for row in zip(*columns)]
        self._watcher.add(block)
        self.rows += block.rows

    def _place(self, state: Any) -> None:
        """Sources that read files in order say where: see ``FilesNode``."""
        if isinstance(state, dict) and isinstance(state.get("at"), int) and isinstance(state.get("file"), int):
            self.place, self.before = (state["file"], state["at"]), self.rows

    def columns(self) -> list[ColumnReport]:
        """All that there were."""
        found = self._watcher.columns()
        return found if found is not None else [column.report(name) for name, column in self._columns.items()]

    def elements(self) -> Elements:
        """The first ones."""
        found = self._watcher.elements()
        return (found if found is not None else self._elements)[: self._head]


def look(dataset: "Dataset[Any]", survey: Survey, limits: Limits, advance: Callable[[Survey], None]) -> None:
    """Run a dataset as far as the limits allow."""
    with closing(dataset._blocks(dataset._setup())) as blocks:
        for block in blocks:
            left = limits.rows - survey.rows
            survey.add(block if block.rows <= left else block.slice(0, left))
            advance(survey)
            read = survey.place[1] if survey.place is not None and not survey.place[0] else survey.total
            if block.rows >= left or max(read, survey.total) >= limits.bytes:
                return
        survey.complete = True


def _item_dtype(value: Any) -> np.dtype[Any]:
    """Of an array; of one of objects, what all of them are."""
    if not value.dtype.hasobject:
        return value.dtype  # type: ignore[no-any-return]
    kinds = {type(item) for item in value.flat}
    return _STRINGS.get(kinds.pop(), OBJECT) if len(kinds) == 1 else OBJECT


def _row_bytes(column: Column) -> Indices:
    """Bytes of the values of each row."""
    rows = len(column)
    if isinstance(column, Strings):
        _, starts, stops = column.places
        return np.asarray((stops - starts).reshape(rows, -1).sum(axis=1))
    if isinstance(column, Ragged):
        return np.diff(column.offsets) * column.values.dtype.itemsize
    if isinstance(column, Dense):
        return np.full(rows, column.values.nbytes // max(rows, 1), np.int64)
    return np.fromiter((_value_bytes(value) for value in column.rows()), np.int64, rows)


def _value_bytes(value: Any) -> int:
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return sum(map(_value_bytes, value.flat))
    if isinstance(value, (np.ndarray, np.generic)):
        return int(value.nbytes)
    return len(value) if isinstance(value, (bytes, str)) else 0
