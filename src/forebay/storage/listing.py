"""Files that match a pattern, on a disk or behind any URL that fsspec knows."""

import glob
import os

from forebay.storage.files import file_error, is_url


def matching(pattern: str) -> list[str]:
    """The paths that match, in order. ``*`` and ``?`` stay within a folder, ``**`` does not; hidden files count.

    A name that is no pattern matches itself, if it is there. FileError if a server cannot be asked.
    """
    if pattern.startswith("file://"):
        pattern = pattern.removeprefix("file://")
    if is_url(pattern):
        return _remote(pattern)
    if os.path.lexists(pattern) and not glob.has_magic(pattern):
        return [pattern]
    return sorted(glob.glob(pattern, recursive=True, include_hidden=True))


def _remote(pattern: str) -> list[str]:
    try:
        import fsspec

        system, name = fsspec.core.url_to_fs(pattern)
        found = system.glob(name) if glob.has_magic(name) else [name] if system.exists(name) else []
        # Without the protocol, a path would be taken for one of this machine's.
        return sorted(str(system.unstrip_protocol(each)) for each in found)
    except Exception as error:
        # File systems raise what their libraries raise.
        raise file_error(pattern, error) from error
