"""Steps that keep elements, and how a step of any kind is added."""

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, TypeVar, cast

from forebay.dataset.runnable import RunnableDataset
from forebay.errors import PlanError
from forebay.plan import Node, caller
from forebay.plan.site import frames_to_caller

if TYPE_CHECKING:
    from forebay.dataset import Dataset

T_co = TypeVar("T_co", covariant=True)

# Calls inside calls that a step may take, and room for those of the program around it.
_FRAMES = 4


class KeepingDataset(RunnableDataset[T_co]):
    """A dataset that can be told to keep its elements."""

    def cache(
        self,
        filename: "str | os.PathLike[str]" = "",
        name: str | None = None,
        *,
        compression: str | None = None,
    ) -> "Dataset[T_co]":
        """Compute every element once: later iterations, and later rounds of ``repeat``, get what was kept.

        What was kept belongs to this step. All datasets built on it share it, and it is freed with the last of them
        or by ``clear``. An iteration that stops early leaves a part, which the next one uses and continues.
        What draws random numbers before this step gives those of the first epoch in all of them; there is a warning,
        also for a function that plainly draws its own.

        Args:
            filename: a folder to keep elements in from one run to the next, made if it is not there. One with other
                files in it is used with a warning; these are never touched. Where a step before this one, its files,
                its data, or its function with what that refers to is another than it was, elements are computed anew,
                and the log (logger "forebay") says what has changed; the old ones stay until the new are complete, so
                that pipelines which differ need a folder each. All this is looked at when the dataset is first iterated
                over: one whose function changes afterwards, by a global for example, goes on with what it has; build
                it anew. Elements that do not read back as they were written are computed again, and logged.
                Files are those that ``list_files`` or a file dataset names, not those that only a function opens: paths
                in ``from_tensor_slices`` are that too, also for ``interleave(fb.TextLineDataset)``. Large mapped arrays
                are not read: a file that was moved, copied or written anew is another one. An object that changes while
                the function runs, as a memo does, is another one in the next run. What does not count is the state of
                generators of random numbers, modules that are imported inside the function, what it finds by a text
                (``globals()["x"]``, ``eval``), the environment, what a ``__getstate__`` leaves out, and what is written
                to a mapped file through another mapping of it, or to any file that then gets its old time and size
                back: ``clear`` if that has changed. By default elements are kept in memory, up to half of
                ``Options.memory``, and from there on in a file that ends with the process.
            name: what to call this step in errors and plans.
            compression: ``"zstd"`` or ``"lz4"``, for the files in `filename`.

        >>> ds = Dataset.range(2).map(lambda x: print("computing", x) or x).cache()
        >>> [int(x) for x in ds.repeat(3)]
        computing 0
        computing 1
        [0, 1, 0, 1, 0, 1]
        """
        # Imported by those who use it.
        from forebay.ops.cache import Cache, frozen_text, redrawn_below, unrelated_text
        from forebay.storage.folder import from_root, local_folder

        if not isinstance(filename, (str, os.PathLike)):
            raise PlanError(f"cache(filename={filename!r}): filename must be a path")
        path = local_folder("cache", os.fspath(filename))
        if path:
            # The program may go to another folder later.
            path = from_root("cache", path)
        cached = self._then(Cache, name, filename=path, compression=compression)
        beside = unrelated_text(caller(), path)
        if beside is not None:
            warnings.warn(beside, UserWarning, stacklevel=frames_to_caller())
        redrawn = redrawn_below(self.plan)
        unseeded = [step for step in redrawn if step.unseeded] if path else []
        # Whether an order will be the same in all epochs depends on what comes behind this step.
        drawn = [step for step in redrawn if not step.reorders]
        if drawn:
            text = frozen_text(caller(), drawn[-1]) + (
                "; without a seed, every run fills the files anew" * bool(unseeded)
            )
            warnings.warn(text, UserWarning, stacklevel=frames_to_caller())
        elif unseeded:
            warnings.warn(
                f"cache at {caller()} keeps the order that {unseeded[-1].site} draws: without a seed, every run fills "
                "the files anew. Give it a seed, or put it behind cache()",
                UserWarning,
                stacklevel=frames_to_caller(),
            )
        return cached

    def clear(self) -> None:
        """Free what the ``cache`` steps of this dataset have kept, in memory and on disk.

        Iterators that are under way go on; the next iteration computes elements anew, also in other processes. Of a
        ``cache(path)`` all elements go that a cache has put into its folder, those of other datasets too; the folder
        stays, and its empty ``lock``.

        >>> ds = Dataset.range(3).cache()
        >>> len(list(ds))
        3
        >>> ds.clear()
        """
        from forebay.ops.cache import clear_caches

        clear_caches(self.plan)

    def _then(self, node: type[Node], name: str | None, **arguments: Any) -> "Dataset[Any]":
        return self._made(node(inputs=(self.plan,), label=name, where=caller(), **arguments))

    def _made(self, plan: Node) -> "Dataset[Any]":
        if plan.depth > sys.getrecursionlimit() // _FRAMES:
            raise PlanError(
                f"{plan.site}: {plan.depth} steps one on another are more than Python's recursion limit of "
                f"{sys.getrecursionlimit()} has room for; do more in one step, or see sys.setrecursionlimit()"
            )
        return cast("Dataset[Any]", type(self)(plan))
