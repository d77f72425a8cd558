"""What ``convert`` says of files, in names that who gave the command knows."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from forebay.errors import FileError, ForebayError
from forebay.formats.find import Group
from forebay.formats.format import UsageError

_SHOWN = 5


@contextmanager
def errors_told(group: Group, target: str) -> Iterator[None]:
    """Errors name the files that were given and the target, in place of the step of a pipeline nobody has written."""
    try:
        yield
    except UsageError:
        raise
    except FileError as error:
        unmade = f"; {target} is not written" if error.path in group.files.paths else ""
        raise type(error)(error.path, error.reason + unmade, error.offset, line=error.line) from error
    except ForebayError as error:
        raise type(error)(f"{_source(group)} to {target}: {error}") from error


def passed_by(group: Group, strays: list[Group]) -> list[str]:
    """The line that says which files were passed over for not being of the format of the others."""
    paths = sorted(path for stray in strays for path in stray.files.paths)
    if not paths:
        return []
    root = group.files.head.path if group.format.folder else os.path.dirname(group.files.paths[0])
    shown = ", ".join(path.removeprefix(root.rstrip("/") + "/") for path in paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
    files = "1 file" if len(paths) == 1 else f"{len(paths):,} files"
    what = "images" if group.format.name == "images" else group.format.title
    return [f"passed over {files} beside the {what}: {shown}{more}"]


def _source(group: Group) -> str:
    paths = group.files.paths
    if group.format.folder:
        return group.files.head.path
    return paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1:,} more"
