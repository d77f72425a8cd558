"""Where things lie in a file, for as many things as there are: their list goes to the file too when it gets long."""

from array import array
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

    def put(self, parts: list[memoryview]) -> tuple[int, int]:
        """Write behind all that is there; the offset and the checksum."""

    def read_into(self, offset: int, out: NDArray[np.uint8], expected: int) -> None:
        """Bytes that were put there. DataError if they are not what was written."""


_FIELDS = len(Place._fields)
# Long enough that lists of lists stay short, and short enough (10 KiB) for a list of every part of a shuffle.
_PAGE = 256


class Places:
    """Places in the order in which they came. In memory are the last few, however many there are."""

    __slots__ = ("_file", "_last", "_pages", "nbytes", "rows")

    def __init__(self, file: Pages) -> None:
        self._file = file
        self._last = array("q")
        # A list like this one of where the places before those lie.
        self._pages: Places | None = None
        self.nbytes = 0
        self.rows = 0

    def append(self, place: Place) -> None:
        """One more. On the thread that writes to the file."""
        self._make_room()
        self._last.extend(place)
        self.nbytes += place.nbytes
        self.rows += place.rows

    def extend(self, places: NDArray[np.int64]) -> None:
        """Some more, each a row with the fields of a place."""
        self.nbytes += int(places[:, Place._fields.index("nbytes")].sum())
        self.rows += int(places[:, Place._fields.index("rows")].sum())
        while len(places):
            self._make_room()
            some = _PAGE - len(self._last) // _FIELDS
            self._last.frombytes(places[:some].tobytes())
            places = places[some:]

    def _make_room(self) -> None:
        if len(self._last) < _PAGE * _FIELDS:
            return
        if self._pages is None:
            self._pages = Places(self._file)
        offset, checksum = self._file.put([memoryview(self._last).cast("B")])
        self._pages.append(Place(offset, _PAGE * _FIELDS * self._last.itemsize, _PAGE, checksum, 0))
        self._last = array("q")

    def __iter__(self) -> Iterator[Place]:
        for page in self._pages or ():
            numbers = np.empty((page.rows, _FIELDS), np.int64)
            self._file.read_into(page.offset, numbers.reshape(-1).view(np.uint8), page.checksum)
            yield from (Place(*place) for place in numbers.tolist())
        for start in range(0, len(self._last), _FIELDS):
            yield Place(*self._last[start : start + _FIELDS])


def places_array(places: Places) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where they begin, how many rows they have, and their checksums."""
    offsets, _, rows, checksums, _ = np.array(list(places), np.int64).reshape(-1, _FIELDS).T.copy()
    return offsets, rows, checksums
