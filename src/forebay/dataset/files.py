"""Datasets of files: one class for each format that tf.data has one for."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

from forebay.dataset import Dataset
from forebay.dataset.face import presented_class
from forebay.errors import PlanError
from forebay.ops import FlatMap, Interleave
from forebay.plan import Node, caller
from forebay.plan.check import whole_number
from forebay.run.faults import MAX_ERRORS
from forebay.run.parallelism import AUTOTUNE
from forebay.sources.files import FileNames, FilesNode, paths_of
from forebay.sources.lines import TextLines
from forebay.sources.tfrecord import TFRecords

U = TypeVar("U")

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Dataset[Any]

Reader = Callable[..., FilesNode]
"""Makes the source of a format; called with ``files``, ``label`` and ``where``."""


def files_plan(
    call: str,
    filenames: Any,
    num_parallel_reads: int | None,
    label: str | None,
    read: Reader,
    patterns: bool = False,
) -> Node:
    """The plan that reads files one after another, or, with `num_parallel_reads`, several of them in turns.

    Filenames may be a path, a list of paths, or a dataset of paths; with `patterns`, any of the first two may be a
    pattern. Turns are of one row, as in tf.data.
    """
    where = caller()
    if num_parallel_reads is not None:
        num_parallel_reads = whole_number(call, "num_parallel_reads", num_parallel_reads, 1, also=(AUTOTUNE,))
    paths: tuple[str, ...] = ()
    # A count that is found out ahead decides about the order of a shuffle and about skipping, so it has to stay right
    # until the last file is opened: that is checked of a list of files, and not of files that are opened one by one.
    lacks = [] if num_parallel_reads is None else ["without num_parallel_reads"]
    if isinstance(filenames, Dataset):
        names = filenames.plan
        lacks.append("with a list of paths")
    else:
        paths = _files_of(call, filenames) if patterns else paths_of(call, filenames)
        if num_parallel_reads is None or not paths:
            return read(files=paths, label=label, where=where)
        names = FileNames.of(paths, where)
    # A first look at the arguments, while the line that they stand on can still be named.
    hint = read(files=paths, label=label, where=where).count_hint(*lacks)
    one = partial(_OneFile, call, read, label, where)
    if num_parallel_reads is None:
        return FlatMap(inputs=(names,), map_func=one, hint=hint, label=label, where=where)
    cycle = None if num_parallel_reads == AUTOTUNE else num_parallel_reads
    return Interleave(
        inputs=(names,),
        map_func=one,
        cycle_length=cycle,
        block_length=1,
        num_parallel_calls=num_parallel_reads,
        hint=hint,
        label=label,
        where=where,
    )


def _files_of(call: str, filenames: Any) -> tuple[str, ...]:
    from forebay.dataset.patterns import files_of

    return files_of(call, filenames)


class _OneFile:
    """The dataset of one file, as ``flat_map`` and ``interleave`` take it from a function."""

    def __init__(self, call: str, read: Reader, label: str | None, where: str, name: Any) -> None:
        if not isinstance(name, (str, bytes)):
            raise PlanError(f"{call}(): filenames must be text, the dataset of filenames gave {name!r}")
        self.plan = read(files=paths_of(call, name), label=label, where=where)


class FileDataset(Dataset[U]):
    """A dataset that is made of file names. What is made of it in turn is a ``Dataset`` like any other."""

    def _made(self, plan: Node) -> Dataset[Any]:
        return Dataset(plan)


class IndexableFiles(FileDataset[bytes]):
    """Files whose records can be read in order or, with an index, by number. `_reads` is the format."""

    _reads: ClassVar[type[TFRecords] | type[TextLines]]

    def __init__(
        self,
        filenames: Paths,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
        index: bool = False,
    ) -> None:
        read = partial(
            self._reads,
            compression=compression_type,
            buffer_size=buffer_size,
            on_error=on_error,
            max_errors=max_errors,
            index_files=index,
        )
        super().__init__(files_plan(self._reads.kind, filenames, num_parallel_reads, name, read))


@presented_class
class TFRecordDataset(IndexableFiles):
    """The records of TFRecord files, as bytes.

    Checksums of lengths and records are verified. In uncompressed files a position is an offset: resuming takes no
    longer at the end than at the start.

    Args:
        filenames: a path, a list of paths, or a dataset of paths. Paths may be URLs that fsspec knows.
        compression_type: ``"GZIP"``, ``"ZLIB"``, or None or ``""`` for none.
        buffer_size: bytes to read at once, about 1 MiB by default.
        num_parallel_reads: read so many files at once, and take one record from each in turn. With AUTOTUNE, files
            take turns as in ``interleave``. Without it, files are read one after another.
        name: what to call this step in errors and plans.
        on_error: ``"skip"`` passes over what is damaged, logs it (logger "forebay") and goes on with the next record
            that can be found: after a wrong checksum that of the next, after a damaged length one that is searched
            for. Of a file that ends too early, the records before that come out. ``"raise"`` raises FileError.
        max_errors: so many faults of one file are passed over; the next one is raised. None for any number.
        index: read records by number, so that ``shuffle()`` needs no buffer, and ``skip``, ``shard`` and ``len`` cost
            nothing. The offsets of all records are collected when they are first needed, which reads no more of the
            files than that takes, and kept in a file ``<path>.fbindex``, as long as that may be written. An index is
            made again when its file has changed. Not for compressed files; files that take turns
            (`num_parallel_reads`), or that a dataset names, are neither counted nor read by number.

    >>> import tempfile
    >>> import forebay as fb
    >>> path = tempfile.mkdtemp() + "/a.tfrecord"
    >>> with fb.io.TFRecordWriter(path) as writer:
    ...     for i in range(5):
    ...         writer.write(b"record %d" % i)
    >>> list(fb.TFRecordDataset(path).take(2))
    [b'record 0', b'record 1']
    >>> len(fb.TFRecordDataset(path, index=True))
    5
    """

    _reads = TFRecords
