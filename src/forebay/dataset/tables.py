"""Datasets of tables, tars and other people's datasets: the ``from_...`` that tf.data has no class for."""

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from forebay.dataset.stored import StoredDataset
from forebay.plan import caller
from forebay.plan.check import step_name

if TYPE_CHECKING:
    from forebay.dataset import Dataset

T_co = TypeVar("T_co", covariant=True)


class TableDataset(StoredDataset[T_co]):
    """A dataset that can be made of tables."""

    @staticmethod
    def from_parquet(
        filenames: Any,
        columns: list[str] | None = None,
        filters: Any = None,
        *,
        num_parallel_reads: int | None = None,
        on_error: str = "raise",
        max_errors: int = 100,
        index: bool = True,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """The rows of Parquet files, as dicts of columns.

        Structs are dicts, lists are arrays, null is None; text is str, timestamps are datetime64 (in UTC), and dictionaries
        are decoded. A file that ``to_parquet`` wrote gives back the elements that were written, if all columns are read.

        Row groups are decoded in pieces, so that none has to fit into the budget. Without filters, rows are read by
        number: ``len`` is known, ``skip`` and resuming decode no more than one row group, and ``shuffle()`` needs no
        buffer of rows. It does need every row group decoded, whose rows are then kept for the iterations to come: in
        memory up to a quarter of the budget, the rest decoded in a file without a name. For data much larger than
        memory, ``save`` it once and ``load`` that, or shuffle the names of files and then ``shuffle(buffer_size)``.

        Args:
            filenames: a path, a list of paths, or a dataset of paths. Paths may be URLs that fsspec knows.
            columns: names of the columns to read; all by default.
            filters: rows to keep: ``[("x", ">", 3), ("y", "in", ["a", "b"])]``, a list of such lists for alternatives,
                or an expression as ``pyarrow.compute.field("x") > 3``. Row groups that cannot hold such rows, by
                their statistics, are not read. Which rows there are is then not known before they have been read.
            num_parallel_reads: read so many files at once, and take one row from each in turn.
            on_error: ``"skip"`` passes over row groups that cannot be read and logs them (logger "forebay"); rows are
                then read in order. ``"raise"`` raises FileError.
            max_errors: so many faults of one file are passed over; the next one is raised.
            index: False reads files only in order, without looking at all of them first.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/a.parquet"
        >>> Dataset.range(4).map(lambda x: {"x": x, "name": f"row {x}"}).to_parquet(path)
        >>> next(iter(Dataset.from_parquet(path)))
        {'x': np.int64(0), 'name': 'row 0'}
        >>> list(Dataset.from_parquet(path, columns=["x"], filters=[("x", ">", 2)]))
        [{'x': np.int64(3)}]
        """
        from forebay.dataset import Dataset
        from forebay.dataset.files import files_plan
        from forebay.sources.tables import Tables

        step_name("from_parquet", name)
        read = partial(
            Tables,
            format="parquet",
            columns=columns,
            filters=filters,
            on_error=on_error,
            max_errors=max_errors,
            by_number=index,
        )
        return Dataset(files_plan("from_parquet", filenames, num_parallel_reads, name, read))
