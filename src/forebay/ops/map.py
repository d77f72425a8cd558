"""``map``: a function on every element."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import Block, Cursor, Indices, RowBuilder
from forebay.errors import ForebayError, PlanError
from forebay.plan.check import arguments, flag, function, keep_seed
from forebay.plan.fingerprint import function_name
from forebay.plan.node import Build, Node, Traits
from forebay.plan.spec import static_spec
from forebay.run import Access, Operator, Pace, Reader, Setup, Site
from forebay.run.calls import ColumnCalls, RowCalls, Stage


@dataclass(frozen=True, eq=False, kw_only=True)
class Map(Node):
    """``Dataset.map``. `earlier` are functions that a rule has fused in: they run first, back to back."""

    map_func: Callable[..., Any]
    batched: bool = False
    rng: bool = False
    seed: int | None = None
    earlier: tuple[Stage, ...] = ()

    kind = "map"
    traits = Traits(one_to_one=True, random=True)

    def __post_init__(self) -> None:
        function("map", "map_func", self.map_func)
        flag("map", "batched", self.batched)
        flag("map", "rng", self.rng)
        keep_seed(self)
        if not self.earlier:
            arguments("map", self.map_func, static_spec(self.input), extra=int(self.rng))
        if self.batched and self.rng:
            raise PlanError(
                "map(batched=True, rng=True): a generator belongs to one element, and where columns are cut is "
                "not fixed; use rng=True without batched"
            )

    @property
    def unseeded(self) -> bool:
        """Only a function that is handed a generator needs a seed."""
        return self.rng and self.seed is None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All functions in the order they run."""
        seed = self.seed if self.rng else None
        return (*self.earlier, Stage(self.map_func, function_name(self.map_func), self.site, seed))

    def params(self) -> dict[str, Any]:
        """What the user wrote; the seed only where it is used."""
        shown: dict[str, Any] = {"map_func": self.map_func}
        if self.earlier:
            labels = [f" {stage.site.label!r}" if stage.site.label else "" for stage in self.earlier]
            shown["after"] = [stage.name + label for stage, label in zip(self.earlier, labels)]
        if self.batched:
            shown["batched"] = True
        if self.rng:
            shown |= {"rng": True, "seed": self.seed}
        return shown

    def cardinality(self) -> int:
        """The input's."""
        return self.input.cardinality()

    def access(self) -> Access | None:
        """By number, if the input is: the function is applied to whichever rows are asked for."""
        inner = self.input.access()
        return None if inner is None else _Mapped(inner, _Function(self))

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Block by block."""
        return _Map(self, setup, build(self.input, setup))


class _Function:
    """The functions of a node, from a block to a block of as many rows."""

    def __init__(self, node: Map) -> None:
        self._site: Site = node.site
        self._columns = ColumnCalls(node.stages[0]) if node.batched else None
        self._rows = RowCalls(*node.stages)
        self._builder = RowBuilder()

    def __call__(self, block: Block, indices: Indices, epoch: int) -> tuple[Block | None, ForebayError | None]:
        """Rows up to the first that fails, and that failure."""
        if self._columns is not None:
            return self._columns(block, indices)
        results, error = self._rows(block, indices, epoch)
        if not results:
            return None, error
        made, fault = self._builder.build(results)
        if fault is not None:
            error = self._site.data_error(int(indices[fault.row]), fault.text)
        return made, error


class _Map(Operator):
    """State: the number of the next element."""

    def __init__(self, node: Map, setup: Setup, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._function = _Function(node)
        self._pace = Pace(setup.block_bytes, setup.unit)
        self._index = 0
        self._epoch = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """The input skips as many rows; the function is not called for them."""
        state = cursor.state or {"index": 0, "in": [None, 0]}
        self._reader.seek(Cursor.from_json(state["in"]).after(cursor.skip), epoch)
        self._index = state["index"] + cursor.skip
        self._epoch = epoch
        return 0

    def pull(self) -> Block | None:
        """The function's results for as many rows as make a block of the target size."""
        self.raise_pending()
        block = self._reader.read(self._pace.rows)
        if block is None:
            return None
        began = time.perf_counter()
        indices = np.arange(self._index, self._index + block.rows)
        made, error = self._function(block, indices, self._epoch)
        done = 0 if made is None else made.rows
        if error is not None:
            if made is None:
                raise error
            self.fail_next(error)
        assert made is not None
        self._pace.observe(done, made.nbytes, time.perf_counter() - began)
        state = {"index": self._index, "in": block.cursor.to_json()}
        self._index += done
        return made.at(Cursor(state))


class _Mapped(Access):
    def __init__(self, inner: Access, apply: _Function) -> None:
        super().__init__(inner.length)
        self._inner = inner
        self._apply = apply

    def gather(self, indices: Indices, epoch: int) -> Block:
        """The function on these rows only."""
        made, error = self._apply(self._inner.gather(indices, epoch), indices, epoch)
        if error is not None:
            raise error
        assert made is not None
        return made
