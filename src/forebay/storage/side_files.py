"""Files that Forebay puts beside those of its users, which are no data: what they are called."""

import os
import re
import secrets

_INDEX = ".fbindex"
_SIDE = re.compile(rf"{re.escape(_INDEX)}(\.[0-9]+)?$|(^|/)\.[^/]+\.forebay-[0-9a-f]+(/|$)")


def index_of(path: str) -> str:
    """Where the index of a file is kept."""
    return path + _INDEX


def unfinished(path: str) -> str:
    """A name for what is to be called `path` once it is complete. Nobody else has it."""
    return f"{unfinished_prefix(path)}{secrets.token_hex(6)}"


def unfinished_prefix(path: str) -> str:
    """What all such names begin with."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.forebay-")


def is_side_file(path: str) -> bool:
    """Whether it is an index, or something that is being written or was left by a crash, or lies inside of that."""
    return _SIDE.search(path) is not None
