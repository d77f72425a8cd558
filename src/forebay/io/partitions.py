"""How the values of a ``RaggedFeature`` are cut into rows, as other features of the same record tell it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forebay.errors import DataError

Lengths = NDArray[np.int64]


class RowSplits(NamedTuple):
    """Row i goes from the i-th of these to the next: 0, then where each row ends."""

    key: str

    def lengths(self, given: Lengths, count: int) -> Lengths:
        """Of the rows that `count` values are cut into."""
        if not len(given):
            return _whole(self.key, given, count)
        if given[0]:
            raise DataError(f"feature {self.key!r}: row splits begin with 0, not {given[0]}")
        return _whole(self.key, np.diff(given), count)


class RowLengths(NamedTuple):
    """How many values each row has."""

    key: str

    def lengths(self, given: Lengths, count: int) -> Lengths:
        """Of the rows that `count` values are cut into."""
        return _whole(self.key, given, count)


class RowStarts(NamedTuple):
    """Where each row begins; the last one goes on to the end."""

    key: str

    def lengths(self, given: Lengths, count: int) -> Lengths:
        """Of the rows that `count` values are cut into."""
        if len(given) and given[0]:
            raise DataError(f"feature {self.key!r}: row starts begin with 0, not {given[0]}")
        return _whole(self.key, np.diff(given, append=count) if len(given) else given, count)


class RowLimits(NamedTuple):
    """Where each row ends."""

    key: str

    def lengths(self, given: Lengths, count: int) -> Lengths:
        """Of the rows that `count` values are cut into."""
        return _whole(self.key, np.diff(given, prepend=0), count)


class ValueRowIds(NamedTuple):
    """The number of the row that each value is in. There are as many rows as the last of them says."""

    key: str

    def lengths(self, given: Lengths, count: int) -> Lengths:
        """Of the rows that `count` values are cut into."""
        if len(given) != count:
            raise DataError(f"feature {self.key!r}: {len(given)} row ids for {count} values")
        if not count:
            return given
        # Not by differences, which go round in 64 bits.
        if given[0] < 0 or (given[1:] < given[:-1]).any():
            raise DataError(f"feature {self.key!r}: row ids must not be negative or become smaller")
        if given[-1] >= _MOST_ROWS + _MOST_PER_VALUE * count:
            raise DataError(f"feature {self.key!r}: a row id of {given[-1]:,}, which is no number of a row")
        return np.bincount(given)


class UniformRowLength(NamedTuple):
    """So many values in every row."""

    length: int

    def lengths(self, count: int) -> Lengths:
        """Of the rows that `count` values are cut into."""
        if count % self.length:
            raise DataError(f"{count} values are not a whole number of rows of {self.length}")
        return np.full(count // self.length, self.length)


Partition = RowSplits | RowLengths | RowStarts | RowLimits | ValueRowIds | UniformRowLength

# Rows may be empty, so that nothing but this keeps one id from asking for any amount of memory.
_MOST_ROWS, _MOST_PER_VALUE = 1 << 12, 1 << 8


def _whole(key: str, lengths: Lengths, count: int) -> Lengths:
    """The lengths, if they can be lengths and add up."""
    if (lengths < 0).any():
        raise DataError(f"feature {key!r}: a row of {lengths.min()} values")
    # As numbers without limits: hostile lengths may add up to anything in 64 bits.
    total = sum(lengths.tolist())
    if total != count:
        raise DataError(f"feature {key!r}: rows of {total:,} values in all, of which there are {count:,}")
    return lengths
