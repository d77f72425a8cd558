"""What there is to know about a file format, as data: adding one is a module in ``kinds`` and a line in ``known``."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forebay.errors import FileError, PlanError
from forebay.formats.head import Head

if TYPE_CHECKING:
    from forebay.block import Block, Column
    from forebay.dataset import Dataset


class UsageError(PlanError):
    """What was asked for does not exist, whatever the files hold."""


Elements = list[dict[str, str]]
# Paths that are named one by one in a line of Python.
_MOST_NAMED = 8


@dataclass(frozen=True)
class Files:
    """Files of one format and compression that belong together. `pattern` is what they were found by, if anything.

    For formats that are folders, `paths` are folders. `bytes` are those on disk.
    """

    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    head: Head
    pattern: str | None = None

    @property
    def compression(self) -> str | None:
        """As ``compression_type`` has it."""
        return self.head.compression

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(self.sizes)

    def source(self, patterns: bool) -> str:
        """The files as an argument in a line of Python, of a reader that takes `patterns` or one that does not."""
        if len(self.paths) == 1:
            return repr(self.paths[0])
        if self.pattern is not None:
            if patterns:
                return repr(self.pattern)
            ending = os.path.splitext(self.paths[0])[1]
            if ending and self.pattern.endswith(ending):
                return f"sorted(glob.glob({self.pattern!r}, recursive=True))"
            # Leaves out indexes, which such a pattern would match.
            return f"list(fb.Dataset.list_files({self.pattern!r}, shuffle=False))"
        if len(self.paths) <= _MOST_NAMED:
            return f"[{', '.join(map(repr, self.paths))}]"
        return "paths"

    def call(self, name: str, *arguments: str) -> str:
        """A line of Python: a call with the files as its first argument."""
        # What tf.data has as well takes paths, as there.
        source = self.source(patterns=name.startswith("fb.Dataset.from_"))
        return f"{name}({', '.join([source, *arguments])})"

    def compressed(self) -> tuple[str, ...]:
        """The argument that says so, where it is needed."""
        return () if self.compression is None else (f"compression_type={self.compression!r}",)


@dataclass(frozen=True)
class Reading:
    """How files are to be read: what to do about faults, and how many of one file to pass over.

    Of formats that say which rows are enough for a look, no more than the first `rows` are to be read. Who converts
    says whether missing values may be None (`nulls`), and is told in `zeros` which columns have 0 in their place.
    """

    on_error: str = "raise"
    max_errors: int = 100
    features: Any = None
    rows: int | None = None
    nulls: bool = False
    zeros: set[str] = field(default_factory=set, compare=False)

    @property
    def faults(self) -> dict[str, Any]:
        """As arguments of a reader."""
        return {"on_error": self.on_error, "max_errors": self.max_errors}


@dataclass(frozen=True)
class Facts:
    """What files tell without reading their rows: how many there are, if so, and whatever else is worth telling.

    `faults` are those that were met on the way.
    """

    rows: int | None = None
    details: dict[str, str] = field(default_factory=dict)
    faults: tuple[FileError, ...] = ()


@dataclass(frozen=True)
class ColumnReport:
    """A column, or a feature of an Example.

    `shape` has None for sizes that differ, and is None if not even the number of axes is the same. `present` is the
    share of rows that have a value, `values` the least and the most values in one row, where that differs by row.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None
    present: float = 1.0
    values: tuple[int, int] | None = None


class Watcher:
    """Looks at rows as they are surveyed, for formats whose columns do not say what is in them."""

    def add(self, block: "Block") -> None:
        """Rows in order."""

    def columns(self) -> list[ColumnReport] | None:
        """In place of those that rows have; None if they say enough."""
        return None

    def elements(self) -> Elements | None:
        """In place of the first rows as they are."""
        return None

    def details(self) -> dict[str, str]:
        """What else was seen."""
        return {}

    def code(self) -> str | None:
        """Lines of Python that take the rows apart."""
        return None


def no_facts(files: Files) -> Facts:
    """For formats that tell nothing."""
    return Facts()


@dataclass(frozen=True)
class Writing:
    """Where rows go, and how. `columns` are the names that were asked for."""

    path: str
    shards: int | None
    rows_per_file: int | None
    compression: str | None


@dataclass(frozen=True)
class Writer:
    """How a format is written.

    Args:
        write: all rows to where they belong.
        codecs: the compressions there are.
        flat: whether rows have to be dicts without dicts inside; otherwise any structure will do.
        rename: names of columns as the format wants them, given what the columns are.
        folder: whether the result is a folder, and one, not so many files.
        raw: whether rows that are only bytes are written as they are.
        deals: whether rows are dealt out to files in turn, for which their number need not be known.
        table: whether it tells text from bytes, and has a place for values that are missing.
    """

    write: "Callable[[Dataset[Any], Writing], None]"
    codecs: tuple[str, ...] = ()
    flat: bool = False
    rename: "Callable[[str, Column], str] | None" = None
    folder: bool = False
    raw: bool = True
    deals: bool = False
    table: bool = False


@dataclass(frozen=True, kw_only=True)
class Format:
    """One format.

    Args:
        name: short, as ``--to`` takes it.
        title: what people call it.
        endings: of names, without what they are compressed with.
        begins: whether a file is of this format, by its contents.
        open: the rows of files; None if Forebay has no reader for it.
        code: the line of Python that does the same.
        by_number: "yes", "index=True", or why rows cannot be read by number.
        facts: what files tell by themselves.
        watch: makes what looks at rows.
        look_rows: no more rows than this are looked at unless all are asked for; ``Reading.rows`` then tells `open`.
        folder: whether it is a folder that is of this format.
        advice: what to do about files that Forebay has no reader for.
        write: how to write it; None if Forebay does not.
        convert: the rows as other formats take them, if those that ``open`` gives are not it.
        text: whether it is made of text, so that what is read as bytes is text as well.
    """

    name: str
    title: str
    endings: tuple[str, ...] = ()
    begins: Callable[[Head], bool] = lambda head: False
    open: "Callable[[Files, Reading], Dataset[Any]] | None" = None
    code: Callable[[Files], str | None] = lambda files: None
    by_number: Callable[[Files], str] = lambda files: "no"
    facts: Callable[[Files], Facts] = no_facts
    watch: Callable[[], Watcher] = Watcher
    look_rows: int | None = None
    folder: bool = False
    advice: str = ""
    write: Writer | None = None
    convert: "Callable[[Files, Reading], Dataset[Any]] | None" = None
    text: bool = False

    def named(self, path: str) -> bool:
        """Whether a name, which is in lower case, says that this is the format."""
        return path.endswith(self.endings) if self.endings else False


def unless_compressed(how: str) -> Callable[[Files], str]:
    """How rows are read by number, if files are not compressed."""
    return lambda files: how if files.compression is None else "no, compressed files are read from the start on"
