"""A running dataset: elements out of blocks, and where it stands."""

import copy
import os
import weakref
from collections.abc import Callable
from dataclasses import replace
from threading import Lock, current_thread, get_ident
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from forebay.block import START, Cursor
from forebay.errors import BusyError, ClosedError, CursorError, an
from forebay.ledger import Ledger
from forebay.plan import Node, build, optimise, with_seeds
from forebay.plan.identity import layout
from forebay.remote_run import in_force
from forebay.run import Reader, Setup
from forebay.run.collected import NAME, close_when_collected
from forebay.run.later import Errors, keeping
from forebay.run.leaving import rest_if_leaving, watch_for_exit
from forebay.run.observers import closed, ended, observed
from forebay.run.running import Running
from forebay.run.stats import Stats
from forebay.run.tracebacks import let_go

T_co = TypeVar("T_co", covariant=True)

STATE_VERSION = 1
# Seconds for which close() waits for a thread in next(). Not for ever: that may be in a function that waits for others.
_PATIENCE = 2.0


class DatasetIterator(Generic[T_co]):
    """Iterates over a dataset once. Made by ``iter(dataset)``, for one thread at a time.

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
        seeds: list[int],
        epoch: int,
        go_on_from: Callable[[list[int], int], None],
    ) -> None:
        self._plan = plan
        self._plan_lines = lines
        self._setup = setup
        self._go_on_from = go_on_from
        self._run = Running(setup.parallelism.crew, setup.ledger, setup.spill)
        self._errors = Errors()
        self._kept = weakref.ref(self._errors)
        # The run is closed with the iterator, at the latest when that is collected or the interpreter ends.
        self._close = close_when_collected(self, self._run.close)
        watch_for_exit()
        self._layout = ""
        self._user: int | None = None  # The thread that is fetching a block.
        self._closing = False
        self._left = Lock()  # Released when that thread has left a closed iterator.
        self._left.acquire()
        self._process = os.getpid()
        self._start(seeds, epoch, START, 0)

    def _start(self, seeds: list[int], epoch: int, cursor: Cursor, position: int) -> None:
        # Of its own: the run before it, which may still be there, is closed by itself.
        self._setup = replace(self._setup, remote=self._setup.remote.anew())
        with in_force(self._setup.remote):
            self._begin(seeds, epoch, cursor, position)

    def _begin(self, seeds: list[int], epoch: int, cursor: Cursor, position: int) -> None:
        prepared = optimise(with_seeds(self._plan, seeds), self._setup.rules)
        self._setup.gate.open = cursor == START
        # Restored after its end, it runs anew: workers in the middle of something are not to be kept.
        self._setup.parallelism.crew.finished = False
        self._reader: Reader | None = self._run.start(build(prepared, self._setup), self._setup.remote, cursor, epoch)
        self._layout = layout(prepared, self._setup.rules)
        self._seeds = seeds
        self._epoch = epoch
        self._elements: Any = iter(())
        self._cursor = cursor  # Of the block at hand, from which `_row` elements have been given out.
        self._row = 0
        self._rows = 0  # In that block.
        self._before = position  # Elements given out before that block.
        self._broken = False
        self._ended = False

    @property
    def epoch(self) -> int:
        """Which pass over the dataset this is, counted from 0.

        >>> import forebay as fb
        >>> ds = fb.Dataset.range(3)
        >>> iter(ds).epoch, iter(ds).epoch
        (0, 1)
        """
        return self._epoch

    @property
    def where(self) -> str:
        """The dataset's last step, and the line it was written on.

        >>> import forebay as fb
        >>> iter(fb.Dataset.range(3).batch(2)).where
        'batch at <doctest ...'
        """
        return str(self._plan.site)

    @property
    def ledger(self) -> Ledger:
        """The budget that the iterator runs under, ``Options.memory``, and what its steps hold of it.

        >>> import forebay as fb
        >>> it = iter(fb.Dataset.range(3).with_options(fb.Options(memory="2MiB")))
        >>> it.ledger.budget, it.ledger.held
        (2097152, 0)
        """
        return self._setup.ledger

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
        me, forked, alive = get_ident(), os.getpid() != self._process, self._close.alive
        # Threads take turns at calls only, and from here to where the user is noted there is none. A lock would need
        # a call to be taken, behind which an interrupt could leave it locked for ever. A block of which not all
        # elements have been counted was taken apart by two threads that met between two blocks.
        if self._closing or not alive:
            rest_if_leaving()
            raise ClosedError("this iterator is closed; iter(dataset) makes a new one")
        if self._ended:
            raise StopIteration
        if forked:
            # Threads do not come along with a fork: whoever waits for one of them waits for ever.
            raise ClosedError(
                "this iterator was made before a fork and belongs to the process that made it: go on here with "
                "iter(dataset) and load_state_dict(state), or make iterators after the fork"
            )
        if (self._user is not None and self._user != me) or (self._row != self._rows and not self._broken):
            raise BusyError(
                "this iterator is used by several threads at once and has lost its place: give each its own, for "
                "example of dataset.shard(n, i), or hold a lock around next()"
            )
        self._user = me
        try:
            return self._advance()
        except Exception as error:
            # Abandoned operators raise all kinds of things, or seem to have come to their end.
            rest_if_leaving()
            if self._closing:
                raise ClosedError(
                    "this iterator was closed while next() was waiting for it; iter(dataset) makes a new one"
                ) from error
            raise
        finally:
            self._user = None
            if self._closing:
                self._shut()
                if self._left.locked():
                    self._left.release()

    def _advance(self) -> T_co:
        if self._broken:
            self._start(self._seeds, self._epoch, self._cursor.after(self._row), self._before + self._row)
        # An error or an interrupt may leave operators half-way through rows that were never handed out. The next
        # call goes back to the last element that was.
        self._broken = True
        self._setup.parallelism.crew.tuner.tick()
        try:
            with in_force(self._setup.remote), keeping(self._kept):
                block = self._reader.next() if self._reader is not None else None
        except Exception as error:
            # The next call begins with new operators in any case. These, with all their workers, would stay for as
            # long as the error does, and longer: what they hold leads to the error, and its traceback back to them.
            try:
                self._run.close()
            except Exception as another:
                # As of a generator that fails at cleaning up: no reason not to hear of what was first.
                error.add_note(f"And what it had begun could not be ended: {type(another).__name__}: {another}")
            self._reader = None
            let_go(error)
            raise
        if self._closing:
            raise ClosedError("this iterator is closed")
        self._setup.gate.open = True
        if block is None:
            self._ended = True
            self._elements = iter(())
            self._reader = None
            self._setup.parallelism.crew.finished = True
            ended(self)
            self._run.close()
            closed()
            raise StopIteration
        elements, rows = observed(self, block.private()), block.rows
        # From here to the end nothing is called, so that no interrupt can fall between.
        self._before += self._row
        self._row = 0
        self._rows = rows
        self._cursor = block.cursor
        self._elements = elements
        self._broken = False
        return self.__next__()

    def stats(self) -> Stats:
        """What every step has done since the iterator began or was last restored, the last step first.

        Printed, it is a table: "busy" are seconds of work, on all workers together, and "wait" those in which the step
        behind was kept waiting by them. Each entry has more to ask for; see ``forebay.run.meter.StageStats``. What went
        to disk for want of memory is said below, and is in ``on_disk``, in bytes.

        >>> import forebay as fb
        >>> it = iter(fb.Dataset.range(100).batch(10))
        >>> len(list(it))
        10
        >>> [(step.name.split()[0], step.elements) for step in it.stats()]
        [('batch', 10), ('range', 100)]
        """
        return self._run.stats()

    def state_dict(self) -> dict[str, Any]:
        """Where the iterator stands, as JSON. Loading it continues with the element that comes next here.

        >>> import forebay as fb
        >>> it = iter(fb.Dataset.range(5).shuffle(seed=1))
        >>> first = next(it)
        >>> it.state_dict()["position"]
        1
        """
        if self._is_closed():
            raise ClosedError("this iterator is closed and no longer stands anywhere; save its state before close()")
        # Not every program saves: those that do load what it takes, json above all.
        from forebay.plan.state import signed

        return signed(
            {
                "forebay": STATE_VERSION,
                "plan": list(self._plan_lines),
                "layout": self._layout,
                "seeds": self._seeds,
                "epoch": self._epoch,
                "position": self._before + self._row,
                "cursor": self._cursor.after(self._row).to_json(),
            }
        )

    def load_state_dict(self, state: dict[str, Any], *, strict: bool = True) -> None:
        """Continue where another iterator over the same dataset stood, whatever process it was in.

        The dataset goes along: its next iterations are the epochs that followed in the run that was saved.

        Args:
            state: what ``state_dict`` returned.
            strict: refuse a state if a function or the data has changed since. Other differences between the two
                datasets are refused in any case.

        >>> import forebay as fb
        >>> ds = fb.Dataset.range(5).shuffle()
        >>> it = iter(ds)
        >>> first, state = next(it), it.state_dict()
        >>> again = iter(ds)
        >>> again.load_state_dict(state)
        >>> list(again) == list(it)
        True
        """
        if self._is_closed():
            raise ClosedError("this iterator is closed; load the state into a new one")
        from forebay.plan.state import check_same_plan, check_signature, counts_on_order

        if isinstance(state, (str, bytes)):
            raise CursorError(
                f"load_state_dict() got {an(type(state).__name__)}, not the dict that state_dict() returned: of JSON, "
                "json.loads() it first"
            )
        try:
            version = state["forebay"]
            if version != STATE_VERSION:
                raise CursorError(f"the state has version {version}, this Forebay reads version {STATE_VERSION}")
            check_signature(state)
            state = copy.deepcopy(state)  # What the caller does to it later is the caller's business.
            check_same_plan(state["plan"], self._plan_lines, strict, self._plan)
            seeds, epoch, position = list(map(int, state["seeds"])), int(state["epoch"]), int(state["position"])
            if len(seeds) != len(self._seeds):
                raise CursorError(
                    f"the state has seeds for {len(seeds)} random steps, this dataset has {len(self._seeds)} to fill"
                )
            cursor = Cursor.from_json(state["cursor"])
            if state["layout"] != self._layout:
                if counts_on_order(state["cursor"]):
                    self._setup = replace(self._setup, rules=self._rules_for(state["layout"], seeds))
                else:
                    # Another set of rules wrote it: the place is the same, but has to be reached by counting.
                    cursor = START.after(position)
            self._start(seeds, epoch, cursor, position)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, CursorError):
                raise
            raise CursorError(f"this is not a state that state_dict() returned: {error!r}") from error
        self._go_on_from(seeds, epoch + 1)

    def _rules_for(self, saved: str, seeds: list[int]) -> tuple[Any, ...]:
        """Rules under which the plan runs as it did when a state was saved whose order cannot be counted out anew."""
        from forebay.rules.fuse_maps import fuse_all_maps

        rules = self._setup.rules
        without = [tuple(rule for rule in rules if rule is not other) for other in rules]
        fusing = tuple(fuse_all_maps if rule.__name__ == "fuse_maps" else rule for rule in rules)
        for some in (*without, fusing, ()):
            if layout(optimise(with_seeds(self._plan, seeds), some), some) == saved:
                return some
        raise CursorError(
            "the state was saved in the middle of steps with deterministic=False, by a plan that ran in another way: "
            "set Options.optimize and the executors of its steps to what they were"
        )

    def close(self) -> None:
        """Stop all work and release what is held. The iterator cannot be used afterwards.

        Leaving a ``with`` block does this too, and so does the last element. A thread that is in ``next()`` meanwhile
        gets ClosedError; this waits for it, but no longer than two seconds if it is in a function that does not return.

        >>> import forebay as fb
        >>> it = iter(fb.Dataset.range(5))
        >>> it.close()
        >>> next(it)
        Traceback (most recent call last):
        forebay.errors.ClosedError: this iterator is closed; iter(dataset) makes a new one
        """
        self._closing = True
        if self._user is None or os.getpid() != self._process:
            self._shut()
            return
        self._run.abandon()
        waits = self._user != get_ident() and not current_thread().name.startswith(NAME)
        if waits and self._left.acquire(timeout=_PATIENCE):
            self._left.release()

    def _is_closed(self) -> bool:
        return self._closing or not self._close.alive

    def _shut(self) -> None:
        self._elements = iter(())
        self._reader = None
        if self._close.alive:
            self._run.close()
            self._setup.parallelism.crew.parking.clear()
            self._close.detach()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an iterator cannot be pickled or copied: save state_dict() and load it into iter(dataset)")

    def __enter__(self) -> "DatasetIterator[T_co]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
