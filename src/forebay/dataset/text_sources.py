"""Datasets of files that are named by a pattern: ``list_files``, ``from_csv``, ``from_json``, ``from_npy``."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from forebay.errors import PlanError
from forebay.plan import Node, caller
from forebay.plan.check import flag, step_name, whole_number
from forebay.run.faults import MAX_ERRORS, Tolerance

if TYPE_CHECKING:
    from forebay.dataset import Dataset

Pattern = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class TextSources:
    """What ``Dataset`` offers for files. Formats are loaded when they are first used."""

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
    ) -> "Dataset[str]":
        """The paths of all files that match a pattern, or one of several.

        The files are looked for once, when the dataset is made. ``*`` and ``?`` stand for what is within one folder,
        ``**`` for any folders; hidden files count, but not those that Forebay itself puts beside others (``.fbindex``,
        and what is being written). Where two patterns match one file, it comes twice.

        Args:
            file_pattern: a pattern, a list of patterns, or a dataset of them. Patterns may be URLs that fsspec knows.
            shuffle: in random order, another one in every iteration; this is the default, as in tf.data. With False,
                paths come in alphabetical order.
            seed: fixes the order of every epoch for ever.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> import forebay as fb
        >>> folder = tempfile.mkdtemp()
        >>> for letter in "cab":
        ...     with open(f"{folder}/{letter}.txt", "w") as file:
        ...         _ = file.write(f"text {letter}")
        >>> list(fb.TextLineDataset(fb.Dataset.list_files(f"{folder}/*.txt", shuffle=False)))
        [b'text a', b'text b', b'text c']
        """
        from forebay.dataset import Dataset
        from forebay.dataset.patterns import no_files
        from forebay.sources.files import FileNames, paths_of
        from forebay.storage.listing import matching

        step_name("list_files", name)
        shuffled = shuffle is None or flag("list_files", "shuffle", shuffle)
        patterns = paths_of("list_files", list(file_pattern) if isinstance(file_pattern, Dataset) else file_pattern)
        if not patterns:
            raise PlanError(f"list_files({file_pattern!r}): there is no file; give at least one")
        paths = [path for pattern in patterns for path in matching(pattern)]
        if not paths:
            raise no_files("list_files", patterns)
        dataset = Dataset[str](FileNames.of(tuple(sorted(paths)), caller(), name))
        return dataset.shuffle(seed=seed) if shuffled else dataset

    @staticmethod
    def from_csv(
        file_pattern: Pattern,
        column_names: Sequence[str] | None = None,
        column_defaults: Sequence[Any] | Mapping[str, Any] | None = None,
        label_name: str | None = None,
        select_columns: Sequence[str | int] | None = None,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        header: bool = True,
        compression_type: str | None = None,
        *,
        num_rows_for_inference: int = 100,
        num_parallel_reads: int | None = None,
        buffer_size: int | None = None,
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
        name: str | None = None,
    ) -> "Dataset[Any]":
        r"""The records of CSV files, as dicts; with a label, as pairs of a dict and the label.

        This is tf.data's ``make_csv_dataset`` without what it adds unasked: nothing is shuffled, repeated, batched or
        prefetched. How records are read, and what is an error, is said at ``CsvDataset``.

        Args:
            file_pattern: a path, a pattern, or a list of them.
            column_names: by default the header of the first file. All files must have the same header.
            column_defaults: dtypes or defaults, for all columns that are selected or, in a dict, for some. A dtype
                alone makes a column required.
            label_name: the column that is the label.
            select_columns: names or numbers of the columns that are wanted.
            field_delim: what separates fields.
            use_quote_delim: whether quotes mean anything.
            na_value: a field that equals this counts as empty.
            header: whether the first record of each file is a header.
            compression_type: ``"GZIP"``, ``"ZLIB"``, or None or ``""`` for none.
            num_rows_for_inference: the types of other columns are found out from so many records of the first file:
                int32, int64, float32, float64 or bytes, whichever is the first that holds them all. Empty fields are
                then 0, or no bytes. Records that ``on_error="skip"`` passes over do not count.
            num_parallel_reads: read so many files at once, and take one record from each in turn.
            buffer_size: bytes to read at once, about 1 MiB by default.
            on_error: ``"skip"`` passes over records that cannot be read and logs them (logger "forebay").
            max_errors: so many faults of one file are passed over; the next one is raised. None for any number.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> import numpy as np
        >>> path = tempfile.mkdtemp() + "/a.csv"
        >>> with open(path, "w") as file:
        ...     _ = file.write("id,size,name\n1,0.5,a\n2,1.5,b\n")
        >>> list(Dataset.from_csv(path, label_name="id").take(1))
        [({'size': np.float32(0.5), 'name': b'a'}, np.int32(1))]
        >>> list(Dataset.from_csv(path, select_columns=["size"], column_defaults=[np.float64]))
        [{'size': np.float64(0.5)}, {'size': np.float64(1.5)}]
        """
        from forebay.dataset import Dataset
        from forebay.dataset.files import files_plan
        from forebay.dataset.patterns import files_of
        from forebay.sources.csv import CsvTable, check_delimiter
        from forebay.sources.csv_schema import table_fields
        from forebay.sources.streamed import Look
        from forebay.storage.streams import compression_of

        check_delimiter("from_csv", field_delim)
        files = files_of("from_csv", file_pattern, at_once=True)
        codec = compression_of("from_csv", compression_type)
        dialect: dict[str, Any] = {
            "header": flag("from_csv", "header", header),
            "field_delim": field_delim,
            "use_quote_delim": flag("from_csv", "use_quote_delim", use_quote_delim),
            "na_value": os.fsencode(na_value),
        }
        most = None if max_errors is None else whole_number("from_csv", "max_errors", max_errors, 0)
        fields = table_fields(
            "from_csv",
            Look(files[0], codec),
            column_names,
            column_defaults,
            select_columns,
            label_name,
            num_rows_for_inference,
            dialect,
            Tolerance(on_error == "skip", most),
        )
        read = partial(
            CsvTable,
            **fields,
            **dialect,
            compression=codec,
            buffer_size=buffer_size,
            on_error=on_error,
            max_errors=max_errors,
        )
        return Dataset(files_plan("from_csv", files, num_parallel_reads, name, read))

    @staticmethod
    def from_json(
        paths: Any,
        spec: Any = None,
        *,
        defaults: Mapping[str, Any] | None = None,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_rows_for_inference: int = 100,
        num_parallel_reads: int | None = None,
        on_error: str = "raise",
        max_errors: int | None = MAX_ERRORS,
        name: str | None = None,
    ) -> "Dataset[Any]":
        r"""The objects of JSON lines files (one object per line), as dicts.

        Objects within objects are dicts too, lists of numbers or strings are arrays; whole numbers are int64, others
        float64, strings str. A leaf that is missing or null is None, unless there is a default for it; keys that are
        not in the spec are passed over, and so are empty lines. orjson is used where it is installed.

        Args:
            paths: a path, a pattern, or a list of them; with a `spec`, a dataset of paths too.
            spec: dicts with a ``TensorSpec`` or a dtype for each leaf. Without it, the first objects of the first
                file tell which leaves there are, and of what types. ``object`` takes any value as it is.
            defaults: what stands for leaves that are missing or null, by name, as in ``{"user.age": 0}``.
            compression_type: ``"GZIP"``, ``"ZLIB"``, or None or ``""`` for none.
            buffer_size: bytes to read at once, about 1 MiB by default.
            num_rows_for_inference: how many objects to look at for the spec.
            num_parallel_reads: read so many files at once, and take one object from each in turn.
            on_error: ``"skip"`` passes over lines that are no objects or do not fit the spec, and logs them (logger
                "forebay"). ``"raise"`` raises FileError, which names file, offset and reason.
            max_errors: so many faults of one file are passed over; the next one is raised. None for any number.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> import numpy as np
        >>> path = tempfile.mkdtemp() + "/a.jsonl"
        >>> with open(path, "w") as file:
        ...     _ = file.write('{"x": 1, "y": {"tags": ["a"]}}\n{"x": 2, "y": {"tags": []}}\n')
        >>> list(Dataset.from_json(path))
        [{'x': np.int64(1), 'y': {'tags': array(['a'], dtype=object)}},
         {'x': np.int64(2), 'y': {'tags': array([], dtype=object)}}]
        >>> list(Dataset.from_json(path, {"x": np.float32, "z": str}, defaults={"z": "?"}).take(1))
        [{'x': np.float32(1.0), 'z': '?'}]
        """
        from forebay.dataset import Dataset
        from forebay.dataset.files import files_plan
        from forebay.dataset.patterns import files_of
        from forebay.sources.json_columns import declared, inferred
        from forebay.sources.json_lines import JsonLines, first_objects
        from forebay.sources.streamed import Look
        from forebay.storage.streams import compression_of

        codec = compression_of("from_json", compression_type)
        if isinstance(paths, Dataset):
            if spec is None:
                raise PlanError("from_json(): a dataset of paths needs a spec, since there is no first file to look at")
            files: Any = paths
        else:
            files = files_of("from_json", paths, at_once=True)
        if spec is not None:
            structure, leaves = declared("from_json", spec, defaults)
        else:
            rows = whole_number("from_json", "num_rows_for_inference", num_rows_for_inference, 1)
            objects = first_objects(Look(files[0], codec), rows, on_error == "skip")
            if not any(objects):
                raise PlanError(f"from_json(): {files[0]} has no objects to tell what is in them; give a spec")
            structure, leaves = inferred("from_json", objects, defaults)
        read = partial(
            JsonLines,
            structure=structure,
            leaves=leaves,
            compression=codec,
            buffer_size=buffer_size,
            on_error=on_error,
            max_errors=max_errors,
        )
        return Dataset(files_plan("from_json", files, num_parallel_reads, name, read))

    @staticmethod
    def from_npy(path: Any, name: str | None = None) -> "Dataset[Any]":
        """The rows of arrays in ``.npy`` files, or in an ``.npz`` archive.

        Rows are read by number, straight from the file: little of it is ever in memory, ``shuffle()`` needs no buffer,
        and ``skip`` and resuming cost nothing. A compressed archive is read in order, a piece at a time, and to resume,
        what comes before that place is unfolded again. Arrays of Python objects, which are pickled, are refused.

        The checksum of an array in an archive is compared when its last rows are read, if all were read in order. One
        of up to 64 MiB is also compared before it is read in any other way, as ``shuffle()`` does; a larger one that is
        not compressed is then not compared. ``forebay inspect --check`` always does.

        Args:
            path: a path or URL; a pattern or a list of them, for files whose rows follow one another; or a dict of
                these, whose rows are dicts. An archive gives dicts of its arrays.
            name: what to call this step in errors and plans.

        >>> import tempfile
        >>> import numpy as np
        >>> folder = tempfile.mkdtemp()
        >>> np.save(f"{folder}/x.npy", np.arange(6).reshape(3, 2))
        >>> list(Dataset.from_npy(f"{folder}/x.npy"))
        [array([0, 1]), array([2, 3]), array([4, 5])]
        >>> np.savez(f"{folder}/xy.npz", x=np.arange(6).reshape(3, 2), y=[1.0, 2.0, 3.0])
        >>> next(iter(Dataset.from_npy(f"{folder}/xy.npz")))
        {'x': array([0, 1]), 'y': np.float64(1.0)}
        """
        from forebay.dataset import Dataset

        step_name("from_npy", name)
        if isinstance(path, Mapping):
            if not path:
                raise PlanError("from_npy({}): there is no array")
            return Dataset.zip({key: _arrays(each, name) for key, each in path.items()})
        return _arrays(path, name)


def _arrays(path: Any, name: str | None) -> "Dataset[Any]":
    from forebay.dataset import Dataset
    from forebay.dataset.patterns import files_of
    from forebay.sources.npy import NpyRows, array_members

    files = files_of("from_npy", path)
    if not files:
        raise PlanError("from_npy([]): there is no file")

    def rows(member: str | None) -> Node:
        node = NpyRows(files=files, member=member, label=name, where=caller())
        # A file that cannot be read is an error of this line.
        node.cardinality()
        return node

    if not all(file.endswith(".npz") for file in files):
        return Dataset(rows(None))
    members = array_members(files[0])
    if not members:
        raise PlanError(f"from_npy({files[0]!r}): there is no array in it")
    datasets = {member: Dataset[Any](rows(member)) for member in members}
    lengths = {member: len(dataset) for member, dataset in datasets.items()}
    if len(set(lengths.values())) > 1:
        raise PlanError(f"from_npy({files[0]!r}): its arrays have different numbers of rows: {lengths}")
    return Dataset.zip(datasets)
