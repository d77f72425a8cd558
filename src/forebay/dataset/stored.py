"""Datasets on disk: ``save``, ``load`` and ``snapshot``.

What reads and writes them is imported where it is used: most programs never do, and all of them import this.
"""

import os
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from forebay.block import START, Block
from forebay.dataset.runnable import RunnableDataset
from forebay.dataset.steps import DatasetSteps
from forebay.digests import blake2b
from forebay.errors import ForebayError, PlanError
from forebay.plan import INFINITE, Node, build, caller, optimise, with_seeds
from forebay.plan.check import flag, function, step_name, whole_number
from forebay.plan.fingerprint import function_name
from forebay.plan.identity import plan_lines
from forebay.plan.spec import same_kind, static_spec
from forebay.remote_run import in_force
from forebay.run import Reader, Setup, Site

if TYPE_CHECKING:
    from forebay.dataset import Dataset
    from forebay.sources.saved import Saved

T_co = TypeVar("T_co", covariant=True)

ReaderFunc = Callable[["Dataset[Any]"], "Dataset[Any]"]


class StoredDataset(DatasetSteps[T_co]):
    """A dataset that can be kept on disk."""

    def save(
        self,
        path: str | os.PathLike[str],
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: None = None,
        *,
        overwrite: bool = True,
        progress: bool | None = None,
    ) -> None:
        """Write all elements to a folder, from which ``load`` reads them.

        The folder holds Arrow IPC files, one or more for each shard, which pyarrow, polars and DuckDB read as they
        are, and a manifest. There is a column for each leaf: ``image``, ``0``, ``a.b``, or ``value`` for a lone one.
        Arrays of one shape are Arrow's fixed-shape tensors; those of one axis whose length differs are lists. Python
        objects that are not str, bytes, numbers, numpy dates, arrays of them or None are refused.

        Everything is written beside the folder and put in its place at the end, in one step: whatever happens
        meanwhile, there is the old dataset or none, never a part of the new one. What a crash leaves behind is
        removed by the next ``save`` to the same path.

        Args:
            path: the folder. As in tf.data, a saved dataset that is there already is replaced. A folder of other
                files is not.
            compression: None, ``"zstd"`` or ``"lz4"``. Without it, rows are read one by one; otherwise as whole
                batches of about 1 MiB.
            shard_func: gets an element, as the function of ``map`` does, and returns the number of the shard that it
                goes to. By default there is one shard.
            checkpoint_args: not supported, since a part of a dataset is never kept.
            overwrite: False refuses to replace a saved dataset.
            progress: show a progress bar; by default on a terminal only.

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> Dataset.range(5).map(lambda x: {"x": x, "name": f"row {x}"}).save(folder)
        >>> next(iter(Dataset.load(folder)))
        {'x': np.int64(0), 'name': 'row 0'}
        """
        from forebay.sinks.save import compression_of, folder_of, shards_by, write_blocks
        from forebay.storage.writer import DatasetWriter

        if checkpoint_args is not None:
            raise PlanError("save(checkpoint_args=...): not supported, an interrupted save() starts over")
        folder = folder_of("save", path)
        codec = compression_of("save", compression)
        flag("save", "overwrite", overwrite)
        if self.cardinality() == INFINITE:
            raise PlanError("save(): the dataset is infinite; take() a part of it")
        site = Site("save", None, caller())
        shard_of = None if shard_func is None else shards_by(site, function("save", "shard_func", shard_func))
        setup = self._setup()
        writer = DatasetWriter(
            folder,
            "save",
            compression=codec,
            shard_of=shard_of,
            spec=self._known_spec(),
            plan=plan_digest(self.plan),
            overwrite=overwrite,
            ledger=setup.ledger,
        )
        total = self.cardinality()
        with in_force(setup.remote):
            write_blocks(self._blocks(setup), writer, total if total >= 0 else None, progress)

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: ReaderFunc | None = None,
        wait: bool = False,
        *,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """The dataset that ``save`` wrote to a folder.

        Its length and ``element_spec`` are known without reading it, and rows are read by number: ``shuffle()``
        needs no buffer, ``skip`` and resuming cost nothing. Little of it is ever in memory. The elements of several
        shards come in turns, as ``interleave`` takes them; those of one shard in the order they were saved in.

        Checksums cover every byte. That of the manifest is checked here, those of a file's schema and footer when it
        is opened, and that of a record batch when the first of its rows is read.

        Args:
            path: the folder.
            element_spec: what elements have to be like; its containers are used in place of those that were saved.
            compression: what was given to ``save``, or None: the files tell.
            reader_func: gets a dataset of datasets, one for each shard, and returns a dataset of their elements, as
                ``shards.shuffle(8).interleave(lambda shard: shard)`` does.
            wait: not supported; a dataset is there when it is complete.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> Dataset.range(6).save(folder, shard_func=lambda x: x % 2)
        >>> [int(x) for x in Dataset.load(folder)]
        [0, 1, 2, 3, 4, 5]
        >>> [int(x) for x in Dataset.load(folder, reader_func=lambda shards: shards.flat_map(lambda shard: shard))]
        [0, 2, 4, 1, 3, 5]
        """
        from forebay.dataset import Dataset
        from forebay.sinks.save import compression_of, folder_of
        from forebay.sources.saved import saved
        from forebay.storage.folder import from_root

        if wait:
            raise PlanError("load(wait=True): not supported, call load() when the dataset is there")
        step_name("load", name)
        # The program may go to another folder before files are opened.
        folder = from_root("load", folder_of("load", path))
        source = saved(folder, element_spec, name, caller())
        have = source.manifest.compression
        if compression is not None and compression_of("load", compression) != have:
            raise PlanError(f"load(compression={compression!r}): it was saved with compression={have!r}")
        if reader_func is None:
            return Dataset(source)
        return _read_by(function("load", "reader_func", reader_func), source, "load()")

    def write_tfrecord(
        self,
        pattern: str | os.PathLike[str],
        shards: int = 1,
        compression_type: str | None = None,
        *,
        progress: bool | None = None,
    ) -> None:
        """Write all elements to TFRecord files, which ``TFRecordDataset`` and TensorFlow read.

        Elements are bytes or text, one record each, or dicts, which become tf.train.Examples as ``serialize_example``
        makes them. Element i goes to file i modulo `shards`, so that reading them with ``num_parallel_reads=shards``
        gives the elements in their order. The files get their names when all of them are complete: an error leaves
        nothing behind.

        Args:
            pattern: a path or a URL, with ``{shard}`` and ``{shards}`` in it for the number of the file and of all.
                Without them, ``-00003-of-00010`` is added if there are several.
            shards: how many files.
            compression_type: ``"GZIP"``, ``"ZLIB"``, or None or ``""`` for none.
            progress: show how far it has come; by default on a terminal only, and elsewhere in the log (logger
                "forebay", INFO).

        >>> import os, tempfile
        >>> import forebay as fb
        >>> folder = tempfile.mkdtemp()
        >>> fb.Dataset.range(5).map(lambda x: {"x": x}).write_tfrecord(folder + "/x", shards=2)
        >>> sorted(os.listdir(folder))
        ['x-00000-of-00002', 'x-00001-of-00002']
        """
        from forebay.ops.progress import Progress
        from forebay.sinks.tfrecord import shard_paths, write_records
        from forebay.storage.streams import compression_of as file_compression

        count = whole_number("write_tfrecord", "shards", shards, 1)
        paths = shard_paths("write_tfrecord", pattern, count)
        codec = file_compression("write_tfrecord", compression_type)
        if self.cardinality() == INFINITE:
            raise PlanError("write_tfrecord(): the dataset is infinite; take() a part of it")
        site = Site("write_tfrecord", None, caller())
        setup = self._setup()
        with in_force(setup.remote), Progress("write_tfrecord", progress) as shown:
            write_records(self._blocks(setup), site, paths, codec, lambda rows: shown.update(rows, "records"))

    def snapshot(
        self,
        path: str | os.PathLike[str],
        compression: str | None = "AUTO",
        reader_func: ReaderFunc | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> "Dataset[T_co]":
        """The same elements, from disk once they have been there.

        The first iteration that goes from the first element to the last writes them to a folder under `path`, as
        ``save`` does. Later ones, of this program or another, read them instead of running the steps before. The
        folder's name is a digest of these steps, of their data and files, and of their functions with all that they
        refer to: if anything of that changes, there is a new snapshot, and the old one is left where it is. Files are
        those that ``list_files`` or a file dataset names, not those that only a function opens: paths in
        ``from_tensor_slices`` are that too, also for ``interleave(fb.TextLineDataset)``. What does not count is the
        state of generators of random numbers, modules that are imported inside a function, what it finds by a text
        (``globals()["x"]``, ``eval``), the environment, and what a ``__getstate__`` leaves out: remove the folder if
        that has changed. All this is looked at when the dataset is first iterated over: one whose function changes
        afterwards, by a global for example, still reads what it has written; build it anew. Iterations that stop early
        leave nothing; the next one starts over.

        What is random in the steps before is frozen: all iterations see the numbers of the first, and its order. With
        a `shard_func` or a `reader_func` the first has the order of the steps before, and the others that in which the
        shards are read.

        A snapshot that is damaged is written again, and logged (logger "forebay"). One that cannot be opened counts as
        none; if rows of it turn out to be damaged later, all of it is computed and written before the iteration goes
        on, which is an error if that gives other rows than those that it has handed out. A folder with files in it
        that are not Forebay's is never replaced.

        Args:
            path: a folder for snapshots.
            compression: None, ``"zstd"`` or ``"lz4"``; ``"AUTO"`` is None, which reads fastest.
            reader_func: how to read shards, as for ``load``. Without one, shards take turns.
            shard_func: which shard an element goes to, as for ``save``.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> calls = []
        >>> ds = Dataset.range(3).map(lambda x: calls.append(x) or x * 10).snapshot(tempfile.mkdtemp())
        >>> [int(x) for x in ds], [int(x) for x in ds], len(calls)
        ([0, 10, 20], [0, 10, 20], 3)
        """
        from forebay.dataset import Dataset
        from forebay.ops.snapshot import Snapshot, SnapshotFolder, check_input
        from forebay.sinks.save import compression_of, folder_of, shards_by
        from forebay.storage.folder import from_root

        check_input(self.plan)
        automatic = isinstance(compression, str) and compression == "AUTO"
        codec = compression_of("snapshot", None if automatic else compression)
        folder = from_root("snapshot", folder_of("snapshot", path))
        site = Site("snapshot", name, caller())

        def load(folder: str) -> Node:
            rows = Dataset.load(folder)
            source = cast("Saved", rows.plan)
            return (rows if reader_func is None else _read_by(reader_func, source, str(site))).plan

        return self._then(
            Snapshot,
            name,
            place=SnapshotFolder(folder, self.plan, codec, shard_func),
            compression=codec,
            shard_func=shard_func,
            reader_func=reader_func,
            shard_of=shards_by(site, shard_func) if callable(shard_func) else None,
            load=load,
        )

    def _known_spec(self) -> Any:
        """What elements are like, as far as one of them tells; None if there is none, or it cannot be had."""
        try:
            return self.element_spec
        except ForebayError:
            # Running the dataset will say what is wrong, if something is.
            return None

    def _blocks(self, setup: Setup) -> Generator[Block, None, None]:
        """All rows of the next epoch, without making elements of them. Used with the setup's `remote` in force."""
        epoch, self._epochs = self._epochs, self._epochs + 1
        operator = build(optimise(with_seeds(self.plan, self._run_seeds()), setup.rules), setup)
        try:
            reader = Reader(operator)
            reader.seek(START, epoch)
            while True:
                setup.parallelism.crew.tuner.tick()
                block = reader.next()
                if block is None:
                    break
                yield block
            setup.parallelism.crew.finished = True
        finally:
            setup.remote.closing = True
            operator.close()


def plan_digest(plan: Node) -> str:
    """A plan in short: the same for the same steps, in any process."""
    return blake2b("\n".join(plan_lines(plan)).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _read_by(reader_func: ReaderFunc, source: "Saved", call: str) -> "Dataset[Any]":
    from forebay.dataset import Dataset
    from forebay.sources.saved import Saved, SavedShards

    shards = tuple(
        Dataset[Any](Saved(path=source.path, manifest=source.manifest.only(shard), where=source.where))
        for shard in source.manifest.shards
    )
    datasets = Dataset[Any](SavedShards(datasets=shards, id=source.manifest.id, label=source.label, where=source.where))
    result = reader_func(datasets)
    if not isinstance(result, RunnableDataset):
        raise PlanError(f"{call}: {function_name(reader_func)} must return a Dataset, got {result!r}")
    saved, found = static_spec(source), static_spec(result.plan)
    if _gives_shards(result.plan) or (None not in (saved, found) and not same_kind(saved, found)):
        what = "the shards themselves" if _gives_shards(result.plan) else f"{found!r}, where {saved!r} was saved"
        raise PlanError(
            f"{call}: {function_name(reader_func)} gets a dataset of datasets, one for each shard, and must return one "
            f"of the elements that are in these, but its elements are {what}: take them out "
            "with .interleave(lambda shard: shard), or with .flat_map for one shard behind another, and add other "
            "steps to what this returns"
        )
    return result


def _gives_shards(plan: Node) -> bool:
    """Whether elements are datasets of shards as they were, though perhaps not all, or in another order."""
    from forebay.sources.saved import SavedShards

    while plan.traits.same_elements and plan.inputs:
        plan = plan.inputs[0]
    return isinstance(plan, SavedShards)
