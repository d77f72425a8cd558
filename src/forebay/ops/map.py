"""``map``: a function on every element."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from forebay.block import Block, Cursor, Indices, RowBuilder, RowError, Uniform, concat_blocks
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.errors import ForebayError, InternalError, PlanError
from forebay.ops.parallel import Parallel
from forebay.plan.chance import draws
from forebay.plan.check import arguments, flag, function, keep_seed
from forebay.plan.fingerprint import function_name
from forebay.plan.node import UNKNOWN, Build, Traits
from forebay.plan.skips import Skips
from forebay.plan.spec import static_spec
from forebay.run import Access, Operator, Setup, Site
from forebay.run.calls import Call, ColumnCalls, OnColumns, RowCalls
from forebay.run.function_stage import FunctionStage, RowsFunction, Tried
from forebay.run.pace import ENOUGH_BLOCKS
from forebay.run.shown import shown_row
from forebay.run.stage import Chunk

Made = Block | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Map(Parallel, Skips):
    """``Dataset.map``. With ``on_error="skip"`` there may be fewer rows than in the input, as after a filter.

    Three fields are set by rules: `earlier` are functions fused in, which run first, back to back; `numbered` says
    that the input's elements are pairs of the element's number and the element; `columns` does the same as the
    function on whole columns. `called` is the method that the user called, if it was not ``map``.
    """

    map_func: Callable[..., Any]
    batched: bool = False
    rng: bool = False
    seed: int | None = None
    earlier: tuple[Call, ...] = ()
    numbered: bool = False
    columns: OnColumns | None = None
    called: str = "map"

    kind = "map"
    traits = Traits(random=True)

    def __post_init__(self) -> None:
        function("map", "map_func", self.map_func)
        flag("map", "batched", self.batched)
        flag("map", "rng", self.rng)
        keep_seed(self)
        self.check_parallel()
        self.check_errors()
        if not self.earlier and not self.numbered:
            arguments("map", self.map_func, static_spec(self.input), extra=int(self.rng))
        if self.batched and self.rng:
            raise PlanError(
                "map(batched=True, rng=True): a generator belongs to one element, and where columns are cut is "
                "not fixed; use rng=True without batched"
            )

    @property
    def site(self) -> Site:
        """What errors call this step."""
        return Site(self.called, self.label, self.where)

    @property
    def unseeded(self) -> bool:
        """Only a function that is handed a generator needs a seed."""
        return self.rng and self.seed is None

    @property
    def redraws(self) -> bool:
        """A generator is seeded by the epoch too, and one that the function has goes on."""
        return self.rng or draws(self.map_func)

    def seeds(self) -> list[int]:
        """Those of all functions that run in this step."""
        return [call.seed for call in self.calls if call.seed is not None]

    @property
    def calls(self) -> tuple[Call, ...]:
        """All functions in the order they run."""
        seed = self.seed if self.rng else None
        return (*self.earlier, Call(self.map_func, function_name(self.map_func), self.site, seed))

    def params(self) -> dict[str, Any]:
        """What decides about the rows; the seed only where it is used."""
        shown: dict[str, Any] = {"map_func": self.map_func}
        if self.earlier:
            labels = [f" {call.site.label!r}" if call.site.label else "" for call in self.earlier]
            shown["after"] = [call.name + label for call, label in zip(self.earlier, labels)]
        if self.batched:
            shown["batched"] = True
        if self.rng:
            shown |= {"rng": True, "seed": self.seed}
        return shown | self.error_params()

    def settings(self) -> dict[str, Any]:
        """How it runs."""
        return super().settings() | ({} if self.columns is None else {"form": "columns"})

    def layout(self) -> str:
        """With or without numbers in the input, and whether rows are left out."""
        return "numbered map" if self.numbered else "skipping map" if self.skips else "map"

    def cardinality(self) -> int:
        """The input's, unless some may be left out."""
        return UNKNOWN if self.skips else self.input.cardinality()

    def access(self) -> Access | None:
        """By number, if the input is: the function is applied to whichever rows are asked for."""
        inner = None if self.numbered or self.skips else self.input.access()
        return None if inner is None else _Mapped(inner, self.function(), self.calls[-1])

    def function(self) -> "_Function":
        """What is done to a block."""
        return _Function(self.calls, self.batched, self.columns)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Chunk by chunk."""
        return _Map(self, setup, build(self.input, setup))


class _Function(RowsFunction[Made]):
    """The functions of a node, from a block to a block of as many rows."""

    def __init__(
        self, calls: tuple[Call, ...], batched: bool, on_columns: OnColumns | None, most_bytes: int = 1 << 62
    ) -> None:
        self._site = calls[-1].site
        self._name = calls[-1].name
        self._on_columns = on_columns
        self._columns = ColumnCalls(calls[0]) if batched else None
        self._rows = RowCalls(*calls, most_bytes=most_bytes)
        self._builder = RowBuilder()

    def __call__(self, block: Block, indices: Indices, epoch: int) -> tuple[Made, ForebayError | None]:
        """A block of as many rows; or of those before the first that fails, and that failure; or of enough of them."""
        if self._columns is not None:
            return self._columns(block, indices)
        if self._on_columns is not None and self._on_columns.accepts(block):
            made, cause = self._on_columns.on_block(block)
            if cause is None:
                return made, None
            row = 0 if made is None else made.rows
            element = shown_row(block, row)
            return made, self._site.function_error(int(indices[row]), self._name, cause, element)
        results, error = self._rows(block, indices, epoch)
        shelf = self._rows.take_shelf()
        if not results:
            return None, error
        made, fault = self._builder.build(results, shelf)
        if fault is not None:
            error = self._site.data_error(int(indices[fault.row]), fault.text)
        return made, error

    def count(self, made: Made) -> int:
        """Its rows."""
        return 0 if made is None else made.rows

    def join(self, parts: list[Made]) -> Made:
        """Without those that failed."""
        blocks = [part for part in parts if part is not None]
        return concat_blocks(blocks) if blocks else None


class _Map(FunctionStage[Made]):
    """One block for every chunk."""

    def __init__(self, node: Map, setup: Setup, source: Operator) -> None:
        make = partial(_Function, node.calls, node.batched, node.columns, ENOUGH_BLOCKS * setup.block_bytes)
        super().__init__(node.site, source, setup, make, node.start, node.tolerance, node.free_order(setup), node.tuned)
        self._one_to_one = not node.skips
        self._numbered = node.numbered
        self._last = node.calls[-1]
        self._uniform = Uniform()

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """The input skips as many rows; the function is called for them only if it has to tell which are left out."""
        return self.seek_input(cursor, epoch, self._one_to_one)

    def origin(self, cursor: Cursor) -> str | None:
        """The row of the input, as long as it can be told which that is."""
        state = cursor.state or {"in": [None, 0]}
        if not self._one_to_one or "log" in state:
            return None
        return self.inputs[0].origin(Cursor.from_json(state["in"]).after(cursor.skip))

    def numbers(self, block: Block, index: int) -> Indices:
        """Counted, unless they come with the rows."""
        if not self._numbered:
            return super().numbers(block, index)
        column = block.columns[0]
        if not isinstance(column, Dense):
            raise InternalError("a numbered map got no numbers")
        return column.values

    def argument(self, block: Block) -> Block:
        """Without the numbers."""
        if not self._numbered:
            return super().argument(block)
        return Block(block.structure.children[1], block.columns[1:], block.rows)

    def first(self, made: Made, rows: int, missing: int) -> Made:
        """As many fewer."""
        return None if made is None or rows == missing else made.slice(0, rows - missing)

    def made(self, chunk: Chunk[Tried[Made]], made: Made, error: ForebayError | None) -> Block | None:
        """The rows that were made; then what kept others from being made."""
        self.fail(error, made)
        if made is None:
            return None
        try:
            # Workers each know only their own rows.
            made = self._uniform.fit(made)
        except RowError as fault:
            raise self.site.data_error(chunk.index, fault.text) from None
        if chunk.index == 0:
            _warn_of_none(self._last, made)
        return made.at(Cursor(self.state_of(chunk)))


class _Mapped(Access):
    def __init__(self, inner: Access, apply: _Function, last: Call) -> None:
        super().__init__(inner.length)
        self._inner = inner
        self._apply = apply
        self._unseen: Call | None = last

    def origin(self, row: int, epoch: int) -> str | None:
        """The row that it was made of."""
        return self._inner.origin(row, epoch)

    def gather(self, indices: Indices, epoch: int) -> Block:
        """The function on these rows only."""
        made, error = self._apply(self._inner.gather(indices, epoch), indices, epoch)
        if error is not None:
            raise error
        if made is None:
            raise InternalError("a mapped read made no rows and no error")
        if self._unseen is not None:
            call, self._unseen = self._unseen, None
            _warn_of_none(call, made)
        return made


def _warn_of_none(call: Call, first: Block) -> None:
    """None is an element like any other, but most functions that return it were to return something else."""
    column = first.columns[0] if first.structure.is_leaf else None
    if isinstance(column, Objects) and column.values.ndim == 1 and column.values[0] is None:
        warnings.warn(
            f"{call.site}: {call.name} returned None for the first element: is a return missing?", stacklevel=2
        )
