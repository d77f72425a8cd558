"""A running dataset: elements out of blocks, and where it stands."""

import copy
import weakref
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, TypeVar

from forebay.block import START, Cursor
from forebay.errors import ClosedError, CursorError
from forebay.plan import Node, build, prepare
from forebay.plan.identity import check_same_plan, check_signature, counts_on_order, layout, signed
from forebay.run import Operator, Reader, Setup
from forebay.run.leaving import watch_for_exit
from forebay.run.meter import StageStats
from forebay.run.stats import stats_of

T_co = TypeVar("T_co", covariant=True)

STATE_VERSION = 1


class _Run:
    """The operators of an iterator, apart from it, so that they can be closed when it is gone."""

    def __init__(self) -> None:
        self.operator: Operator | None = None
        self._stats: list[StageStats] = []

    def start(self, operator: Operator, cursor: Cursor, epoch: int) -> Reader:
        """Go over to other operators; if they cannot seek to the cursor, stay with those there are."""
        reader = Reader(operator)
        try:
            reader.seek(cursor, epoch)
        except BaseException:
            operator.close()
            raise
        self.close()
        self.operator = operator
        return reader

    def stats(self) -> list[StageStats]:
        return self._stats if self.operator is None else stats_of(self.operator)

    def close(self) -> None:
        if self.operator is not None:
            self._stats = self.stats()
            # Forgotten only afterwards: what an interrupt cuts short is done again by whoever closes next.
            self.operator.close()
            self.operator = None


class DatasetIterator(Generic[T_co]):
    """Iterates over a dataset once. Made by ``iter(dataset)``.

    >>> import forebay as fb
    >>> it = iter(fb.Dataset.range(5))
    >>> next(it), next(it)
    (np.int64(0), np.int64(1))
    >>> state = it.state_dict()
    >>> it.close()
    >>> with iter(fb.Dataset.range(5)) as it:
    ...     it.load_state_dict(state)
    ...     [int(x) for x in it]
    [2, 3, 4]
    """

    def __init__(
        self,
        plan: Node,
        lines: list[str],
        setup: Setup,
        seed: int,
        epoch: int,
        advance: Callable[[int], None],
    ) -> None:
        self._plan = plan
        self._plan_lines = lines
        self._setup = setup
        self._advance_epoch = advance
        self._run = _Run()
        # The run is closed with the iterator, at the latest when that is collected or the interpreter ends.
        self._close = weakref.finalize(self, self._run.close)
        watch_for_exit()
        self._layout = ""
        self._start(seed, epoch, START, 0)

    def _start(self, seed: int, epoch: int, cursor: Cursor, position: int) -> None:
        prepared = prepare(self._plan, seed, self._setup.rules)
        self._setup.gate.open = cursor == START
        self._reader: Reader | None = self._run.start(build(prepared, self._setup), cursor, epoch)
        self._layout = layout(prepared, self._setup.rules)
        self._seed = seed
        self._epoch = epoch
        self._elements: Any = iter(())
        self._cursor = cursor  # Of the block at hand, from which `_row` elements have been given out.
        self._row = 0
        self._before = position  # Elements given out before that block.
        self._broken = False
        self._ended = False

    @property
    def epoch(self) -> int:
        """Which pass over the dataset this is, counted from 0."""
        return self._epoch

    def __iter__(self) -> "DatasetIterator[T_co]":
        return self

    def __next__(self) -> T_co:
        try:
            for element in self._elements:
                self._row += 1
                return element  # type: ignore[no-any-return]
        except BaseException:
            # Interrupted while it was put together: the row is used up, but was not handed out.
            self._elements = iter(())
            self._broken = True
            raise
        return self._next_block()

    def _next_block(self) -> T_co:
        if not self._close.alive:
            raise ClosedError("this iterator is closed; iter(dataset) makes a new one")
        if self._ended:
            raise StopIteration
        if self._broken:
            self._start(self._seed, self._epoch, self._cursor.after(self._row), self._before + self._row)
        # An error or an interrupt may leave operators half-way through rows that were never handed out. The next
        # call goes back to the last element that was.
        self._broken = True
        self._setup.parallelism.crew.tuner.tick()
        block = self._reader.next() if self._reader is not None else None
        self._setup.gate.open = True
        if block is None:
            self._ended = True
            self._elements = iter(())
            self._reader = None
            self._setup.parallelism.crew.finished = True
            self._run.close()
            raise StopIteration
        elements = block.private().elements()
        # From here to the end nothing is called, so that no interrupt can fall between.
        self._before += self._row
        self._row = 0
        self._cursor = block.cursor
        self._elements = elements
        self._broken = False
        return self.__next__()

    def stats(self) -> list[StageStats]:
        """What every step has done since the iterator began or was last restored, the last step first.

        >>> import forebay as fb
        >>> it = iter(fb.Dataset.range(100).batch(10))
        >>> len(list(it))
        10
        >>> [(step.name.split()[0], step.elements) for step in it.stats()]
        [('batch', 10), ('range', 100)]
        """
        return self._run.stats()

    def state_dict(self) -> dict[str, Any]:
        """Where the iterator stands, as JSON. Loading it continues with the element that comes next here."""
        if not self._close.alive:
            raise ClosedError("this iterator is closed and no longer stands anywhere; save its state before close()")
        return signed(
            {
                "forebay": STATE_VERSION,
                "plan": list(self._plan_lines),
                "layout": self._layout,
                "seed": self._seed,
                "epoch": self._epoch,
                "position": self._before + self._row,
                "cursor": self._cursor.after(self._row).to_json(),
            }
        )

    def load_state_dict(self, state: dict[str, Any], *, strict: bool = True) -> None:
        """Continue where another iterator over the same dataset stood, whatever process it was in.

        Args:
            state: what ``state_dict`` returned.
            strict: refuse a state if a function or the data has changed since. Other differences between the two
                datasets are refused in any case.
        """
        if not self._close.alive:
            raise ClosedError("this iterator is closed; load the state into a new one")
        try:
            version = state["forebay"]
            if version != STATE_VERSION:
                raise CursorError(f"the state has version {version}, this Forebay reads version {STATE_VERSION}")
            check_signature(state)
            state = copy.deepcopy(state)  # What the caller does to it later is the caller's business.
            check_same_plan(state["plan"], self._plan_lines, strict)
            seed, epoch, position = int(state["seed"]), int(state["epoch"]), int(state["position"])
            cursor = Cursor.from_json(state["cursor"])
            if state["layout"] != self._layout:
                if counts_on_order(state["cursor"]):
                    self._setup = replace(self._setup, rules=self._rules_for(state["layout"], seed))
                else:
                    # Another set of rules wrote it: the place is the same, but has to be reached by counting.
                    cursor = START.after(position)
            self._start(seed, epoch, cursor, position)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, CursorError):
                raise
            raise CursorError(f"this is not a state that state_dict() returned: {error!r}") from error
        self._advance_epoch(epoch + 1)

    def _rules_for(self, saved: str, seed: int) -> tuple[Any, ...]:
        """Rules under which the plan runs as it did when a state was saved whose order cannot be counted out anew."""
        rules = self._setup.rules
        for some in (*(tuple(rule for rule in rules if rule is not other) for other in rules), ()):
            if layout(prepare(self._plan, seed, some), some) == saved:
                return some
        raise CursorError(
            "the state was saved in the middle of steps with deterministic=False, by a plan that ran in another way: "
            "set Options.optimize and the executors of its steps to what they were"
        )

    def close(self) -> None:
        """Stop all work and release what is held. The iterator cannot be used afterwards."""
        self._elements = iter(())
        self._reader = None
        if self._close.alive:
            self._run.close()
            self._setup.parallelism.crew.parking.clear()
            self._close.detach()

    def __enter__(self) -> "DatasetIterator[T_co]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
