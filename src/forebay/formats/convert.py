"""From one format to another: ``convert``."""

import glob
import os
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import forebay as fb
from forebay.block import TensorSpec
from forebay.errors import FileError, PlanError
from forebay.formats.faults import Fault, Faults, passed_over
from forebay.formats.features import parse_features
from forebay.formats.find import Group, find
from forebay.formats.format import Format, Reading, UsageError, Writer, Writing
from forebay.formats.head import plain_name
from forebay.formats.known import FORMATS, writable
from forebay.formats.passing import Form, Meter, NotText, Passing
from forebay.formats.telling import errors_told, passed_by
from forebay.plan import caller
from forebay.plan.site import unplaced
from forebay.storage.files import is_url, open_file
from forebay.storage.listing import matching
from forebay.storage.output import check_folder_of

Advance = Callable[[int], None]
Watch = Callable[[str, int | None], "AbstractContextManager[Advance]"]
"""Gives what is told how many rows are done of how many; called with what is being done."""


def _unwatched(what: str, total: int | None) -> "AbstractContextManager[Advance]":
    return nullcontext(lambda rows: None)


@dataclass(frozen=True)
class Converted:
    """What was written. `notes` tell what the target format does not keep."""

    source_format: str
    format: str
    files: list[str]
    rows: int
    bytes: int
    seconds: float
    skipped: int
    listed_faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def convert(
    source: "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]",
    target: "str | os.PathLike[str]",
    *,
    to: str | None = None,
    shards: int | None = None,
    compression: str | None = None,
    columns: Iterable[str] | None = None,
    features: "str | dict[str, Any] | None" = None,
    overwrite: bool = False,
    on_error: str = "raise",
    max_errors: int = 100,
    memory: "str | int | None" = None,
    watch: Watch = _unwatched,
) -> Converted:
    """Write the rows of files in another format. The result appears when it is complete, or not at all.

    Args:
        source: paths, patterns, folders, or URLs that fsspec knows, all of one format.
        target: a file, or a folder for a saved dataset. For several files, `{shard}` in it stands for their number;
            without it, one is put before the ending.
        to: the format, if the target's ending does not tell: "tfrecord", "parquet", "arrow", "webdataset", "saved".
        shards: how many files.
        compression: as the format has it; by default what its own writer does.
        columns: names of the columns to keep, in this order; ``a.b`` for what is inside others.
        features: of Examples in TFRecord files, as ``fb.io.parse_single_example`` takes them, or as a text:
            ``"image=bytes,box=float32[4],words=bytes[]"``. By default the first thousand records tell.
        overwrite: replace what is there.
        on_error: ``"skip"`` passes over what cannot be read, ``"raise"`` gives up. Errors name the file or the row
            that they are about.
        max_errors: how many faults of one file are passed over.
        memory: the budget for everything.
        watch: gives what is told how far it has come.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with open(folder + "/a.csv", "w") as file:
    ...     _ = file.write("x,y\\n1,0.5\\n2,1.5\\n")
    >>> convert(folder + "/a.csv", folder + "/a.parquet").rows
    2
    >>> list(Dataset.from_parquet(folder + "/a.parquet"))[1]
    {'x': np.int32(2), 'y': np.float32(1.5)}
    """
    given = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    path = os.fspath(target)
    format = _target_format(path, to)
    writer = format.write
    assert writer is not None
    codec = _codec(format, path, compression)
    if shards is not None and (shards < 1 or writer.folder):
        raise UsageError(f"{shards} shards: " + ("a saved dataset is one folder" if shards > 0 else "at least 1"))
    kept = None if columns is None else tuple(columns)
    group, strays = _source_group([os.fspath(each) for each in given])
    pattern = path if shards is None else _numbered(path)
    _check_target(group, path, pattern if shards is not None else None, writer, overwrite)
    wanted = parse_features(features) if isinstance(features, str) else features
    if wanted is not None and group.format.name != "tfrecord":
        raise UsageError(f"features are for TFRecord files; {group.files.paths[0]} is {group.format.title}")
    reading = Reading(on_error, max_errors, wanted, nulls=writer.table)
    source_rows = _Source(group, reading, memory)
    faults = Faults()
    notes: list[str] = []
    began = time.perf_counter()
    with unplaced(), errors_told(group, path), passed_over(faults):
        total, per_file = _division(source_rows, shards, writer, watch)

        def write(text: bool) -> Meter:
            rows = source_rows.open()
            # Counting, and a look at the first rows, meet the same ones.
            faults.clear()
            with watch("converting", total) as advance:
                meter = Meter(advance)
                form = Form(kept, writer.flat, writer.raw, writer.rename, text=text)
                passing = fb.Dataset[Any](Passing(inputs=(rows.plan,), form=form, meter=meter, where=caller()))
                writer.write(passing, Writing(pattern, shards, per_file, codec))
            return meter

        try:
            meter = write(text=group.format.text and writer.table)
        except NotText as found:
            # Nothing has been written of what was begun.
            notes.append(f"{found.column}: not UTF-8 everywhere, so that all text is written as bytes")
            meter = write(text=False)
    files = _written(pattern, shards, per_file, meter.rows, writer)
    return Converted(
        source_format=group.format.name,
        format=format.name,
        files=files,
        rows=meter.rows,
        bytes=sum(map(_size, files)),
        seconds=time.perf_counter() - began,
        skipped=faults.count,
        listed_faults=faults.listed,
        notes=[*notes, *_zeros(reading), *_notes(format, meter.specs), *passed_by(group, strays)],
    )


@dataclass(frozen=True)
class _Source:
    """What is read, and how. Opened anew for each pass: faults are counted from the start."""

    group: Group
    reading: Reading
    memory: "str | int | None"

    def open(self) -> "fb.Dataset[Any]":
        """All rows."""
        opened = self.group.format.convert or self.group.format.open
        assert opened is not None
        rows = opened(self.group.files, self.reading)
        return rows if self.memory is None else rows.with_options(fb.Options(memory=self.memory))

    def count(self) -> int | None:
        """How many there are, if that is known without reading them."""
        total = self.open().cardinality()
        if total < 0 and self.reading.on_error == "raise":
            return self.group.format.facts(self.group.files).rows
        return total if total >= 0 else None


def _target_format(path: str, to: str | None) -> Format:
    if to is not None:
        return writable(to)
    name = plain_name(path)
    found = next((each for each in FORMATS if each.named(name)), None)
    if found is not None:
        return writable(found.name)
    if os.path.splitext(path.rstrip("/"))[1] == "":
        return writable("saved")
    raise UsageError(f"{path}: its ending tells no format; name one (--to)")


def _codec(format: Format, path: str, compression: str | None) -> str | None:
    assert format.write is not None
    if compression is None:
        implied = {".gz": "GZIP", ".zlib": "ZLIB"}.get(os.path.splitext(path)[1].lower())
        if implied is not None and implied not in format.write.codecs:
            raise UsageError(f"{path}: {format.title} files are not written compressed with {implied}")
        return implied
    known = {name.lower(): name for name in format.write.codecs}
    if compression.lower() not in known:
        among = ", ".join(known) or "none"
        raise UsageError(f"compression {compression!r}: {format.title} has these: {among}")
    return known[compression.lower()]


def _source_group(paths: list[str]) -> tuple[Group, list[Group]]:
    """The one group of files that can be read, and those beside it that are passed over."""
    found = find(paths, apart=False)
    if found.faults.count:
        fault = found.faults.listed[0]
        raise FileError(fault.file, fault.reason, fault.offset, line=fault.line)
    groups = [group for group in found.groups if (group.format.convert or group.format.open) is not None]
    if not groups:
        first = found.groups[0] if found.groups else None
        if first is None:
            raise FileError(paths[0], "there are no files in it")
        raise FileError(first.files.paths[0], f"is {first.format.title}: {first.format.advice}")
    chosen = groups[0] if len(groups) == 1 else _mostly_images(groups)
    if chosen is None:
        listed = ", ".join(f"{group.format.title} ({group.files.paths[0]})" for group in groups)
        raise PlanError(f"there are files of several formats, convert them one by one: {listed}")
    return chosen, [group for group in found.groups if group is not chosen]


def _mostly_images(groups: list[Group]) -> Group | None:
    """A folder of images among these, if most files are images: what else lies there describes them, or strayed."""
    images = [group for group in groups if group.format.name == "images"]
    # By their contents: a Thumbs.db has but the name of a database.
    others = sum(len(group.files.paths) for group in groups if group.told_by == "content")
    return images[0] if len(images) == 1 and len(images[0].files.paths) > others else None


def _numbered(path: str) -> str:
    """A pattern for several files: their number comes before the ending."""
    if "{shard" in path:
        return path
    folder, name = os.path.split(path.replace("{", "{{").replace("}", "}}"))
    stem, dot, ending = name.partition(".")
    return os.path.join(folder, f"{stem}-{{shard:05d}}{dot}{ending}")


def _check_target(group: Group, path: str, pattern: str | None, writer: Writer, overwrite: bool) -> None:
    if is_url(path):
        if writer.folder:
            raise UsageError(f"{path}: a dataset is saved to a local folder")
    else:
        check_folder_of(path.rstrip("/") if writer.folder else path)
        if os.path.isdir(path) and not writer.folder:
            raise PlanError(f"{path} is a folder; give the name of a file in it")
    if pattern is None:
        there = [path] if (matching(glob.escape(path)) if not is_url(path) else matching(path)) else []
    else:
        there = matching(_any_number(pattern))
    same = {os.path.realpath(each) for each in there} & {os.path.realpath(each) for each in group.files.paths}
    if same:
        raise PlanError(f"{sorted(same)[0]} would be read and written at once; give another target")
    if there and not overwrite:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise PlanError(f"{there[0]}{more}: there already; --overwrite replaces what is there")


def _any_number(pattern: str) -> str:
    """A pattern for the files of any number."""
    marker = "\0"

    class AnyNumber(int):
        def __format__(self, spec: str) -> str:
            return marker

    filled = pattern.format(AnyNumber(), shard=AnyNumber(), shards=AnyNumber())
    return (filled if is_url(pattern) else glob.escape(filled)).replace(marker, "*")


def _division(source: _Source, shards: int | None, writer: Writer, watch: Watch) -> tuple[int | None, int | None]:
    """How many rows there are, if that is known, and how many go to each file, if that has to be."""
    total = source.count()
    if shards is None or writer.deals:
        return total, None
    if total is None:
        with watch("counting", None) as advance:
            meter = Meter(advance)
            form = Form(None, False, True)
            plan = source.open().plan
            counted = fb.Dataset[Any](Passing(inputs=(plan,), form=form, meter=meter, where=caller()))
            for _ in counted._blocks(counted._setup()):
                pass
        total = meter.rows
    return total, max(-(-total // shards), 1)


def _written(pattern: str, shards: int | None, per_file: int | None, rows: int, writer: Writer) -> list[str]:
    if shards is None:
        return [pattern]
    count = shards if per_file is None else max(-(-rows // per_file), 1)
    return [pattern.format(number, shard=number, shards=shards) for number in range(count)]


def _size(path: str) -> int:
    if not is_url(path) and os.path.isdir(path):
        with os.scandir(path) as entries:
            return sum(entry.stat().st_size for entry in entries)
    file = open_file(path)
    file.close()
    return file.size


def _zeros(reading: Reading) -> list[str]:
    return [f"{name}: empty fields are written as 0, the format has no other way" for name in sorted(reading.zeros)]


def _notes(format: Format, specs: dict[str, TensorSpec]) -> list[str]:
    """What is not kept of the columns."""
    if format.name != "tfrecord":
        return []
    notes = []
    for name, spec in specs.items():
        if spec.dtype.kind == "f" and spec.dtype.itemsize > 4:
            notes.append(f"{name}: {spec.dtype.name} is written as float32, which is all that an Example has")
        if spec.shape is not None and len(spec.shape) > 1:
            known = None not in spec.shape
            how = f"; fb.io.FixedLenFeature({spec.shape}, ...) gives it back" if known else ""
            notes.append(f"{name}: the shape {spec.shape} is written flat{how}")
    return notes
