"""Many pieces that go to a spill file, and come back from it, on a thread that does not need the interpreter.

A thread of Python's would have to get hold of the interpreter several times for every piece. Beside a consumer that
never lets go of it for long, each time takes longer than it takes to write a piece, and the two would work in turns.
"""

import numpy as np

from forebay._native import Arranging, Errands, Writing
from forebay.block import Block, Indices
from forebay.block.pages import PagePool
from forebay.errors import SpillError
from forebay.run.layout import Layout
from forebay.run.places import Places, places_array
from forebay.run.spill import Bytes, SpillFile


class Written:
    """Pieces on their way to a file, each of several ranges of memory: a row of `starts` and `stops`.

    The memory must not be written to before ``result`` has returned.
    """

    __slots__ = ("_errands", "_file", "_offset", "_total", "_writing", "checksums", "offsets")

    def __init__(self, file: SpillFile, errands: Errands, source: Bytes, starts: Indices, stops: Indices) -> None:
        sizes = (stops - starts).sum(axis=1)
        self._file = file
        self._errands = errands
        self._total = int(sizes.sum())
        self._offset = file.reserve(self._total)
        self.offsets = self._offset + np.cumsum(sizes) - sizes
        self.checksums = np.empty_like(sizes)
        self._writing: Writing = errands.write(
            file.fileno, self._offset, source, starts.reshape(-1), stops.reshape(-1), self.checksums
        )

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


class Arranged:
    """Rows on their way from a file to blocks, in the order of their words.

    Args:
        chunks: the pieces that they lie in.
        known: how many bits the words of all of them begin with.
        skipped: so many of the first rows in order are not wanted.
        block_rows: as many as each block has.
        pages: memory for them.
    """

    def __init__(
        self,
        chunks: Places,
        file: SpillFile,
        errands: Errands,
        layout: Layout,
        known: int,
        skipped: int,
        block_rows: int,
        pages: PagePool,
    ) -> None:
        starts, rows, self._expected = places_array(chunks)
        self._file = file
        self._layout = layout
        self._rows = chunks.rows - skipped
        self._block_rows = min(block_rows, self._rows)
        self._offsets, nbytes = layout.room(self._block_rows)
        self._memory = pages.take(-(-self._rows // self._block_rows), nbytes)
        self._found = np.empty_like(self._expected)
        self._arranging: Arranging = errands.read_arranged(
            file.fileno,
            starts,
            rows,
            layout.widths[1:],
            self._offsets,
            known,
            skipped,
            self._memory,
            self._block_rows,
            self._found,
        )

    def result(self) -> list[Block]:
        """All rows. DataError if they are not what was written."""
        with self._file.reading():
            self._arranging.wait()
        self._file.compare(self._found, self._expected)
        memory, self._memory = self._memory, []
        rows = range(self._rows, 0, -self._block_rows)
        return [
            self._layout.block(each, self._offsets, min(self._block_rows, left)) for each, left in zip(memory, rows)
        ]
