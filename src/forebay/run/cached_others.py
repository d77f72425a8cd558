"""What else is in the folder of a cache.

Of what other plans have kept there, the largest stays until there is something better. What is of no cache stays for
good. A name does not tell: other programs call files by digests too. So files count as a cache's by what is in them.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Protocol

ENDINGS = ("data", "index", "plan", "tmp")
"""Of the files under one key."""
LOCK = "lock"
"""The file that whoever writes holds; it is there from the first time on that somebody did."""

_OURS = re.compile(rf"([0-9a-f]{{32}})\.({'|'.join(ENDINGS)})")
# How files of a key begin, in all versions.
_BEGINNINGS = {"data": "FBCACHE", "index": '[0-9a-f]{{8}}\n{{"key": "{key}"', "plan": '{{"steps": '}
_BEGINNING = 64
# How names begin of what nobody would miss: hidden files, and what is in the root of every disk.
_NOBODYS = (".", "lost+found")
# There may be millions, and a few names are enough.
_MOST_LOOKED_AT = 1000


class Origin(Protocol):
    """What rows are made of, to be written down beside them."""

    def text(self) -> str:
        """As it is written down."""

    def replaces(self, kept: str | None) -> None:
        """Rows of something else are there: what was written down beside those, if anything was."""


class Others:
    """The files of a folder that are under other keys than this. Only for whoever holds the folder's lock."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self._key = key

    def largest(self) -> str | None:
        """The key under which there is most."""
        sizes = {key: os.path.getsize(path) for key, ending, path in self._found() if ending == "data"}
        key = max(sizes, key=sizes.__getitem__, default=None)
        return key if key is not None and sizes[key] else None

    def sweep(self, but: str | None = None) -> bool:
        """Delete what is under other keys, except under that one, and what was never finished; whether any was."""
        found = [path for key, ending, path in self._found() if key != but or ending == "tmp"]
        for path in found:
            path.unlink(missing_ok=True)
        return bool(found)

    def note(self, origin: Origin, begins: bool) -> None:
        """Write down what the rows under this key are made of; who `begins` with them is told of others."""
        path = self._folder / f"{self._key}.plan"
        # It explains rows and is not needed to read them.
        with suppress(OSError):
            if path.exists():
                return
            largest = self.largest() if begins else None
            if largest is not None:
                origin.replaces(_text(self._folder / f"{largest}.plan"))
            path.write_text(origin.text(), "utf-8")

    def _found(self) -> Iterator[tuple[str, str, Path]]:
        keys: dict[str, list[str]] = {}
        for name in os.listdir(self._folder):
            match = _OURS.fullmatch(name)
            if match is not None and match[1] != self._key:
                keys.setdefault(match[1], []).append(match[2])
        for key, endings in keys.items():
            # Any of them will do: others may be damaged, or not have been begun.
            if any(_is_ours(self._folder / f"{key}.{ending}") for ending in endings):
                yield from ((key, ending, self._folder / f"{key}.{ending}") for ending in endings)


def unrelated(folder: str) -> list[str]:
    """Names of some files that are of no cache, in a folder that none has been in yet; hidden ones do not count."""
    if os.path.exists(os.path.join(folder, LOCK)):
        return []
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, _MOST_LOOKED_AT)]
    except OSError:
        # There is none, or whoever writes there will say what is wrong with it.
        return []
    return sorted(name for name in names if not name.startswith(_NOBODYS) and not _is_ours(Path(folder, name)))


def _is_ours(path: Path) -> bool:
    """Whether a file begins as one of its name does in a cache."""
    match = _OURS.fullmatch(path.name)
    pattern = _BEGINNINGS.get(match[2]) if match is not None else None
    if match is None or pattern is None:
        return False
    try:
        with path.open("rb") as file:
            begin = file.read(_BEGINNING)
    except OSError:
        return False
    return re.match(pattern.format(key=match[1]), begin.decode("latin-1")) is not None


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
