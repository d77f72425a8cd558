"""The steps of a dataset: every method adds one to the plan and returns a new dataset."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from forebay import ops
from forebay.dataset.function_steps import FunctionSteps
from forebay.dataset.runnable import RunnableDataset
from forebay.errors import DataError, PlanError
from forebay.options import Options
from forebay.plan import caller
from forebay.plan.check import function, step_name
from forebay.plan.fingerprint import function_name
from forebay.plan.node import UNKNOWN

if TYPE_CHECKING:
    from forebay.dataset import Dataset

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class DatasetSteps(FunctionSteps[T_co]):
    """A dataset with the methods that make others of it."""

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
        return self._then(ops.Batch, name, batch_size=batch_size, drop_remainder=drop_remainder)

    def unbatch(self, name: str | None = None) -> "Dataset[Any]":
        """Every element split along its first axis.

        >>> list(Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch())
        [np.int64(1), np.int64(2), np.int64(3), np.int64(4)]
        """
        return self._then(ops.Unbatch, name)

    def take(self, count: int, name: str | None = None) -> "Dataset[T_co]":
        """The first `count` elements; all of them for -1.

        >>> list(Dataset.range(100).take(2))
        [np.int64(0), np.int64(1)]
        """
        return self._then(ops.Take, name, count=count)

    def skip(self, count: int, name: str | None = None) -> "Dataset[T_co]":
        """All but the first `count` elements; none for -1.

        >>> list(Dataset.range(4).skip(2))
        [np.int64(2), np.int64(3)]
        """
        return self._then(ops.Skip, name, count=count)

    def shard(self, num_shards: int, index: int, name: str | None = None) -> "Dataset[T_co]":
        """Every `num_shards`-th element, beginning with the one at `index`.

        >>> list(Dataset.range(10).shard(num_shards=4, index=1))
        [np.int64(1), np.int64(5), np.int64(9)]
        """
        return self._then(ops.Shard, name, num_shards=num_shards, index=index)

    def repeat(self, count: int | None = None, name: str | None = None) -> "Dataset[T_co]":
        """The whole dataset `count` times; for ever for None or -1. Each round reshuffles what is shuffled.

        >>> list(Dataset.range(2).repeat(2))
        [np.int64(0), np.int64(1), np.int64(0), np.int64(1)]
        """
        return self._then(ops.Repeat, name, count=count)

    def concatenate(self, dataset: "Dataset[Any]", name: str | None = None) -> "Dataset[T_co]":
        """This dataset, then another.

        >>> list(Dataset.range(2).concatenate(Dataset.range(7, 9)))
        [np.int64(0), np.int64(1), np.int64(7), np.int64(8)]
        """
        if not isinstance(dataset, RunnableDataset):
            raise PlanError(f"concatenate({dataset!r}): the argument must be a Dataset")
        return self._made(ops.Concatenate.of(self.plan, dataset.plan, name, caller()))

    def enumerate(self, start: int = 0, name: str | None = None) -> "Dataset[tuple[np.int64, T_co]]":
        """Every element with its number.

        >>> list(Dataset.from_tensor_slices(["a", "b"]).enumerate(start=5))
        [(np.int64(5), 'a'), (np.int64(6), 'b')]
        """
        return self._then(ops.Enumerate, name, start=start)

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
                ``Options.memory`` goes to disk; a shuffle of everything reads all elements before it gives the first,
                and tells how far it has come: on a terminal there, elsewhere in the log (logger "forebay", INFO).
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
            ops.Shuffle,
            name,
            buffer_size=None if isinstance(buffer_size, (int, np.integer)) and buffer_size == UNKNOWN else buffer_size,
            seed=seed,
            reshuffle_each_iteration=True if reshuffle_each_iteration is None else reshuffle_each_iteration,
        )

    def prefetch(
        self, buffer_size: int | None, name: str | None = None, *, max_bytes: int | None = None
    ) -> "Dataset[T_co]":
        """Prepare elements on a background thread while earlier ones are in use.

        Args:
            buffer_size: how many elements to have ready; AUTOTUNE or None to leave that to Forebay, which also does
                without a thread while nothing is gained by one. Elements travel in blocks, so there may be up to one
                block more.
            name: what to call this step in errors and plans.
            max_bytes: have no more than this ready, however many elements that is, but always one block. 256 MiB by
                default; under AUTOTUNE some blocks, and up to 64 MiB where that is found to help.

        >>> list(Dataset.range(3).prefetch(AUTOTUNE))
        [np.int64(0), np.int64(1), np.int64(2)]
        """
        return self._then(ops.Prefetch, name, buffer_size=buffer_size, max_bytes=max_bytes)

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
        return self._then(ops.WithOptions, name, options=copy.copy(options))

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
