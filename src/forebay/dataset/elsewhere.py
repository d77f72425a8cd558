"""Datasets of what other libraries make: tar archives, objects with items, their datasets, flat files of tokens."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from forebay.dataset.tables import TableDataset
from forebay.plan import caller
from forebay.plan.check import step_name
from forebay.remote_run import in_force

if TYPE_CHECKING:
    from forebay.dataset import Dataset

T_co = TypeVar("T_co", covariant=True)


class OtherDataset(TableDataset[T_co]):
    """A dataset that can be made of other libraries' data."""

    @staticmethod
    def from_webdataset(
        urls: Any,
        fields: list[str] | None = None,
        *,
        decode: dict[str, Callable[[bytes], Any]] | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        on_error: str = "raise",
        max_errors: int | None = 100,
        index: bool = False,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """The samples of WebDataset's tar archives: members that share a name up to its first dot.

        An element is a dict of ``"__key__"`` and, for each ending (``jpg``, ``cls``, ``seg.png``), the member's bytes.
        Members are read where they lie, nothing is extracted.

        Args:
            urls: a path, a pattern, a list of them, or a dataset of paths. Paths may be URLs that fsspec knows.
            fields: the endings to read, in this order; where a sample lacks one, it is None. By default those of
                the first sample, which all others must have too.
            decode: functions for some of the fields, that make something of their bytes (never called with None).
            compression_type: ``"GZIP"``, ``"ZLIB"``, or None; names that end in ``.gz`` or ``.tgz`` are GZIP.
            num_parallel_reads: read so many archives at once, and take one sample from each in turn.
            on_error: ``"skip"`` passes over samples that cannot be read, logs them (logger "forebay") and goes on with
                the next one that can be found. ``"raise"`` raises FileError.
            max_errors: so many faults of one archive are passed over; the next one is raised. None for any number.
            index: read samples by number, so that ``shuffle()`` needs no buffer. The archives' headers are read once
                for that, and the samples' places kept in ``<path>.fbindex``. Not for compressed archives, nor for
                those that take turns (`num_parallel_reads`) or that a dataset names.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/a.tar"
        >>> Dataset.range(3).map(lambda x: {"txt": f"sample {x}", "cls": x}).to_webdataset(path)
        >>> list(Dataset.from_webdataset(path, decode={"cls": int}))[1]
        {'__key__': '000000001', 'txt': b'sample 1', 'cls': np.int64(1)}
        """
        from forebay.dataset import Dataset
        from forebay.dataset.files import files_plan
        from forebay.ops.map import Map
        from forebay.sources.webdataset import Archives, Decode

        step_name("from_webdataset", name)
        read = partial(
            Archives,
            fields=fields,
            compression=compression_type,
            on_error=on_error,
            max_errors=max_errors,
            index_files=index,
        )
        plan = files_plan("from_webdataset", urls, num_parallel_reads, name, read, patterns=True)
        if decode:
            plan = Map(inputs=(plan,), map_func=Decode(decode), label=name, where=caller(), called="from_webdataset")
        return Dataset(plan)

    def to_webdataset(
        self,
        path: Any,
        *,
        shards: int | None = None,
        rows_per_file: int | None = None,
        progress: bool | None = None,
    ) -> None:
        """Write all elements to tar archives in WebDataset's form, which appear when all of them are complete.

        Elements have to be dicts, whose keys become the endings of the members' names. Bytes are written as they are,
        str in UTF-8, numbers as text, and arrays under a key that ends in ``npy`` as .npy files; None is left out. The
        name up to the dot is the element's ``"__key__"``, or its number if it has none.

        Args:
            path: the archive, or for several a pattern with a place for the number: ``"train-{shard:05d}.tar"``.
            shards: so many archives with about as many samples in each. The number of elements has to be known.
            rows_per_file: begin a new archive after so many samples.
            progress: show a progress bar; by default on a terminal only.

        >>> import tarfile, tempfile
        >>> path = tempfile.mkdtemp() + "/a.tar"
        >>> Dataset.from_tensor_slices({"txt": ["a", "b"], "__key__": ["x/1", "x/2"]}).to_webdataset(path)
        >>> with tarfile.open(path) as archive:
        ...     archive.getnames()
        ['x/1.txt', 'x/2.txt']
        """
        from forebay.sinks.files import file_names
        from forebay.sinks.save import write_blocks
        from forebay.sinks.webdataset import ArchiveWriter

        total = self._count("to_webdataset")
        pattern, rows = file_names("to_webdataset", path, shards, rows_per_file, total)
        setup = self._setup()
        with in_force(setup.remote):
            write_blocks(self._blocks(setup), ArchiveWriter(pattern, rows), total if total >= 0 else None, progress)

    @staticmethod
    def from_indexable(
        items: Any, *, num_parallel_calls: int | None = None, executor: str = "auto", name: str | None = None
    ) -> "Dataset[Any]":
        """The items of any object that has ``len(items)`` and ``items[i]``, read by number.

        ``shuffle()`` so reads items in shuffled order, and resuming costs nothing. An object with ``__getitems__``,
        which takes a list of numbers and returns a list of items, is asked for many at once, unless calls are to be
        made in parallel.

        Args:
            items: the object. ``items[i]`` should depend on nothing but `i`.
            num_parallel_calls: get so many items at once, as ``map`` calls its function.
            executor: what on, see ``map``.
            name: what to call this step in errors and plans.

        >>> class Squares:
        ...     def __len__(self):
        ...         return 5
        ...     def __getitem__(self, i):
        ...         return {"i": i, "square": i * i}
        >>> list(Dataset.from_indexable(Squares()).skip(3))
        [{'i': np.int64(3), 'square': np.int64(9)}, {'i': np.int64(4), 'square': np.int64(16)}]
        """
        return _items("from_indexable", items, None, num_parallel_calls, executor, name)

    @staticmethod
    def from_torch(
        dataset: Any, *, num_parallel_calls: int | None = None, executor: str = "auto", name: str | None = None
    ) -> "Dataset[Any]":
        """The items of a PyTorch map-style dataset, with arrays in place of tensors (in the same memory).

        Otherwise as ``from_indexable``. Parallel calls take the place of a DataLoader's workers; with
        ``executor="process"`` the dataset is sent to other processes, as it is with a DataLoader.

        Args:
            dataset: has ``__len__`` and ``__getitem__``.
            num_parallel_calls: get so many items at once, as ``map`` calls its function.
            executor: what on, see ``map``.
            name: what to call this step in errors and plans.

        >>> class Pairs:  # Any torch.utils.data.Dataset will do.
        ...     def __len__(self):
        ...         return 3
        ...     def __getitem__(self, i):
        ...         return i, float(i)
        >>> list(Dataset.from_torch(Pairs()).take(1))
        [(np.int64(0), np.float64(0.0))]
        """
        from forebay.sources.indexable import tensors_as_arrays

        return _items("from_torch", dataset, tensors_as_arrays, num_parallel_calls, executor, name)

    @staticmethod
    def from_huggingface(dataset: Any, columns: list[str] | None = None, *, name: str | None = None) -> "Dataset[Any]":
        """The rows of a dataset of Hugging Face's `datasets`, as dicts of columns.

        Of a ``Dataset``, the Arrow table behind it is used as it is, without a copy and without their formatting: rows
        are read by number, in the order that ``select``, ``shuffle`` and ``sort`` of theirs have given them. Elements
        are as those of ``from_parquet``; what their features would decode, such as images, comes as it is stored.

        An ``IterableDataset`` is iterated over, with a state of its own to resume from; one that shuffles through a
        buffer cannot tell its place, and is read again up to there.

        Args:
            dataset: theirs; of one with several splits, one of them.
            columns: names of the columns to read; all by default.
            name: what to call this step in errors and plans.

        >>> import datasets  # doctest: +SKIP
        >>> ds = Dataset.from_huggingface(datasets.Dataset.from_dict({"x": [1, 2, 3]}))  # doctest: +SKIP
        >>> len(ds.shuffle())  # doctest: +SKIP
        3
        """
        from forebay.dataset import Dataset
        from forebay.sources.huggingface import huggingface_source

        step_name("from_huggingface", name)
        return Dataset(huggingface_source(dataset, columns, name, caller()))

    @staticmethod
    def from_tokens(
        filenames: Any,
        dtype: Any,
        length: int,
        *,
        stride: int | None = None,
        offset: int = 0,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """Windows of `length` tokens of flat files of token ids, as language models are trained on.

        Windows are read by number from where they lie: ``shuffle()`` needs no buffer and resuming no time. Tokens at
        the end of a file that do not fill a window are left out.

        Args:
            filenames: a path, a pattern, or a list of them, of local files without any header.
            dtype: of the tokens, as ``np.uint16``.
            length: tokens in a window.
            stride: tokens from the beginning of one window to that of the next; `length` by default. With a stride of
                one less, the last token of a window, which it has to predict, is the first of the next.
            offset: bytes to pass over at the beginning of every file.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/a.bin"
        >>> np.arange(10, dtype=np.uint16).tofile(path)
        >>> list(Dataset.from_tokens(path, np.uint16, 4, stride=3))
        [array([0, 1, 2, 3], dtype=uint16), array([3, 4, 5, 6], dtype=uint16), array([6, 7, 8, 9], dtype=uint16)]
        """
        from forebay.dataset import Dataset
        from forebay.dataset.patterns import files_of
        from forebay.ops import Concatenate
        from forebay.sources.tokens import token_windows

        step_name("from_tokens", name)
        where = caller()
        first, *rest = token_windows(files_of("from_tokens", filenames), dtype, length, stride, offset, name, where)
        if rest:
            first = Concatenate(inputs=(first, *rest), label=name, where=where)
        return Dataset(first)


def _items(
    call: str,
    items: Any,
    convert: Callable[[Any], Any] | None,
    num_parallel_calls: int | None,
    executor: str,
    name: str | None,
) -> "Dataset[Any]":
    from forebay.dataset import Dataset
    from forebay.ops.map import Map
    from forebay.sources import Range
    from forebay.sources.indexable import Item, ManyItems, length_of

    step_name(call, name)
    where = caller()
    count = length_of(call, items)
    if hasattr(items, "__getitems__") and num_parallel_calls is None:
        return Dataset(ManyItems(items=items, convert=convert, call=call, label=name, where=where))
    numbers = Range(start=0, stop=count, step=1, output_type=np.dtype(np.int64), label=name, where=where)
    return Dataset(
        Map(
            inputs=(numbers,),
            map_func=Item(items, convert),
            num_parallel_calls=num_parallel_calls,
            executor=executor,
            label=name or call,
            where=where,
        )
    )
