"""The fluent face of Forebay: every method adds one step to a plan and returns a new dataset."""

import copy
import sys
import time
from collections.abc import Callable
from typing import IO, Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from forebay.block import START, flatten
from forebay.block.spec import as_dtype
from forebay.errors import DataError, FunctionError, LengthError, PlanError
from forebay.iterator import DatasetIterator
from forebay.ops import (
    Batch,
    Concatenate,
    Enumerate,
    Filter,
    FlatMap,
    Interleave,
    Map,
    Prefetch,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    TakeWhile,
    Unbatch,
    WithOptions,
    Zip,
)
from forebay.ops.options import plan_options
from forebay.options import Options
from forebay.plan import INFINITE, Node, build, caller, optimise, own_seeds, with_seeds
from forebay.plan.check import function, step_name
from forebay.plan.explain import explain
from forebay.plan.fingerprint import function_name
from forebay.plan.identity import plan_lines
from forebay.plan.spec import element_spec
from forebay.rules import RULES
from forebay.run import Reader, Setup
from forebay.run.cpus import available_cpus
from forebay.run.crew import Crew, Parking
from forebay.run.executors import ExecutorName
from forebay.run.meter import StageStats
from forebay.run.parallelism import Parallelism
from forebay.run.stats import table
from forebay.run.tuner import Tuner
from forebay.sources import Counter, Generator, Random, Range, single_element, slices
from forebay.sources.generator import signature_from_types
from forebay.static import StaticOrMethod

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
S = TypeVar("S")


class Dataset(Generic[T_co]):
    """A lazy, immutable description of a stream of elements.

    Elements are NumPy arrays and scalars, bytes, str or other objects, alone or nested in dicts, tuples, named
    tuples and dataclasses. Nothing runs until the dataset is iterated over, and every iteration starts anew.

    >>> ds = Dataset.range(6).map(lambda x: x * 10).batch(4)
    >>> for batch in ds:
    ...     print(batch)
    [ 0 10 20 30]
    [40 50]

    Functions given to a dataset should depend on nothing but their arguments: results may be computed ahead,
    again after a resume, or in another order than they are handed out in.
    """

    def __init__(self, plan: Node) -> None:
        if not isinstance(plan, Node):
            raise PlanError(
                f"Dataset({type(plan).__name__}): datasets are made by from_tensor_slices() of arrays, "
                "from_generator() of a function that returns an iterator, from_tensors() of one element, and others"
            )
        # Every method ends here, so that none can forget it.
        step_name(plan.describe().partition("(")[0], plan.label)
        self.plan = plan
        self._epochs = 0
        self._seeds: list[int] | None = None
        self._lines: list[str] | None = None
        self._parking = Parking()

    # Sources

    @staticmethod
    def range(*args: int, output_type: DTypeLike = np.int64, name: str | None = None) -> "Dataset[Any]":
        """Numbers as Python's ``range`` gives them: ``range(stop)``, ``(start, stop)`` or ``(start, stop, step)``.

        >>> list(Dataset.range(1, 10, 4, output_type=np.int32))
        [np.int32(1), np.int32(5), np.int32(9)]
        """
        if not 1 <= len(args) <= 3:
            raise PlanError(f"range() takes one to three numbers, got {len(args)}")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        return Dataset(
            Range(
                start=start,
                stop=stop,
                step=step,
                output_type=as_dtype("range", "output_type", output_type),
                label=name,
                where=caller(),
            )
        )

    @staticmethod
    def from_tensors(tensors: U, name: str | None = None) -> "Dataset[U]":
        """A dataset of one element.

        >>> list(Dataset.from_tensors({"x": [1, 2, 3]}))
        [{'x': array([1, 2, 3])}]
        """
        return Dataset(single_element(tensors, name, caller()))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> "Dataset[Any]":
        """A dataset of the rows of arrays: element i holds row i of each.

        Arrays are not copied, and memory-mapped ones are not loaded. A pandas DataFrame gives dicts of its columns.
        Other objects that look like arrays, such as an open h5py dataset, are loaded whole: for those that do not
        fit into memory, ``range(len(x)).map(lambda i: x[i])`` reads row by row.

        >>> list(Dataset.from_tensor_slices(([1, 2], ["a", "b"])))
        [(np.int64(1), 'a'), (np.int64(2), 'b')]
        """
        return Dataset(slices(tensors, name, caller()))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """Elements from a function that returns an iterator; it is called anew for every iteration.

        To resume, the function is called again and elements are skipped, unless its iterator has
        ``state_dict`` and ``load_state_dict``: then its own state is saved and loaded.

        Args:
            generator: returns an iterable; called with `args`.
            output_types: the older form of `output_signature`, together with `output_shapes`.
            output_shapes: see `output_types`.
            args: arguments for `generator`.
            output_signature: a structure of ``TensorSpec`` that elements are cast to and checked against.
                Without it the first element sets structure and dtypes.
            name: what to call this step in errors and plans.

        >>> list(Dataset.from_generator(lambda: (i * i for i in range(4))))
        [np.int64(0), np.int64(1), np.int64(4), np.int64(9)]
        """
        if output_types is not None:
            if output_signature is not None:
                raise PlanError("from_generator(): give output_signature or output_types, not both")
            output_signature = signature_from_types(output_types, output_shapes)
        return Dataset(
            Generator(
                generator=generator,
                args=args if args is not None else (),
                output_signature=output_signature,
                label=name,
                where=caller(),
            )
        )

    @staticmethod
    def random(
        seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> "Dataset[np.int64]":
        """Random whole numbers from 0 to 2**32 - 1, without end.

        Args:
            seed: fixes the numbers for ever.
            rerandomize_each_iteration: other numbers in every iteration, the same ones for the same iteration.
            name: what to call this step in errors and plans.

        >>> list(Dataset.random(seed=1).take(2))
        [np.int64(3884011773), np.int64(3150830517)]
        """
        again = bool(rerandomize_each_iteration) if rerandomize_each_iteration is None else rerandomize_each_iteration
        return Dataset(Random(seed=seed, rerandomize_each_iteration=again, label=name, where=caller()))

    @staticmethod
    def counter(start: int = 0, step: int = 1, dtype: DTypeLike = np.int64, name: str | None = None) -> "Dataset[Any]":
        """Numbers from `start` in steps of `step`, without end.

        >>> list(Dataset.counter(start=5, step=2).take(3))
        [np.int64(5), np.int64(7), np.int64(9)]
        """
        return Dataset(
            Counter(start=start, step=step, dtype=as_dtype("counter", "dtype", dtype), label=name, where=caller())
        )

    @StaticOrMethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> "Dataset[Any]":
        """Elements of several datasets side by side, as long as all have one. Any structure of datasets will do.

        ``a.zip(b)`` is ``Dataset.zip(a, b)``.

        >>> a, b = Dataset.range(3), Dataset.from_tensor_slices(["x", "y"])
        >>> list(Dataset.zip(a, b))
        [(np.int64(0), 'x'), (np.int64(1), 'y')]
        >>> list(Dataset.zip({"n": a, "s": b}).take(1))
        [{'n': np.int64(0), 's': 'x'}]
        """
        if bool(args) == (datasets is not None):
            raise PlanError("zip(): give datasets, either one by one or in one structure")
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        leaves, shape = flatten(given)
        for leaf in leaves:
            if not isinstance(leaf, Dataset):
                hint = "; put datasets into a tuple or a dict" if isinstance(leaf, list) else ""
                raise PlanError(f"zip(): {leaf!r} is not a Dataset{hint}")
        if not leaves:
            raise PlanError("zip(): there are no datasets")
        return Dataset(Zip(inputs=tuple(leaf.plan for leaf in leaves), shape=shape, label=name, where=caller()))

    # Operators

    def map(
        self,
        map_func: Callable[..., U],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        executor: ExecutorName = "auto",
        batched: bool = False,
        rng: bool = False,
        seed: int | None = None,
    ) -> "Dataset[U]":
        """`map_func` of every element. A tuple is passed as separate arguments, anything else as one.

        Args:
            map_func: returns the new element, of one structure and dtype for all. Numbers, lists and anything that
                NumPy can make an array of, tensors of other libraries included, come out as NumPy values. None is a
                value like any other, so a forgotten ``return`` gives elements that are None.
            num_parallel_calls: work on so many elements at the same time, or AUTOTUNE. Without it nothing is started.
                The results and their order are the same in any case.
            deterministic: False lets elements come out in another order if they are ready sooner; none is lost or
                repeated. By default what ``Options.deterministic`` says.
            name: what to call this step in errors and plans.
            executor: where the calls run. ``"thread"`` serves functions that wait or release the interpreter lock,
                ``"process"`` those that compute in Python. ``"auto"`` measures which of the two it is; ``explain()``
                then tells. ``"inline"`` is the consumer's own thread.
            batched: call `map_func` with whole columns of many elements at once: arrays with one more leading
                axis, of a length that it must not depend on. Much faster where it can be written that way. Not
                together with `rng`.
            rng: pass a ``numpy.random.Generator`` as the last argument. It is seeded by the element's number and
                the epoch, so results are the same at any parallelism and after any resume. Use it during the
                call only. To draw for many elements at once, ``batch`` first: then there is one per batch.
            seed: the seed of these generators; by default one that differs from run to run. Two steps with the same
                seed draw the same numbers.

        >>> list(Dataset.range(3).map(lambda x: (x, x + 0.5)).map(lambda a, b: a + b))
        [np.float64(0.5), np.float64(2.5), np.float64(4.5)]
        >>> list(Dataset.range(3).map(lambda column: column ** 2, batched=True))
        [np.int64(0), np.int64(1), np.int64(4)]
        >>> noise = Dataset.range(2).map(lambda x, rng: x + rng.integers(100), rng=True, seed=7)
        >>> list(noise) == list(noise.take(2))
        True
        """
        return self._then(
            Map,
            name,
            map_func=map_func,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
            batched=batched,
            rng=rng,
            seed=seed,
        )

    def filter(
        self,
        predicate: Callable[..., Any],
        name: str | None = None,
        *,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        executor: ExecutorName = "auto",
        batched: bool = False,
    ) -> "Dataset[T_co]":
        """Only the elements that `predicate` returns True for.

        Args:
            predicate: gets an element as the function of ``map`` does.
            name: what to call this step in errors and plans.
            num_parallel_calls: as for ``map``, and so are the next two.
            deterministic: whether to keep the order.
            executor: where the calls run.
            batched: call `predicate` with whole columns; it returns an array of booleans.

        >>> list(Dataset.range(6).filter(lambda x: x % 3 == 0))
        [np.int64(0), np.int64(3)]
        """
        return self._then(
            Filter,
            name,
            predicate=predicate,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
            batched=batched,
        )

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """Consecutive elements stacked along a new first axis.

        Args:
            batch_size: how many.
            drop_remainder: leave out a last batch that is not full.
            num_parallel_calls: taken for the sake of programs written for tf.data. Batches are cut out of columns,
                many at once; there is nothing to share out.
            deterministic: taken for the same reason.
            name: what to call this step in errors and plans.

        >>> list(Dataset.range(5).batch(2))
        [array([0, 1]), array([2, 3]), array([4])]
        """
        return self._then(Batch, name, batch_size=batch_size, drop_remainder=drop_remainder)

    def unbatch(self, name: str | None = None) -> "Dataset[Any]":
        """Every element split along its first axis.

        >>> list(Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch())
        [np.int64(1), np.int64(2), np.int64(3), np.int64(4)]
        """
        return self._then(Unbatch, name)

    def take(self, count: int, name: str | None = None) -> "Dataset[T_co]":
        """The first `count` elements; all of them for -1.

        >>> list(Dataset.range(100).take(2))
        [np.int64(0), np.int64(1)]
        """
        return self._then(Take, name, count=count)

    def skip(self, count: int, name: str | None = None) -> "Dataset[T_co]":
        """All but the first `count` elements; none for -1.

        >>> list(Dataset.range(4).skip(2))
        [np.int64(2), np.int64(3)]
        """
        return self._then(Skip, name, count=count)

    def shard(self, num_shards: int, index: int, name: str | None = None) -> "Dataset[T_co]":
        """Every `num_shards`-th element, beginning with the one at `index`.

        >>> list(Dataset.range(10).shard(num_shards=4, index=1))
        [np.int64(1), np.int64(5), np.int64(9)]
        """
        return self._then(Shard, name, num_shards=num_shards, index=index)

    def repeat(self, count: int | None = None, name: str | None = None) -> "Dataset[T_co]":
        """The whole dataset `count` times; for ever for None or -1. Each round reshuffles what is shuffled.

        >>> list(Dataset.range(2).repeat(2))
        [np.int64(0), np.int64(1), np.int64(0), np.int64(1)]
        """
        return self._then(Repeat, name, count=count)

    def concatenate(self, dataset: "Dataset[Any]", name: str | None = None) -> "Dataset[T_co]":
        """This dataset, then another.

        >>> list(Dataset.range(2).concatenate(Dataset.range(7, 9)))
        [np.int64(0), np.int64(1), np.int64(7), np.int64(8)]
        """
        if not isinstance(dataset, Dataset):
            raise PlanError(f"concatenate({dataset!r}): the argument must be a Dataset")
        return Dataset(Concatenate.of(self.plan, dataset.plan, name, caller()))

    def enumerate(self, start: int = 0, name: str | None = None) -> "Dataset[tuple[np.int64, T_co]]":
        """Every element with its number.

        >>> list(Dataset.from_tensor_slices(["a", "b"]).enumerate(start=5))
        [(np.int64(5), 'a'), (np.int64(6), 'b')]
        """
        return self._then(Enumerate, name, start=start)

    def flat_map(
        self,
        map_func: "Callable[..., Dataset[U]]",
        name: str | None = None,
        *,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        executor: str = "auto",
    ) -> "Dataset[U]":
        """The elements of a dataset that `map_func` makes of every element, one dataset after another.

        Args:
            map_func: makes a dataset of an element.
            name: what to call this step in errors and plans.
            num_parallel_calls: so many threads open the next datasets and read their first elements ahead. AUTOTUNE
                leaves the number to Forebay, None starts no thread. The elements and their order stay the same.
            deterministic: False lets datasets that are ready overtake others, if there are threads at all.
            executor: ``"thread"``, which ``"auto"`` means here too, or ``"inline"`` to start no thread all the same.

        >>> list(Dataset.range(3).flat_map(lambda n: Dataset.range(n)))
        [np.int64(0), np.int64(0), np.int64(1)]
        """
        return self._then(
            FlatMap,
            name,
            map_func=map_func,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
        )

    def interleave(
        self,
        map_func: "Callable[..., Dataset[U]]",
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        executor: str = "auto",
    ) -> "Dataset[U]":
        """The elements of a dataset that `map_func` makes of every element, several datasets in turns.

        Args:
            map_func: makes a dataset of an element.
            cycle_length: how many datasets take turns. When one ends, the next element's takes its place. None or
                AUTOTUNE means 16: the order follows from it, so it is the same on every machine.
            block_length: how many elements each gives in its turn; by default 1.
            num_parallel_calls: so many threads fetch elements ahead, and make the datasets that come next. AUTOTUNE
                leaves the number to Forebay, None starts no thread. The elements and their order stay the same.
            deterministic: False lets elements that are ready overtake others, if there are threads at all.
            name: what to call this step in errors and plans.
            executor: as for ``flat_map``.

        >>> ds = Dataset.range(1, 4).interleave(lambda n: Dataset.from_tensors(n).repeat(3), cycle_length=2)
        >>> [int(x) for x in ds]
        [1, 2, 1, 2, 1, 2, 3, 3, 3]
        """
        return self._then(
            Interleave,
            name,
            map_func=map_func,
            cycle_length=cycle_length,
            block_length=block_length,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
        )

    def shuffle(
        self,
        buffer_size: int | None = None,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
        name: str | None = None,
    ) -> "Dataset[T_co]":
        """Elements in random order. All datasets built on this one see the same order in the same epoch.

        Args:
            buffer_size: pick each element at random from a buffer of so many, as tf.data does. Without it (or
                with UNKNOWN_CARDINALITY, which says the same in tf.data), or if it covers the whole of a dataset
                that can be read by number, the order is uniform over everything. Where the dataset can be read
                by number, neither form keeps any elements in memory.
            seed: fixes the order of every epoch for ever; by default it differs from run to run.
            reshuffle_each_iteration: a new order in every iteration and every round of ``repeat``.
            name: what to call this step in errors and plans.

        >>> sorted(Dataset.range(5).shuffle(seed=1))
        [np.int64(0), np.int64(1), np.int64(2), np.int64(3), np.int64(4)]
        >>> shuffled = Dataset.range(10).shuffle(10, reshuffle_each_iteration=False)
        >>> train, test = shuffled.take(7), shuffled.skip(7)
        >>> set(train) & set(test)
        set()
        """
        return self._then(
            Shuffle,
            name,
            buffer_size=None if buffer_size == UNKNOWN_CARDINALITY else buffer_size,
            seed=seed,
            reshuffle_each_iteration=True if reshuffle_each_iteration is None else reshuffle_each_iteration,
        )

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> "Dataset[T_co]":
        """Elements up to the first that `predicate` does not return True for.

        >>> list(Dataset.range(10).take_while(lambda x: x < 3))
        [np.int64(0), np.int64(1), np.int64(2)]
        """
        return self._then(TakeWhile, name, predicate=predicate)

    def prefetch(
        self, buffer_size: int | None, name: str | None = None, *, max_bytes: int | None = None
    ) -> "Dataset[T_co]":
        """Prepare elements on a background thread while earlier ones are in use.

        Args:
            buffer_size: how many elements to have ready; AUTOTUNE or None to leave that to Forebay. Elements
                travel in blocks, so there may be up to one block more.
            name: what to call this step in errors and plans.
            max_bytes: have no more than this ready, however many elements that is, but always one block. 256 MiB by
                default; under AUTOTUNE some blocks, and up to 64 MiB where that is found to help.

        >>> list(Dataset.range(3).prefetch(AUTOTUNE))
        [np.int64(0), np.int64(1), np.int64(2)]
        """
        return self._then(Prefetch, name, buffer_size=buffer_size, max_bytes=max_bytes)

    def apply(self, transformation_func: "Callable[[Dataset[T_co]], Dataset[U]]") -> "Dataset[U]":
        """`transformation_func` of this dataset: a chain of steps with a name of its own.

        >>> list(Dataset.range(5).apply(lambda ds: ds.skip(3)))
        [np.int64(3), np.int64(4)]
        """
        function("apply", "transformation_func", transformation_func)
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise PlanError(f"apply(): {function_name(transformation_func)} must return a Dataset, got {result!r}")
        return result

    def with_options(self, options: Options, name: str | None = None) -> "Dataset[T_co]":
        """The same dataset with other settings; see ``Options``.

        >>> Dataset.range(3).with_options(Options(optimize=False)).options().optimize
        False
        """
        return self._then(WithOptions, name, options=copy.copy(options))

    # Results

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
                    raise FunctionError(
                        f"reduce at {caller()}, element {index}: {function_name(reduce_func)} raised "
                        f"{type(error).__name__}: {error}"
                    ) from error
        return state

    def get_single_element(self, name: str | None = None) -> T_co:
        """The only element; DataError if there is none or more than one.

        >>> Dataset.range(4).batch(10).get_single_element()
        array([0, 1, 2, 3])
        """
        step_name("get_single_element", name)
        with iter(self.take(2)) as elements:
            found = list(elements)
        if len(found) != 1:
            count = "no element" if not found else "more than one element"
            raise DataError(f"get_single_element at {caller()}: the dataset has {count}")
        return found[0]

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
        return self.plan.cardinality()

    def __len__(self) -> int:
        count = self.cardinality()
        if count < 0:
            why = "it is infinite" if count == INFINITE else "only iterating over it can tell"
            raise LengthError(f"this dataset has no length: {why}; cardinality() tells which")
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
        return element_spec(with_seeds(self.plan, self._run_seeds()), self._peek)

    def _peek(self, node: Node) -> Any:
        setup = self._setup()
        operator = build(optimise(node, setup.rules), setup)
        try:
            reader = Reader(operator)
            reader.seek(START, 0)
            block = reader.read(1)
        finally:
            operator.close()
        if block is None:
            raise DataError(f"{node.site} gives no elements, so its element_spec cannot be told")
        return block.structure.unflatten([column.spec for column in block.columns])

    def options(self) -> Options:
        """The settings in force: those given with ``with_options``, later ones first, then the defaults.

        >>> Dataset.range(3).options().block_bytes
        1048576
        """
        return plan_options(self.plan)

    def explain(self, file: IO[str] | None = None, *, analyze: bool = False, seconds: float = 10.0) -> None:
        """Print the plan as written and as it will run, the last step first, with the elements that come out of each.

        Where a step's workers were left to AUTOTUNE or ``executor="auto"``, what earlier iterations found is said too.

        Args:
            file: where to print; the standard output by default.
            analyze: also run the dataset, to its end or for so many seconds, and print what every step did.
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
        out = file or sys.stdout
        stats = self._run_for(seconds) if analyze else []
        runs = optimise(with_seeds(self.plan, self._run_seeds()), self._setup().rules)
        print(explain(self.plan, runs, self._parking.found()), file=out)
        if analyze:
            print("", "As it ran:", table(stats), sep="\n", file=out)

    def _run_for(self, seconds: float) -> list[StageStats]:
        # Of its own, so that looking does not count as an epoch.
        dataset: Dataset[Any] = copy.copy(self)
        with iter(dataset) as it:
            end = time.perf_counter() + seconds
            for _ in it:
                if time.perf_counter() > end:
                    break
            return it.stats()

    def __iter__(self) -> "DatasetIterator[T_co]":
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
        cpus = options.autotune.cpu_budget or available_cpus()
        parallelism = Parallelism(
            cpus=cpus,
            most=options.threading.private_threadpool_size,
            intra_op=options.threading.max_intra_op_parallelism,
            deterministic=options.deterministic is not False,
            crew=Crew(self._parking, Tuner(cpus, enabled=options.autotune.enabled is not False)),
        )
        return Setup(options.block_bytes, RULES if options.optimize else (), parallelism=parallelism)

    def _then(self, node: type[Node], name: str | None, **arguments: Any) -> "Dataset[Any]":
        return Dataset(node(inputs=(self.plan,), label=name, where=caller(), **arguments))

    def __repr__(self) -> str:
        return f"<Dataset {self.plan.describe()}>"
