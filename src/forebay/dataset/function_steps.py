"""The steps that call a function of the user's for every element, and what becomes of elements that it fails for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from forebay import ops
from forebay.dataset.keeping import KeepingDataset
from forebay.plan.check import flag, step_name
from forebay.plan.skips import ignore_errors
from forebay.run.faults import MAX_ERRORS

if TYPE_CHECKING:
    from forebay.dataset import Dataset
    from forebay.run.executors import ExecutorName

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class FunctionSteps(KeepingDataset[T_co]):
    """A dataset with the methods that take a function."""

    def map(
        self,
        map_func: Callable[..., U],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        executor: "ExecutorName" = "auto",
        batched: bool = False,
        rng: bool = False,
        seed: int | None = None,
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
    ) -> "Dataset[U]":
        """`map_func` of every element. A tuple is passed as separate arguments, anything else as one.

        Args:
            map_func: returns the new element, of one structure and dtype for all. Numbers, lists and anything that
                NumPy can make an array of, tensors of other libraries included, come out as NumPy values. An empty
                list has no dtype and goes with any: by itself it is NumPy's empty float64 array, whatever its
                neighbours are, and in a batch, a packed sequence or a saved column it has their dtype. Return
                ``np.array(ids, np.int64)`` to have it throughout. None is a value like any other, so a forgotten
                ``return`` gives elements that are None; a warning says so if the first one is.
            num_parallel_calls: work on so many elements at the same time, or AUTOTUNE. Without it nothing is started.
                The results and their order are the same in any case.
            deterministic: False lets elements come out in another order if they are ready sooner; none is lost or
                repeated. By default what ``Options.deterministic`` says.
            name: what to call this step in errors and plans.
            executor: where the calls run. ``"thread"`` serves functions that wait or release the interpreter lock,
                ``"process"`` those that compute in Python. ``"auto"`` measures which of the two it is; ``explain()``
                then tells. ``"inline"`` is the consumer's own thread. In worker processes, ``hash()`` of text is
                another than here unless PYTHONHASHSEED is set.
            batched: call `map_func` with whole columns of many elements at once: arrays with one more leading
                axis, of a length that it must not depend on. Much faster where it can be written that way. Not
                together with `rng`.
            rng: pass a ``numpy.random.Generator`` as the last argument. It is seeded by the element's number and
                the epoch, so results are the same at any parallelism and after any resume. Use it during the
                call only. To draw for many elements at once, ``batch`` first: then there is one per batch.
            seed: the seed of these generators; by default one that differs from run to run. Two steps with the same
                seed draw the same numbers.
            on_error: ``"skip"`` leaves out elements that `map_func` fails for, and logs them (logger "forebay").
                ``"raise"`` raises FunctionError. Results of another structure or dtype are raised in any case.
            max_errors: so many are left out; the next one is raised. None for any number.

        >>> list(Dataset.range(3).map(lambda x: (x, x + 0.5)).map(lambda a, b: a + b))
        [np.float64(0.5), np.float64(2.5), np.float64(4.5)]
        >>> list(Dataset.range(3).map(lambda column: column ** 2, batched=True))
        [np.int64(0), np.int64(1), np.int64(4)]
        >>> noise = Dataset.range(2).map(lambda x, rng: x + rng.integers(100), rng=True, seed=7)
        >>> list(noise) == list(noise.take(2))
        True
        >>> list(Dataset.from_tensor_slices(["1", "two", "3"]).map(int, on_error="skip"))
        [np.int64(1), np.int64(3)]
        """
        return self._then(
            ops.Map,
            name,
            map_func=map_func,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
            batched=batched,
            rng=rng,
            seed=seed,
            on_error=on_error,
            max_errors=max_errors,
        )

    def filter(
        self,
        predicate: Callable[..., Any],
        name: str | None = None,
        *,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        executor: "ExecutorName" = "auto",
        batched: bool = False,
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
    ) -> "Dataset[T_co]":
        """Only the elements that `predicate` returns True for.

        Args:
            predicate: gets an element as the function of ``map`` does.
            name: what to call this step in errors and plans.
            num_parallel_calls: as for ``map``, and so are all that follow.
            deterministic: whether to keep the order.
            executor: where the calls run.
            batched: call `predicate` with whole columns; it returns an array of booleans.
            on_error: what becomes of elements that `predicate` fails for.
            max_errors: how many of them may be left out.

        >>> list(Dataset.range(6).filter(lambda x: x % 3 == 0))
        [np.int64(0), np.int64(3)]
        """
        return self._then(
            ops.Filter,
            name,
            predicate=predicate,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
            batched=batched,
            on_error=on_error,
            max_errors=max_errors,
        )

    def flat_map(
        self,
        map_func: "Callable[..., Dataset[U]]",
        name: str | None = None,
        *,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        executor: str = "auto",
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
    ) -> "Dataset[U]":
        """The elements of a dataset that `map_func` makes of every element, one dataset after another.

        Args:
            map_func: makes a dataset of an element.
            name: what to call this step in errors and plans.
            num_parallel_calls: so many threads open the next datasets and read their first elements ahead. AUTOTUNE
                starts them once it shows that reading takes long, and leaves their number to Forebay; None starts none.
                The elements and their order stay the same.
            deterministic: False lets datasets that are ready overtake others, if there are threads at all.
            executor: ``"auto"`` as said; ``"thread"``: threads from the start, for AUTOTUNE too; ``"inline"``: none.
            on_error: as for ``map``. What fails in a dataset that `map_func` made is for that dataset to leave out.
            max_errors: as for ``map``.

        >>> list(Dataset.range(3).flat_map(lambda n: Dataset.range(n)))
        [np.int64(0), np.int64(0), np.int64(1)]
        """
        return self._then(
            ops.FlatMap,
            name,
            map_func=map_func,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
            on_error=on_error,
            max_errors=max_errors,
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
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
    ) -> "Dataset[U]":
        """The elements of a dataset that `map_func` makes of every element, several datasets in turns.

        Args:
            map_func: makes a dataset of an element.
            cycle_length: how many datasets take turns. When one ends, the next element's takes its place. None or
                AUTOTUNE means 16: the order follows from it, so it is the same on every machine.
            block_length: how many elements each gives in its turn; by default 1.
            num_parallel_calls: so many threads fetch elements ahead, and make the datasets that come next; otherwise as
                for ``flat_map``, and so are all that follow.
            deterministic: False lets elements that are ready overtake others, if there are threads at all.
            name: what to call this step in errors and plans.
            executor: threads, or none.
            on_error: what becomes of elements that `map_func` fails for.
            max_errors: how many of them may be left out.

        >>> ds = Dataset.range(1, 4).interleave(lambda n: Dataset.from_tensors(n).repeat(3), cycle_length=2)
        >>> [int(x) for x in ds]
        [1, 2, 1, 2, 1, 2, 3, 3, 3]
        """
        return self._then(
            ops.Interleave,
            name,
            map_func=map_func,
            cycle_length=cycle_length,
            block_length=block_length,
            num_parallel_calls=num_parallel_calls,
            deterministic=deterministic,
            executor=executor,
            on_error=on_error,
            max_errors=max_errors,
        )

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> "Dataset[T_co]":
        """Elements up to the first that `predicate` does not return True for.

        >>> list(Dataset.range(10).take_while(lambda x: x < 3))
        [np.int64(0), np.int64(1), np.int64(2)]
        """
        return self._then(ops.TakeWhile, name, predicate=predicate)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> "Dataset[T_co]":
        """The same dataset with whatever fails in its steps left out, without a limit.

        All steps up to here that have ``on_error``, which are readers of files and those with a function, do as with
        ``"skip"``, and so do those of datasets that ``flat_map`` and ``interleave`` make. Limits that were given stay.
        What fails in other steps is raised, as unequal shapes in ``batch``, or a generator. So is what fails before a
        ``cache`` or ``snapshot``, which keep elements as they were told to: put ``ignore_errors`` in front of these.

        Args:
            log_warning: tell what is left out (logger "forebay"). ``it.stats()`` counts it in any case.
            name: taken for the sake of programs written for tf.data; there is no step of that name.

        >>> ds = Dataset.from_tensor_slices([1.0, 0.0, 4.0]).map(lambda x: 1 // int(x))
        >>> list(ds.ignore_errors())
        [np.int64(1), np.int64(0)]
        """
        step_name("ignore_errors", name)
        return self._made(ignore_errors(self.plan, quiet=not flag("ignore_errors", "log_warning", log_warning)))
