"""Files as ``from_...`` readers take them: by name, or by a pattern that others match as well."""

from collections.abc import Iterable
from typing import Any

from forebay.errors import FileError, PlanError
from forebay.plan import caller
from forebay.sources.files import paths_of
from forebay.storage.listing import is_pattern, is_there, matching


def files_of(call: str, filenames: Any, at_once: bool = False) -> tuple[str, ...]:
    """The paths of files that are named one by one, or by patterns, whose files come in order.

    A file that is there is meant, whatever its name would stand for. One that is not is left for the reader to miss,
    which may be told to pass over it, unless files are looked into `at_once`. FileError if no pattern matches anything.
    """
    names = paths_of(call, filenames)
    if at_once and not names:
        raise PlanError(f"{call}({filenames!r}): there is no file; give at least one")
    found = [_files(name, at_once) for name in names]
    absent = [name for name, paths in zip(names, found) if not paths and not is_pattern(name)]
    if absent or (names and not any(found)):
        raise no_files(call, absent or names)
    return tuple(path for paths in found for path in paths)


def _files(name: str, at_once: bool) -> list[str]:
    if not is_pattern(name):
        return matching(name) if at_once else [name]
    return [name] if is_there(name) else matching(name)


def no_files(call: str, names: Iterable[str]) -> FileError:
    """The error for names that stand for nothing."""
    reason = "there is no file that matches" if any(map(is_pattern, names)) else "there is no such file"
    return FileError(", ".join(names), reason, step=f"{call} at {caller()}")
