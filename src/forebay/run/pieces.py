"""Many pieces that come back from a spill file, on a thread that does not need the interpreter.

A thread of Python's would have to get hold of the interpreter several times for every piece. Beside a consumer that
never lets go of it for long, each time takes longer than it takes to read a piece, and the two would work in turns.
"""

import numpy as np

from forebay._native import Arranging, Errands
from forebay.block import Block
from forebay.block.pages import PagePool
from forebay.run.layout import Layout
from forebay.run.places import Places, places_array
from forebay.run.spill import SpillFile


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
            file.direct,
            file.far,
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
