"""``take_while``: elements up to the first that a predicate does not hold for."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay.block import Block, Cursor
from forebay.ops.filter import Predicate
from forebay.plan.check import arguments, function
from forebay.plan.node import UNKNOWN, Build, Node, Traits
from forebay.plan.spec import static_spec
from forebay.run import Operator, Pace, Reader, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class TakeWhile(Node):
    """``Dataset.take_while``."""

    predicate: Callable[..., Any]

    kind = "take_while"
    traits = Traits(same_elements=True)

    def __post_init__(self) -> None:
        function("take_while", "predicate", self.predicate)
        arguments("take_while", self.predicate, static_spec(self.input))

    def cardinality(self) -> int:
        """Not known before it has run."""
        return UNKNOWN

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Block by block."""
        return _TakeWhile(self, setup, build(self.input, setup))


class _TakeWhile(Operator):
    """State: the number of the next element."""

    def __init__(self, node: TakeWhile, setup: Setup, source: Operator) -> None:
        super().__init__(node.site, source)
        self._reader = Reader(source)
        self._predicate = Predicate(node, node.predicate)
        self._pace = Pace(setup.block_bytes, setup.unit)
        self._index = 0
        self._ended = False

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Rows up to a cursor have passed, so the input skips them unasked. Skips from the start may not have."""
        state = cursor.state or {"index": 0, "in": [None, 0]}
        passed = cursor.skip if cursor.state is not None and cursor.skip <= state["rows"] else 0
        self._reader.seek(Cursor.from_json(state["in"]).after(passed), epoch)
        self._index = state["index"] + passed
        self._ended = False
        return cursor.skip - passed

    def pull(self) -> Block | None:
        """Rows that pass, until one does not."""
        self.raise_pending()
        block = None if self._ended else self._reader.read(self._pace.rows)
        if block is None:
            return None
        began = time.perf_counter()
        answers, error = self._predicate(block, np.arange(self._index, self._index + block.rows))
        passed = len(answers) if answers.all() else int(answers.argmin())
        if passed < len(answers):
            self._ended = True
        elif error is not None:
            if passed == 0:
                raise error
            self.fail_next(error)
        if passed == 0:
            return None
        self._pace.observe(len(answers), block.nbytes, time.perf_counter() - began)
        state = {"index": self._index, "rows": passed, "in": block.cursor.to_json()}
        self._index += passed
        return block.slice(0, passed).at(Cursor(state))
