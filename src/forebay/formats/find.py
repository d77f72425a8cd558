"""Files and folders as users name them, put together by format."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from forebay.errors import FileError, ForebayError
from forebay.formats.faults import Faults
from forebay.formats.format import Files, Format
from forebay.formats.head import Head, plain_name, read_head
from forebay.formats.kinds.images import IMAGES, is_image
from forebay.formats.known import folder_format, format_of
from forebay.storage.files import file_error, is_url
from forebay.storage.listing import look_at, matching
from forebay.storage.side_files import is_side_file

# Beyond so many files of a folder, one is taken for what others with its ending are.
_LOOKED_INTO = 1000
# What the names of shards differ in.
_NUMBERS = re.compile(r"[0-9a-f]{8,}|[0-9]+")
_MOST_FAMILIES = 20


@dataclass(frozen=True)
class Group:
    """Files of one format that belong together, and what their format was told by."""

    format: Format
    files: Files
    told_by: str


@dataclass(frozen=True)
class Part:
    """What a folder holds of one format."""

    format: str
    title: str
    compression: str | None
    files: int
    bytes: int


@dataclass(frozen=True)
class FolderReport:
    """A folder that holds files."""

    path: str
    files: int
    bytes: int
    parts: tuple[Part, ...]


@dataclass
class Found:
    """Everything that some paths stand for. What cannot be read is a fault, and does not keep the rest from view."""

    groups: list[Group] = field(default_factory=list)
    folders: list[FolderReport] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)


def find(arguments: Iterable[str], apart: bool = True) -> Found:
    """Paths, patterns, folders and URLs. Files whose names differ in more than numbers are kept `apart`, or not."""
    found = Found()
    loose: list[tuple[str, int | None]] = []
    patterns: list[str] = []
    for argument in arguments:
        try:
            # A file that is there is meant, whatever its name would stand for.
            named = not is_url(argument) and os.path.lexists(argument)
            paths = [argument] if named else matching(argument)
            if not paths:
                raise FileError(argument, "there is no such file")
            if not named and glob.has_magic(argument):
                patterns.append(argument)
            for path in paths:
                if _is_folder(path):
                    _folder(path, apart, found)
                else:
                    loose.append((path, None))
        except ForebayError as error:
            found.faults.add(error, argument)
    found.groups += _grouped(loose, patterns, apart, found.faults)
    return found


def _is_folder(path: str) -> bool:
    return bool(look_at(path, lambda system, name: system.isdir(name))[1]) if is_url(path) else os.path.isdir(path)


def _sizes(system: Any, name: str) -> list[tuple[str, int]]:
    found = system.find(name, detail=True)
    return [(str(system.unstrip_protocol(each)), int(info.get("size") or 0)) for each, info in found.items()]


def _folder(path: str, apart: bool, found: Found) -> None:
    """The folder itself if it is of some format, or the files in it."""
    files: list[tuple[str, int]] = []
    groups: list[Group] = []
    for entry, size, format in _walk(path):
        if format is None:
            files.append((entry, size))
        else:
            groups.append(Group(format, Files((entry,), (size,), Head(entry, size, b"")), "content"))
    itself = [group.files.paths for group in groups] == [(path,)]
    pictures = sorted((entry, size) for entry, size in files if is_image(entry))
    if pictures:
        paths, sizes = zip(*pictures)
        groups.append(Group(IMAGES, Files(paths, sizes, Head(_image_root(path, paths), sum(sizes), b"")), "name"))
    below = [os.path.join(glob.escape(path), "*"), os.path.join(glob.escape(path), "**/*")]
    groups += _grouped(sorted(set(files) - set(pictures)), below, apart, found.faults)
    found.groups += groups
    if not itself:
        found.folders.append(_summary(path, groups))


def _summary(path: str, groups: list[Group]) -> FolderReport:
    parts: dict[tuple[str, str | None], Part] = {}
    for group in groups:
        key = group.format.name, group.files.compression
        part = parts.get(key) or Part(group.format.name, group.format.title, group.files.compression, 0, 0)
        parts[key] = replace(part, files=part.files + len(group.files.paths), bytes=part.bytes + group.files.bytes)
    ranked = tuple(sorted(parts.values(), key=lambda part: -part.bytes))
    return FolderReport(path, sum(part.files for part in ranked), sum(part.bytes for part in ranked), ranked)


def _image_root(folder: str, paths: tuple[str, ...]) -> str:
    """The folder whose folders are the classes, if they are: the lowest that holds several, or the only one."""
    if is_url(folder):
        return folder
    common = os.path.commonpath([os.path.dirname(path) for path in paths])
    if len(common) <= len(folder.rstrip("/")):
        return folder
    return os.path.dirname(common) if any(os.path.dirname(path) == common for path in paths) else common


def _walk(path: str) -> Iterator[tuple[str, int, Format | None]]:
    """Files with their sizes, and folders that are of a format by themselves. Hidden names are passed over."""
    if is_url(path):
        for url, size in look_at(path, _sizes)[1]:
            if not _hidden(url):
                yield url, size, None
        return
    seen: set[str] = set()
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        real = os.path.realpath(folder)
        if real in seen:
            # A link to a folder above it.
            continue
        seen.add(real)
        try:
            format = folder_format(folder)
            with os.scandir(folder) as entries:
                inside = [entry for entry in entries if format is not None or not _hidden(entry.name)]
                if format is not None:
                    yield folder, sum(entry.stat().st_size for entry in inside if entry.is_file()), format
                    continue
                waiting += sorted((entry.path for entry in inside if entry.is_dir()), reverse=True)
                for entry in inside:
                    if entry.is_file():
                        yield entry.path, entry.stat().st_size, None
        except OSError as error:
            raise file_error(error.filename or folder, error) from error


def _hidden(path: str) -> bool:
    return os.path.basename(path).startswith((".", "_")) or is_side_file(path)


def _grouped(
    files: "Iterable[tuple[str, int | None]]", patterns: list[str], apart: bool, faults: Faults
) -> list[Group]:
    """Files by what is in them, in the order of the first of each kind. `patterns` are tried to name them by."""
    together: dict[_Kind, list[Head]] = {}
    told: dict[_Kind, tuple[Format, str]] = {}
    endings: dict[str, _Kind] = {}
    begun: set[tuple[_Kind, str]] = set()
    for number, (path, size) in enumerate(files):
        ending = os.path.splitext(path)[1].lower()
        if number >= _LOOKED_INTO and ending in endings and size is not None:
            together[endings[ending]].append(Head(path, size, b"", endings[ending][1]))
            continue
        try:
            head = read_head(path)
        except FileError as error:
            faults.add(error)
            continue
        format, told_by = format_of(head)
        kind = format.name, head.compression
        endings.setdefault(ending, kind)
        told.setdefault(kind, (format, told_by))
        if (kind, _family(path)) in begun:
            # Only the first of those that belong together is looked at again, and there may be a thousand others.
            head = replace(head, data=b"")
        begun.add((kind, _family(path)))
        together.setdefault(kind, []).append(head)
    return [
        Group(told[kind][0], _files(family, patterns), told[kind][1])
        for kind, heads in together.items()
        for family in (_families(heads) if apart else [heads])
    ]


_Kind = tuple[str, str | None]


def _family(path: str) -> str:
    """The same for names that differ in numbers only."""
    return _NUMBERS.sub("#", path)


def _families(heads: list[Head]) -> list[list[Head]]:
    """Files whose names differ in numbers only; all of them if these would be too many to tell apart."""
    found: dict[str, list[Head]] = {}
    for head in heads:
        found.setdefault(_family(head.path), []).append(head)
    return list(found.values()) if len(found) <= _MOST_FAMILIES else [heads]


def _files(heads: list[Head], patterns: list[str]) -> Files:
    paths, sizes = tuple(head.path for head in heads), tuple(head.size for head in heads)
    return Files(paths, sizes, heads[0], _pattern(paths, patterns) if len(paths) > 1 else None)


def _pattern(paths: tuple[str, ...], patterns: list[str]) -> str | None:
    """A pattern that matches these files and no others, whatever indexes are put beside them."""
    if is_url(paths[0]):
        return None
    ending = os.path.splitext(plain_name(paths[0]))[1] + paths[0][len(plain_name(paths[0])) :]
    # One with an ending says more, and any program that takes patterns can be given it.
    tried = [*_widened(paths), *(pattern + ending for pattern in patterns if ending), *patterns]
    return next((each for each in tried if matching(each) == sorted(paths)), None)


def _widened(paths: tuple[str, ...]) -> list[str]:
    """Their name with a star for every number that differs, folders' too; none if they differ in more than numbers."""
    if len(set(map(_family, paths))) > 1:
        return []
    numbers = zip(*(_NUMBERS.findall(path) for path in paths))
    stars = ["*" if len(set(each)) > 1 else each[0] for each in numbers]
    texts = [glob.escape(text) for text in _NUMBERS.split(paths[0])]
    return ["".join(text + star for text, star in zip(texts, [*stars, ""]))]
