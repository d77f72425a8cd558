"""``flat_map``: a dataset for every element, one after another."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from forebay.block import START, Block, Cursor, Uniform
from forebay.errors import InternalError
from forebay.ops.inner import Inner, InnerDatasets, check_inner
from forebay.plan.check import arguments, function
from forebay.plan.node import UNKNOWN, Build, Node, Traits
from forebay.plan.spec import static_spec
from forebay.run import Operator, Pace, Reader, Setup
from forebay.run.coalesce import coalesce


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
        self._datasets = InnerDatasets(node.site, node.map_func, node.seed, setup)
        self._pace = Pace(setup.block_bytes)
        self._uniform = Uniform()
        self._index = 0
        self._epoch = 0
        self._inner: Inner | None = None
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
            inner = self._inner or self._open()
            if inner is None:
                return None
            block = inner.next()
            if block is not None:
                check_inner(self._uniform, self.site, inner.index, block)
                state = {
                    "index": inner.index,
                    "inner": block.cursor.to_json(),
                    "in": inner.origin.to_json(),
                }
                return block.at(Cursor(state))
            self._end_inner()
            self._index += 1

    def _open(self) -> Inner | None:
        element = self._reader.read(1)
        if element is None:
            return None
        self._datasets.first = self._pace.rows
        self._inner = Inner(self._datasets, element, self._index, self._epoch, self._resume)
        self._resume = START
        return self._inner

    def _end_inner(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.close()

    def close(self) -> None:
        """The open inner dataset first."""
        self._end_inner()
        super().close()
