"""``filter``: only the elements that a predicate holds for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import Block, Cursor, Indices
from forebay.block.dense import Dense
from forebay.errors import ForebayError
from forebay.ops.parallel import Parallel
from forebay.plan.check import arguments, flag, function
from forebay.plan.fingerprint import function_name
from forebay.plan.node import UNKNOWN, Build, Traits
from forebay.plan.skips import Skips
from forebay.plan.spec import static_spec
from forebay.run import Operator, Setup, Site
from forebay.run.calls import Call, ColumnCalls, RowCalls
from forebay.run.function_stage import FunctionStage, RowsFunction, Tried
from forebay.run.stage import Chunk


@dataclass(frozen=True, eq=False, kw_only=True)
class Filter(Parallel, Skips):
    """``Dataset.filter``."""

    predicate: Callable[..., Any]
    batched: bool = False

    kind = "filter"
    traits = Traits(same_elements=True)

    def __post_init__(self) -> None:
        function("filter", "predicate", self.predicate)
        arguments("filter", self.predicate, static_spec(self.input))
        self.check_parallel()
        self.check_errors()
        flag("filter", "batched", self.batched)

    def params(self) -> dict[str, Any]:
        """What decides about the rows."""
        return {"predicate": self.predicate, "batched": self.batched or None} | self.error_params()

    def layout(self) -> str:
        """Whether failures are counted."""
        return "skipping filter" if self.skips else "filter"

    def cardinality(self) -> int:
        """Not known before it has run."""
        return UNKNOWN

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Block by block."""
        return _Filter(self, setup, build(self.input, setup.with_unit(1)))


Answers = NDArray[np.bool_]
_NONE: Answers = np.zeros(0, np.bool_)


class Predicate(RowsFunction[Answers]):
    """A function of the user's that says yes or no to every row of a block."""

    def __init__(self, site: Site, predicate: Callable[..., Any], batched: bool = False) -> None:
        call = Call(predicate, function_name(predicate), site)
        self._call = call
        self._rows = RowCalls(call, keep=True)
        self._columns = ColumnCalls(call) if batched else None

    def __call__(self, block: Block, indices: Indices, epoch: int) -> tuple[Answers, ForebayError | None]:
        """One answer per row, up to the first that fails, and that failure."""
        if self._columns is not None:
            made, error = self._columns(block, indices)
            if made is None:
                return _NONE, error
            column = made.columns[0] if made.structure.is_leaf else None
            if not isinstance(column, Dense) or column.dtype != np.bool_ or column.values.ndim > 1:
                specs = made.structure.unflatten([each.spec for each in made.columns])
                return _NONE, self._wrong(int(indices[0]), specs)
            return column.values, error
        results, error = self._rows(block, indices, epoch)
        if not set(map(type, results)) <= {bool, np.bool_}:
            for row, answer in enumerate(results):
                if not (isinstance(answer, (bool, np.bool_)) or _is_bool_scalar(answer)):
                    return np.array(results[:row], np.bool_), self._wrong(int(indices[row]), answer)
        return np.array(results, np.bool_), error

    def count(self, made: Answers) -> int:
        """One for each row."""
        return len(made)

    def join(self, parts: list[Answers | None]) -> Answers:
        """A row that failed does not pass."""
        return np.concatenate([np.zeros(1, np.bool_) if part is None else part for part in parts] or [_NONE])

    def _wrong(self, index: int, answer: Any) -> ForebayError:
        return self._call.site.data_error(
            index, f"{self._call.name} returned {answer!r}, a predicate must return True or False"
        )


def _is_bool_scalar(value: Any) -> bool:
    return getattr(value, "dtype", None) == np.bool_ and getattr(value, "shape", None) == ()


class _Filter(FunctionStage[Answers]):
    """The rows of each chunk that pass. A block's cursor is the input's where its rows were read."""

    def __init__(self, node: Filter, setup: Setup, source: Operator) -> None:
        make = partial(Predicate, node.site, node.predicate, node.batched)
        alone = setup.with_unit(1)
        super().__init__(node.site, source, alone, make, node.start, node.tolerance, node.free_order(setup), node.tuned)

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Which input row an output row is can only be found by asking the predicate again."""
        return self.seek_input(cursor, epoch, one_to_one=False)

    def first(self, made: Answers, rows: int, missing: int) -> Answers:
        """Those that failed have an answer too."""
        return made[:rows]

    def made(self, chunk: Chunk[Tried[Answers]], made: Answers, error: ForebayError | None) -> Block | None:
        """The rows that pass, if any."""
        kept = np.flatnonzero(made)
        block = None
        if len(kept):
            rows = chunk.block if len(kept) == chunk.block.rows else chunk.block.take(kept)
            block = rows.at(Cursor(self.state_of(chunk)))
        self.fail(error, block)
        return block
