"""A short digest of what a dataset holds, from a few of its rows."""

from typing import Any

import numpy as np

from forebay.block import Block
from forebay.digests import blake2b


class Sample:
    """Rows 0, 1, 2, 4, 8 and so on. Which these are does not depend on how rows are cut into blocks."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=8)
        self._next = 0

    def add(self, block: Block, first: int) -> None:
        """Rows from number `first` on, behind those before."""
        while self._next < first + block.rows:
            row = self._next - first
            for column in block.columns:
                self._feed(column.slice(row, row + 1).rows()[0])
            self._next = max(1, self._next * 2)

    def _feed(self, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            self._feed(str(value.shape))
            for item in value.flat:
                self._feed(item)
        elif isinstance(value, (np.ndarray, np.generic)):
            self._feed(f"{value.dtype} {value.shape}")
            self._feed(value.tobytes())
        else:
            data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value or b""
            self._hash.update(f"{type(value).__name__} {len(data)}\0".encode())
            self._hash.update(data)

    def digest(self, *more: Any) -> str:
        """Of these rows, and of what else tells one dataset from another."""
        done = self._hash.copy()
        done.update(repr(more).encode())
        return done.hexdigest()
