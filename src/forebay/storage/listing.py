"""Files that match a pattern or lie below a folder, on a disk or behind any URL that fsspec knows."""

import glob
import os
from collections.abc import Callable
from typing import Any, TypeVar

from forebay.remote_run import check_allowed, current
from forebay.storage.connect import connect
from forebay.storage.effort import asked
from forebay.storage.input_file import is_url
from forebay.storage.requests import ThreadRequest
from forebay.storage.side_files import is_side_file

T = TypeVar("T")


def is_pattern(name: str) -> bool:
    """Whether it may stand for other names than itself."""
    # What is behind a question mark is a query there, and fsspec has it so.
    return glob.has_magic(name.replace("?", "") if name.startswith(("http://", "https://")) else name)


def is_there(name: str) -> bool:
    """Whether there is something of exactly this name. FileError if a server cannot be asked."""
    check_allowed(name)
    name = name.removeprefix("file://")
    if is_url(name):
        return bool(look_at(name, lambda system, own: system.exists(own))[1])
    return os.path.lexists(name)


def matching(pattern: str) -> list[str]:
    """The paths that match, in order. ``*`` and ``?`` stay within a folder, ``**`` does not; hidden files count.

    Files of Forebay's own beside others do not, unless the pattern names them. A name that is no pattern matches
    itself, if it is there. FileError if a server cannot be asked.
    """
    found = _found(pattern)
    return found if is_side_file(pattern) else [path for path in found if not is_side_file(path)]


def _found(pattern: str) -> list[str]:
    check_allowed(pattern)
    pattern = pattern.removeprefix("file://")
    if is_url(pattern):
        return [_chained(pattern, each) for each in look_at(pattern, _matches)[1]]
    if os.path.lexists(pattern) and not glob.has_magic(pattern):
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True, include_hidden=True))
    # A name with brackets in it that is there is meant as it is, unless it matches something else.
    return found if found or not os.path.lexists(pattern) else [pattern]


def _chained(pattern: str, found: str) -> str:
    """What was found in a file system that is reached through others, as it is reached."""
    links = pattern.split("::")
    place = next((i for i, link in enumerate(links) if "://" in link), 0)
    return "::".join([*links[:place], found, *links[place + 1 :]])


def found_below(url: str) -> tuple[str, list[str]]:
    """What its file system calls a folder, and all files below it."""
    return look_at(url, lambda system, name: system.find(name))


def look_at(url: str, look: Callable[[Any, str], T]) -> tuple[str, T]:
    """What its file system calls a URL, and what `look` finds there, under the options in force."""
    system, name = connect(url)
    # Listings are many requests, which only fsspec's own calls put together.
    return name, asked(url, current(), lambda: ThreadRequest(lambda: look(system, name)))


def _matches(system: Any, name: str) -> list[str]:
    found = system.glob(name) if glob.has_magic(name) else [name] if system.exists(name) else []
    # Without the protocol, a path would be taken for one of this machine's.
    return sorted(str(system.unstrip_protocol(each)) for each in found)
