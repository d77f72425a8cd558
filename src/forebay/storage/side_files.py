"""Files that Forebay puts beside those of its users, which are no data: what they are called."""

import os
import re

_INDEX = ".fbindex"
_SIDE = re.compile(
    rf"{re.escape(_INDEX)}(\.[0-9]+)?$|(^|/)\.[^/]+\.forebay-[0-9a-f]+(/|$)|(^|/)\.forebay-[0-9a-f]+\.lock$"
)


def index_of(path: str) -> str:
    """Where the index of a file is kept."""
    return path + _INDEX


def unfinished_prefix(path: str) -> str:
    """What the names of things begin with that are to be called `path` once they are complete."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.forebay-")


def is_side_file(path: str) -> bool:
    """Whether it is an index, or something that is being written or was left by a crash, or lies inside of that."""
    return _SIDE.search(path) is not None
