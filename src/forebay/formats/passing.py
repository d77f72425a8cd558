"""A step that counts rows as they pass, and gives them the form that a format is written in."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forebay.block import LEAF, Block, Column, Cursor, Structure, TensorSpec
from forebay.block.strings import Strings
from forebay.errors import PlanError
from forebay.plan.node import Build, Node, Traits
from forebay.run import Operator, Reader, Setup
from forebay.storage.structures import column_names

Advance = Callable[[int], None]


class Meter:
    """How many rows have passed in this run, and what their columns are."""

    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self.rows = 0
        self.specs: dict[str, TensorSpec] = {}

    def begin(self) -> None:
        """A run starts at the first row. There may have been one before, for a look at an element."""
        self.rows = 0

    def count(self, block: Block) -> None:
        """Rows that passed."""
        for name, column in zip(column_names(block.structure), block.columns):
            if name not in self.specs:
                self.specs[name] = column.spec
        self.rows += block.rows
        self._advance(self.rows)


@dataclass(frozen=True)
class Form:
    """Which columns rows keep, and in what structure.

    Args:
        columns: their names, in this order; all if None.
        flat: dicts without anything inside them; otherwise the structure stays, if all columns do.
        raw: leave rows alone that are only bytes or text.
        rename: gives columns other names, by what is in the first rows of them.
        text: what is bytes is text. NotText where it is not.
    """

    columns: tuple[str, ...] | None
    flat: bool
    raw: bool
    rename: Callable[[str, Column], str] | None = None
    renamed: dict[str, str] = field(default_factory=dict, compare=False)
    text: bool = False

    def apply(self, block: Block) -> Block:
        """The block in this form. Columns are shared, not copied."""
        if self.text:
            texts = [as_text(*each) for each in zip(column_names(block.structure), block.columns)]
            block = Block(block.structure, texts, block.rows, block.cursor)
        if self.columns is None and (not self.flat or (self.raw and _is_text(block))):
            return block
        names = column_names(block.structure)
        wanted = names if self.columns is None else self.columns
        missing = [name for name in wanted if name not in names]
        if missing:
            raise PlanError(f"there is no column {missing[0]!r}; there are {', '.join(names)}")
        columns = [block.columns[names.index(name)] for name in wanted]
        if self.rename is not None:
            for name, column in zip(wanted, columns):
                # Once: a later block may hold the same values in another way.
                self.renamed.setdefault(name, self.rename(name, column))
            wanted = [self.renamed[name] for name in wanted]
            twice = sorted({name for name in wanted if list(wanted).count(name) > 1})
            if twice:
                raise PlanError(f"two columns would be called {twice[0]!r}: choose one of them (--columns)")
        structure = Structure(dict, tuple(wanted), (LEAF,) * len(columns))
        return Block(structure, columns, block.rows).at(block.cursor)


class NotText(Exception):
    """A column of bytes that is not text after all."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def as_text(name: str, column: Column) -> Column:
    """The same strings as text, if they are bytes. NotText if that cannot be."""
    if not isinstance(column, Strings) or column.text:
        return column
    data, offsets = column.data, column.offsets
    starts = offsets[:-1][np.diff(offsets) > 0]
    # All together are text, and none of them begins in the middle of a character.
    try:
        str(data[int(offsets[0]) : int(offsets[-1])].data, "utf-8")
    except UnicodeDecodeError:
        raise NotText(name) from None
    if ((data[starts] & 0xC0) == 0x80).any():
        raise NotText(name)
    return Strings(data, offsets, column.shape, text=True)


def _is_text(block: Block) -> bool:
    column = block.columns[0] if block.structure.is_leaf else None
    return isinstance(column, Strings) and column.shape == ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Passing(Node):
    """All rows of the input, in another form."""

    form: Form
    meter: Meter

    kind = "convert"
    traits = Traits(one_to_one=True)

    def params(self) -> dict[str, Any]:
        """What decides about the rows."""
        return {"columns": None if self.form.columns is None else list(self.form.columns), "flat": self.form.flat}

    def cardinality(self) -> int:
        """The input's."""
        return self.input.cardinality()

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Block by block."""
        return _Passing(self, build(self.input, setup))


class _Passing(Operator):
    """State: the input's."""

    def __init__(self, node: Passing, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._node = node

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """To the same row of the input."""
        self._node.meter.begin()
        self._reader.seek(cursor, epoch)
        return 0

    def pull(self) -> Block | None:
        """The next block there is."""
        block = self._reader.next()
        if block is not None:
            block = self._node.form.apply(block)
            self._node.meter.count(block)
        return block
