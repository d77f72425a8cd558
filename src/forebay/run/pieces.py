"""Many pieces that go to a spill file, and come back from it, on a thread that does not need the interpreter.

A thread of Python's would have to get hold of the interpreter several times for every piece. Beside a consumer that
never lets go of it for long, each time takes longer than it takes to write a piece, and the two would work in turns.
"""

import numpy as np

from forebay._native import Errands, Ordering, Writing, read_pieces
from forebay.block import Indices
from forebay.errors import SpillError
from forebay.run.places import Places, places_array
from forebay.run.spill import Bytes, SpillFile


class Written:
    """Ranges of memory on their way to a file, which must not be written to before ``result`` has returned."""

    __slots__ = ("_errands", "_file", "_offset", "_total", "_writing", "checksums", "offsets")

    def __init__(self, file: SpillFile, errands: Errands, source: Bytes, starts: Indices, stops: Indices) -> None:
        sizes = stops - starts
        self._file = file
        self._errands = errands
        self._total = int(sizes.sum())
        self._offset = file.reserve(self._total)
        self.offsets = self._offset + np.cumsum(sizes) - sizes
        self.checksums = np.empty_like(starts)
        self._writing: Writing = errands.write(file.fileno, self._offset, source, starts, stops, self.checksums)

    @property
    def done(self) -> bool:
        """Whether ``result`` would return at once."""
        return self._writing.done

    def result(self) -> None:
        """Returns once all are written. SpillError, with the file as it was before, if they cannot be."""
        try:
            with self._file.writing(self._total):
                self._writing.wait()
        except SpillError:
            # Nobody may write behind what is given up.
            self._errands.stop()
            self._file.shrink(self._offset)
            raise


class Ordered:
    """Records of one size on their way from a file, and their order by the words that they begin with."""

    __slots__ = ("_expected", "_file", "_found", "_order", "_ordering", "_records")

    def __init__(self, chunks: Places, file: SpillFile, errands: Errands, out: Bytes, width: int, known: int) -> None:
        starts, stops, self._expected = places_array(chunks)
        self._file = file
        self._found = np.empty_like(self._expected)
        self._records = out[: chunks.nbytes]
        self._order = np.empty(chunks.rows, np.int64)
        self._ordering: Ordering = errands.read_ordered(
            file.fileno, starts, stops, self._records, self._found, width, known, self._order
        )

    def result(self) -> tuple[Bytes, Indices]:
        """The records one behind another, and their order. DataError if they are not what was written."""
        with self._file.reading():
            self._ordering.wait()
        self._file.compare(self._found, self._expected)
        return self._records, self._order


def read_chunks(chunks: Places, file: SpillFile, out: Bytes) -> Bytes:
    """The records in the order in which they came, at the beginning of `out`; without a thread."""
    starts, stops, expected = places_array(chunks)
    found = np.empty_like(expected)
    with file.reading():
        read_pieces(file.fileno, starts, stops, out[: chunks.nbytes], found)
    file.compare(found, expected)
    return out[: chunks.nbytes]
