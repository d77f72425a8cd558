"""Where things lie in a file, for as many things as there are: their list goes to the file too when it gets long."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Place(NamedTuple):
    """Where something lies in a file, and how to tell that it has come back whole.

    `kind` is a number that whoever wrote it knows more by.
    """

    offset: int
    nbytes: int
    rows: int
    checksum: int
    kind: int


class Pages(Protocol):
    """A file that a list's pages are put into, and read from."""

    def put(self, parts: list[NDArray[np.uint8]]) -> tuple[int, int]:
        """Write behind all that is there; the offset and the checksum."""

    def read_into(self, offset: int, out: NDArray[np.uint8], expected: int) -> None:
        """Bytes that were put there. DataError if they are not what was written."""


_FIELDS = len(Place._fields)
# Long enough that lists of lists stay short, and short enough (1280 bytes) for a list of every part of a shuffle.
_PAGE = 32


class Places:
    """Places in the order in which they came. In memory are the last few, however many there are."""

    __slots__ = ("_count", "_file", "_last", "_pages", "nbytes", "rows")

    def __init__(self, file: Pages) -> None:
        self._file = file
        # Of one size from the first place on: a list that grows leaves holes in the heap, of every part of a shuffle.
        self._last: NDArray[np.int64] | None = None
        self._count = 0
        # A list like this one of where the places before those lie.
        self._pages: Places | None = None
        self.nbytes = 0
        self.rows = 0

    def append(self, place: Place) -> None:
        """One more. On the thread that writes to the file."""
        self._room()[0] = place
        self._count += 1
        self.nbytes += place.nbytes
        self.rows += place.rows

    def extend(self, places: NDArray[np.int64]) -> None:
        """Some more, each a row with the fields of a place."""
        self.nbytes += int(places[:, Place._fields.index("nbytes")].sum())
        self.rows += int(places[:, Place._fields.index("rows")].sum())
        while len(places):
            room = self._room()
            some = places[: len(room)]
            room[: len(some)] = some
            self._count += len(some)
            places = places[len(some) :]

    def _room(self) -> NDArray[np.int64]:
        """Of the last page, what has no place yet."""
        if self._last is None:
            self._last = np.empty((_PAGE, _FIELDS), np.int64)
        if self._count == _PAGE:
            if self._pages is None:
                self._pages = Places(self._file)
            offset, checksum = self._file.put([self._last.reshape(-1).view(np.uint8)])
            self._pages.append(Place(offset, self._last.nbytes, _PAGE, checksum, 0))
            self._count = 0
        return self._last[self._count :]

    def __iter__(self) -> Iterator[Place]:
        for page in self._pages or ():
            numbers = np.empty((page.rows, _FIELDS), np.int64)
            self._file.read_into(page.offset, numbers.reshape(-1).view(np.uint8), page.checksum)
            yield from (Place(*place) for place in numbers.tolist())
        if self._last is not None:
            yield from (Place(*place) for place in self._last[: self._count].tolist())


def places_array(places: Places) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where they begin, how many rows they have, and their checksums."""
    offsets, _, rows, checksums, _ = np.array(list(places), np.int64).reshape(-1, _FIELDS).T.copy()
    return offsets, rows, checksums
