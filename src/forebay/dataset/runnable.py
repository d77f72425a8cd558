"""What a dataset can be asked without adding a step to it: its elements, its length, its plan."""

import copy
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from forebay.block import START, Block
from forebay.errors import DataError, LengthError, PlanError
from forebay.iterator import DatasetIterator
from forebay.ledger import Ledger
from forebay.ops.options import check_reads, plan_options
from forebay.options import Options
from forebay.plan import INFINITE, Node, build, caller, check_use, optimise, own_seeds, with_seeds
from forebay.plan.check import function, step_name, whole_numbers
from forebay.plan.fingerprint import function_name
from forebay.plan.identity import plan_lines
from forebay.plan.spec import element_spec
from forebay.remote_run import RemoteRun, in_force
from forebay.rules import RULES
from forebay.run import Reader, Setup, Site
from forebay.run.cpus import available_cpus
from forebay.run.crew import Crew, Parking
from forebay.run.parallelism import Parallelism
from forebay.run.spill_room import SpillStore, check_folder
from forebay.run.stats import Stats
from forebay.run.tuner import Tuner
from forebay.sizes import memory_left, parse_size

if TYPE_CHECKING:
    from forebay.plan.forecast import MemoryReport

# Of the memory that is left, by default.
_SHARE = 0.5
# Blocks are at most this part of the budget for every step, and at least this large.
_SHARES = 16
_LEAST_BLOCK = 4096

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
S = TypeVar("S")


class RunnableDataset(Generic[T_co]):
    """A plan, and everything that runs or describes it."""

    def __init__(self, plan: Node) -> None:
        if not isinstance(plan, Node):
            raise PlanError(
                f"Dataset({type(plan).__name__}): datasets are made by from_tensor_slices() of arrays, "
                "from_generator() of a function that returns an iterator, from_tensors() of one element, and others"
            )
        if plan.label is not None:
            # Every method ends here, so that none can forget it.
            step_name(plan.describe().partition("(")[0], plan.label)
        self.plan = plan
        self._epochs = 0
        self._seeds: list[int] | None = None
        self._lines: list[str] | None = None
        self._parking = Parking()
        # Stands for this dataset among those that spill, and leads to nothing.
        self._spills = object()

    def _forebay_contents(self) -> Iterator[Any]:
        """The plan: how often it has run does not count."""
        yield self.plan

    def reduce(self, initial_state: S, reduce_func: Callable[[Any, Any], U]) -> S | U:
        """All elements folded into one value: ``state = reduce_func(state, element)`` for each.

        What the function returns is passed on as it is; the initial state only comes out if there are no elements.

        >>> Dataset.range(5).reduce(0, lambda total, x: total + x)
        np.int64(10)
        """
        function("reduce", "reduce_func", reduce_func)
        state: S | U = initial_state
        with iter(self) as elements:
            for index, element in enumerate(elements):
                try:
                    state = reduce_func(state, element)
                except Exception as error:
                    from forebay.run.shown import shown

                    site = Site("reduce", None, caller())
                    raise site.function_error(index, function_name(reduce_func), error, shown(element)) from error
        return state

    def as_numpy_iterator(self) -> "DatasetIterator[T_co]":
        """The same as ``iter(dataset)``: elements are NumPy already.

        >>> next(Dataset.range(3).as_numpy_iterator())
        np.int64(0)
        """
        return iter(self)

    def cardinality(self) -> int:
        """How many elements there are: a number, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.

        >>> Dataset.range(10).batch(4).cardinality()
        3
        """
        with in_force(RemoteRun(self.options().remote)):
            return self.plan.cardinality()

    def __len__(self) -> int:
        count = self.cardinality()
        if count < 0:
            why = "it is infinite; take(n) ends it"
            if count != INFINITE:
                from forebay.plan.uncounted import count_hint

                hint = count_hint(self.plan)
                why = "only iterating over it can tell" + (f"; {hint}" if hint else "")
            raise LengthError(f"this dataset has no length: {why}")
        if count > sys.maxsize:
            raise LengthError(
                f"this dataset has {count} elements, which is more than len() can say; cardinality() does"
            )
        return count

    def __bool__(self) -> bool:
        # Otherwise truth would be length, which some datasets do not have.
        return True

    @property
    def element_spec(self) -> Any:
        """The structure of elements with a TensorSpec at each leaf.

        Behind a function (``map``, ``flat_map``, ``from_generator`` without a signature) it is that of the first
        element, which is computed to find out.

        >>> Dataset.range(10).map(lambda x: {"x": x}).batch(5).element_spec
        {'x': TensorSpec(shape=(None,), dtype=int64)}
        """
        with in_force(RemoteRun(self.options().remote)):
            return element_spec(with_seeds(self.plan, self._run_seeds()), self._peek)

    def _peek(self, node: Node) -> Any:
        setup = self._setup()
        block = _first_row(optimise(node, setup.rules), setup)
        if block is None:
            raise DataError(f"{node.site} gives no elements, so its element_spec cannot be told")
        return block.structure.unflatten([column.spec for column in block.columns])

    def options(self) -> Options:
        """The settings in force: those given with ``with_options``, later ones first, then the defaults.

        >>> Dataset.range(3).options().block_bytes
        2097152
        """
        return plan_options(self.plan)

    def memory_report(self, scales: Sequence[int] = (1, 10, 100)) -> "MemoryReport":
        """What every step will hold at most, before anything runs: for the data as it is and for multiples of it.

        Prints nothing: the report that is returned has figures to ask for, and ``print(ds.memory_report())`` shows it
        as a table. Steps share the budget: each line has what its step takes if others leave it that much, and the last
        one what all of them hold together. What goes to disk is shown as ``? disk`` where nobody knows how many
        elements there are. Looks at the first element of steps whose elements' size is not known otherwise, and counts
        all as ones of that size.

        >>> import forebay as fb
        >>> ds = Dataset.range(1000).batch(10).with_options(fb.Options(memory="1GiB"))
        >>> report = ds.memory_report()
        >>> report.memory(1) == report.memory(100)
        True
        >>> print(report)
        budget 1 GiB (Options.memory)
        step                                        1x data  10x data  100x data  why
        batch(batch_size=10, drop_remainder=False)    4 MiB     4 MiB      4 MiB  a block in hand and one in the making
        range(start=0, stop=1000, step=1)             4 MiB     4 MiB      4 MiB  a block in hand and one in the making
        all steps                                     8 MiB     8 MiB      8 MiB
        """
        from forebay.plan.forecast import forecast

        sizes = whole_numbers("memory_report", "scales", scales, 1)
        setup = self._setup()
        with in_force(setup.remote):
            seeds = self._run_seeds()
            plan = optimise(with_seeds(self.plan, seeds), setup.rules)
            return forecast(plan, setup, sizes, self._element, seeds, self.options().memory)

    def _element(self, node: Node) -> Block | None:
        return _first_row(_without_shuffles(node), self._setup())

    def explain(self, file: IO[str] | None = None, *, analyze: bool = False, seconds: float = 10.0) -> None:
        """Print the plan as written and as it will run, the last step first, with the elements that come out of each.

        Returns None; give it a `file` to have the text. Where a step's workers were left to AUTOTUNE or
        ``executor="auto"``, what earlier iterations found is said too. Of a random step without a seed it says which
        one was drawn.

        Args:
            file: where to print; the standard output by default.
            analyze: also run the dataset, to its end or for so many seconds, and print what every step did: the table
                of ``DatasetIterator.stats``, which says what its columns are.
            seconds: how long that may take.

        >>> Dataset.range(100).shuffle(10, seed=1).skip(0).batch(32).explain()
        As written:
          batch(batch_size=32, drop_remainder=False)  4 elements
          skip(count=0)                               100 elements
          shuffle(buffer_size=10, seed=1)             100 elements
          range(start=0, stop=100, step=1)            100 elements
        <BLANKLINE>
        As it runs:
          batch(batch_size=32, drop_remainder=False)         4 elements
          shuffle(buffer_size=10, seed=1, reads='permuted')  100 elements
          range(start=0, stop=100, step=1)                   100 elements
        """
        from forebay.plan.explain import explain

        out = file or sys.stdout
        stats = self._run_for(seconds) if analyze else None
        setup = self._setup()
        with in_force(setup.remote):
            seeds = self._run_seeds()
            runs = optimise(with_seeds(self.plan, seeds), setup.rules)
            print(explain(self.plan, runs, seeds, self._parking.found()), file=out)
        if stats is not None:
            print("", "As it ran:", stats, sep="\n", file=out)

    def _run_for(self, seconds: float) -> Stats:
        # Of its own, so that looking does not count as an epoch.
        dataset: RunnableDataset[T_co] = copy.copy(self)
        with iter(dataset) as it:
            end = time.perf_counter() + seconds
            for _ in it:
                if time.perf_counter() > end:
                    break
            return it.stats()

    def __iter__(self) -> "DatasetIterator[T_co]":
        check_use(self.plan, self._epochs > 0)
        epoch, self._epochs = self._epochs, self._epochs + 1
        if self._lines is None:
            self._lines = plan_lines(self.plan)
        return DatasetIterator(self.plan, self._lines, self._setup(), self._run_seeds(), epoch, self._go_on_from)

    def _run_seeds(self) -> list[int]:
        """The seeds of unseeded steps: their own, or those of the run that a loaded state came from."""
        if self._seeds is None:
            self._seeds = own_seeds(self.plan)
        return self._seeds

    def _go_on_from(self, seeds: list[int], epoch: int) -> None:
        """An iterator has loaded a state: the next iterations are those that followed in the run it came from."""
        self._seeds = seeds
        self._epochs = epoch

    def _setup(self) -> Setup:
        options = self.options()
        assert options.block_bytes is not None
        check_reads(self.plan, options.remote)
        check_folder(options.spill_dir)
        cpus = options.autotune.cpu_budget or available_cpus()
        parallelism = Parallelism(
            cpus=cpus,
            most=options.threading.private_threadpool_size,
            intra_op=options.threading.max_intra_op_parallelism,
            deterministic=options.deterministic is not False,
            crew=Crew(self._parking, Tuner(cpus, enabled=options.autotune.enabled is not False)),
        )
        ledger = _ledger(options)
        return Setup(
            # Every step holds a few blocks at any time, and has to get by on its share of the budget.
            min(options.block_bytes, max(_LEAST_BLOCK, ledger.share // (_SHARES * _steps(self.plan)))),
            RULES if options.optimize else (),
            parallelism=parallelism,
            ledger=ledger,
            spill=SpillStore(options.spill_dir, _spill_limit(options), self._spills),
            remote=RemoteRun(options.remote),
        )

    def __repr__(self) -> str:
        return f"<Dataset {self.plan.describe()}>"


def _first_row(node: Node, setup: Setup) -> Block | None:
    """A block of the first row of a plan; None if it has none."""
    with in_force(setup.remote):
        operator = build(node, setup)
        try:
            reader = Reader(operator)
            reader.seek(START, 0)
            return reader.read(1)
        finally:
            setup.remote.closing = True
            operator.close()


def _ledger(options: Options) -> Ledger:
    """The one that was given, or one of its own."""
    if isinstance(options.memory, Ledger):
        return options.memory
    size = _SHARE if options.memory is None else options.memory
    ledger = Ledger(parse_size("Options.memory", size, memory_left))
    ledger.given = size
    return ledger


def _spill_limit(options: Options) -> int | None:
    if options.spill_limit is None:
        return None

    def left() -> int:
        # Only those who write need it otherwise.
        from forebay.run.spill import disk_left

        return disk_left(options.spill_dir)

    return parse_size("Options.spill_limit", options.spill_limit, left)


def _steps(node: Node) -> int:
    return 1 + sum(map(_steps, node.inputs))


def _without_shuffles(node: Node) -> Node:
    """The same elements, of which one can be had without reading many."""
    inputs = tuple(map(_without_shuffles, node.inputs))
    if node.inputs and node.traits.same_elements and node.traits.random:
        return inputs[0]
    return node.with_inputs(*inputs) if node.inputs else node
