"""What other plans have kept in the folder of a cache: the largest of it stays until there is something better."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

_OURS = re.compile(r"([0-9a-f]{32})\.(data|index|plan|tmp)")


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
        for name in os.listdir(self._folder):
            match = _OURS.fullmatch(name)
            if match is not None and match[1] != self._key:
                yield match[1], match[2], self._folder / name


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
