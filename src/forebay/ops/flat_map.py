"""``flat_map``: a dataset for every element, one after another."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forebay.block import START, Block, Cursor, RowError, Uniform
from forebay.errors import InternalError
from forebay.plan.check import arguments, function
from forebay.plan.fingerprint import function_name
from forebay.plan.lower import build, prepare
from forebay.plan.node import UNKNOWN, Build, Node, Traits
from forebay.plan.spec import static_spec
from forebay.run import Operator, Pace, Reader, Setup
from forebay.run.calls import RowCalls, Stage
from forebay.run.coalesce import coalesce
from forebay.run.keys import seed_of

_MOST_FIRST = 1024


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatMap(Node):
    """``Dataset.flat_map``. The seed is what unseeded random steps of the inner datasets derive theirs from."""

    map_func: Callable[..., Any]
    seed: int | None = None

    kind = "flat_map"
    traits = Traits(makes_plans=True, random=True)

    def __post_init__(self) -> None:
        function("flat_map", "map_func", self.map_func)
        arguments("flat_map", self.map_func, static_spec(self.input))

    def params(self) -> dict[str, Any]:
        """The function."""
        return {"map_func": self.map_func}

    def cardinality(self) -> int:
        """Not known before it has run."""
        return UNKNOWN

    def lower(self, setup: Setup, build: Build) -> Operator:
        """One inner dataset at a time."""
        return _FlatMap(self, setup, build(self.input, setup.with_unit(1)))


class _FlatMap(Operator):
    """State: the input's cursor, the number of its element, and the inner dataset's cursor."""

    def __init__(self, node: FlatMap, setup: Setup, source: Operator) -> None:
        super().__init__(node.site, source)
        if node.seed is None:
            raise InternalError("flat_map() has no seed after resolve_seeds")
        self._reader = Reader(source)
        self._calls = RowCalls(Stage(node.map_func, function_name(node.map_func), node.site))
        self._name = function_name(node.map_func)
        self._seed = node.seed
        self._setup = setup.with_unit(1)
        self._pace = Pace(setup.block_bytes)
        self._uniform = Uniform()
        self._index = 0
        self._epoch = 0
        self._input: Block | None = None
        self._inner: Operator | None = None
        self._rows: Reader | None = None
        self._resume: Cursor = START

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """The inner dataset is made again from its element and continues at its own cursor."""
        self._end_inner()
        state = cursor.state or {"index": 0, "inner": [None, 0], "in": [None, 0]}
        self._reader.seek(Cursor.from_json(state["in"]), epoch)
        self._resume = Cursor.from_json(state["inner"])
        self._index = state["index"]
        self._epoch = epoch
        return cursor.skip

    def pull(self) -> Block | None:
        """Rows of one inner dataset, or of several small ones together."""
        return coalesce(self, self._pace, self._next_rows)

    def _next_rows(self) -> Block | None:
        while True:
            if self._rows is None and not self._open():
                return None
            assert self._rows is not None
            assert self._input is not None
            block = self._rows.next()
            if block is not None:
                self._check(block)
                state = {
                    "index": self._index,
                    "inner": block.cursor.to_json(),
                    "in": self._input.cursor.to_json(),
                }
                return block.at(Cursor(state))
            self._end_inner()
            self._index += 1

    def _check(self, block: Block) -> None:
        try:
            self._uniform.check(block.structure, block.columns)
        except RowError as fault:
            raise self.site.data_error(self._index, f"the inner dataset's element: {fault.text}") from None

    def _open(self) -> bool:
        element = self._reader.read(1)
        if element is None:
            return False
        results, error = self._calls(element, np.array([self._index]), self._epoch)
        plan = getattr(results[0], "plan", None) if results else None
        if error is None and not isinstance(plan, Node):
            given = type(results[0]).__name__
            error = self.site.data_error(self._index, f"{self._name} returned a {given}, it must return a Dataset")
        if error is not None:
            raise error
        assert isinstance(plan, Node)
        self._input = element
        # What the last inner datasets gave is a fair guess at this one, so it need not begin with one row.
        setup = replace(self._setup, first=min(self._pace.rows, _MOST_FIRST))
        self._inner = build(prepare(plan, seed_of(self._seed, self._index), setup.rules), setup)
        self._rows = Reader(self._inner)
        self._rows.seek(self._resume, self._epoch)
        self._resume = START
        return True

    def _end_inner(self) -> None:
        inner, self._inner, self._rows = self._inner, None, None
        if inner is not None:
            inner.close()

    def close(self) -> None:
        """The open inner dataset first."""
        self._end_inner()
        super().close()
