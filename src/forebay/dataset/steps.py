"""The steps of a dataset: every method adds one to the plan and returns a new dataset."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from forebay.dataset.keeping import KeepingDataset
from forebay.dataset.runnable import RunnableDataset
from forebay.errors import DataError, PlanError
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
)
from forebay.options import Options
from forebay.plan import caller
from forebay.plan.check import function, step_name
from forebay.plan.fingerprint import function_name
from forebay.plan.node import UNKNOWN
from forebay.run.executors import ExecutorName

if TYPE_CHECKING:
    from forebay.dataset import Dataset

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class DatasetSteps(KeepingDataset[T_co]):
    """A dataset with the methods that make others of it."""

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
        if not isinstance(dataset, RunnableDataset):
            raise PlanError(f"concatenate({dataset!r}): the argument must be a Dataset")
        return self._made(Concatenate.of(self.plan, dataset.plan, name, caller()))

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
                by number, neither form keeps any elements in memory. Where it cannot, what does not fit into
                ``Options.memory`` goes to disk; a shuffle of everything reads all elements before it gives the first.
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
            buffer_size=None if buffer_size == UNKNOWN else buffer_size,
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
        result = transformation_func(cast("Dataset[T_co]", self))
        if not isinstance(result, RunnableDataset):
            raise PlanError(f"apply(): {function_name(transformation_func)} must return a Dataset, got {result!r}")
        return result

    def with_options(self, options: Options, name: str | None = None) -> "Dataset[T_co]":
        """The same dataset with other settings; see ``Options``.

        >>> Dataset.range(3).with_options(Options(optimize=False)).options().optimize
        False
        """
        return self._then(WithOptions, name, options=copy.copy(options))

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
