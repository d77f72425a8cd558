"""``filter``: only the elements that a predicate holds for."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import Block, Cursor, Indices
from forebay.block.dense import Dense
from forebay.errors import ForebayError
from forebay.plan.check import arguments, flag, function
from forebay.plan.fingerprint import function_name
from forebay.plan.node import UNKNOWN, Build, Node, Traits
from forebay.plan.spec import static_spec
from forebay.run import Operator, Pace, Reader, Setup
from forebay.run.calls import ColumnCalls, RowCalls, Stage


@dataclass(frozen=True, eq=False, kw_only=True)
class Filter(Node):
    """``Dataset.filter``."""

    predicate: Callable[..., Any]
    batched: bool = False

    kind = "filter"
    traits = Traits(same_elements=True)

    def __post_init__(self) -> None:
        function("filter", "predicate", self.predicate)
        arguments("filter", self.predicate, static_spec(self.input))
        flag("filter", "batched", self.batched)

    def cardinality(self) -> int:
        """Not known before it has run."""
        return UNKNOWN

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Block by block."""
        return _Filter(self, setup, build(self.input, setup.with_unit(1)))


class Predicate:
    """A function of the user's that says yes or no to every row of a block."""

    def __init__(self, node: Node, predicate: Callable[..., Any], batched: bool = False) -> None:
        stage = Stage(predicate, function_name(predicate), node.site)
        self._stage = stage
        self._rows = RowCalls(stage, keep=True)
        self._columns = ColumnCalls(stage) if batched else None

    def __call__(self, block: Block, indices: Indices) -> tuple[NDArray[np.bool_], ForebayError | None]:
        """One answer per row, up to the first that fails, and that failure."""
        if self._columns is not None:
            made, error = self._columns(block, indices)
            if made is None:
                return np.zeros(0, np.bool_), error
            column = made.columns[0] if made.structure.is_leaf else None
            if not isinstance(column, Dense) or column.dtype != np.bool_ or column.values.ndim > 1:
                specs = made.structure.unflatten([each.spec for each in made.columns])
                return np.zeros(0, np.bool_), self._wrong(int(indices[0]), specs)
            return column.values, error
        results, error = self._rows(block, indices, 0)
        if not set(map(type, results)) <= {bool, np.bool_}:
            for row, answer in enumerate(results):
                if not (isinstance(answer, (bool, np.bool_)) or _is_bool_scalar(answer)):
                    return np.array(results[:row], np.bool_), self._wrong(int(indices[row]), answer)
        return np.array(results, np.bool_), error

    def _wrong(self, index: int, answer: Any) -> ForebayError:
        return self._stage.site.data_error(
            index, f"{self._stage.name} returned {answer!r}, a predicate must return True or False"
        )


def _is_bool_scalar(value: Any) -> bool:
    return getattr(value, "dtype", None) == np.bool_ and getattr(value, "shape", None) == ()


class _Filter(Operator):
    """State: the number of the next input element. A block's cursor is the input's where its rows were read."""

    def __init__(self, node: Filter, setup: Setup, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._predicate = Predicate(node, node.predicate, node.batched)
        self._pace = Pace(setup.block_bytes)
        self._index = 0

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Which input row an output row is can only be found by asking the predicate again."""
        state = cursor.state or {"index": 0, "in": [None, 0]}
        self._reader.seek(Cursor.from_json(state["in"]), epoch)
        self._index = state["index"]
        return cursor.skip

    def pull(self) -> Block | None:
        """The rows of a block that pass, of the first block that has any."""
        self.raise_pending()
        while (block := self._reader.read(self._pace.rows)) is not None:
            began = time.perf_counter()
            indices = np.arange(self._index, self._index + block.rows)
            answers, error = self._predicate(block, indices)
            if error is not None:
                if not answers.any():
                    raise error
                self.fail_next(error)
            self._pace.observe(len(answers), block.nbytes, time.perf_counter() - began)
            state = {"index": self._index, "in": block.cursor.to_json()}
            self._index += len(answers)
            kept = np.flatnonzero(answers)
            if len(kept):
                rows = block if len(kept) == block.rows else block.take(kept)
                return rows.at(Cursor(state))
        return None
