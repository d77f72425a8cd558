"""Which slot of a shuffle buffer every step picks.

A buffer of n slots is filled with the first n rows. Each step picks a slot at random, gives out the row in it,
and puts the next row there; when no row is left, the last slot's row moves into the gap. The pick of step t is
a keyed random number, not a draw from a stream. So which slot a row went into is known from its number alone, and
what a slot holds at step t follows from the last step that picked it: the whole buffer at any position is found by
looking back about n * ln(n) picks, however far from the start that is. That is why a shuffled position can be saved
as one number.
"""

from dataclasses import dataclass

import numpy as np

from forebay.block import Indices
from forebay.run.keys import key_of, uniforms

# How far rows move is measured on one in so many.
_SAMPLED = 16


@dataclass(frozen=True, slots=True)
class Shift:
    """How far rows have moved, in one round or in several.

    Args:
        rows: that were looked at.
        places: that these have moved by, all together.
        uniform: by how many they would have moved in a uniform order of their round.
    """

    rows: int = 0
    places: int = 0
    uniform: float = 0.0

    def __add__(self, other: "Shift") -> "Shift":
        return Shift(self.rows + other.rows, self.places + other.places, self.uniform + other.uniform)

    def moved(self) -> tuple[float, float] | None:
        """By how many places on average, and how many rows a uniform order would have; None before any has moved."""
        # Two places out of n are a third of n apart on average.
        return (self.places / self.rows, 3 * self.uniform / self.rows) if self.rows else None


class Steps:
    """The picks, and how far they have moved rows."""

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        self._key = key_of(seed, epoch, "shuffle")
        self.size = size
        self.position = 0
        """The number of the next step."""
        self._begin = self._distance = self._looked_at = 0

    @property
    def shift(self) -> Shift:
        """How far rows have moved since ``seek``."""
        return Shift(self._looked_at, self._distance, self._looked_at * (self.position - self._begin) / 3)

    def seek(self, position: int) -> None:
        """Go to a step."""
        self.position = self._begin = position
        self._distance = self._looked_at = 0

    def full(self, count: int) -> Indices:
        """The slots that the next steps pick while rows come in."""
        return self._slots(self.position, count)

    def shrinking(self, count: int, live: int, ahead: int = 0) -> Indices:
        """The slots that they pick, or those so far ahead, when none comes in any more and so many are left."""
        sizes = np.arange(live, live - count, -1)
        return (uniforms(self._key, self.position + ahead, count) * sizes).astype(np.int64)

    def entered(self, low: int, high: int) -> Indices:
        """The slots that the rows from `low` to before `high` are put into when they come in."""
        first = np.arange(low, min(high, self.size), dtype=np.int64)
        begin = max(low, self.size)
        return np.concatenate([first, self._slots(begin - self.size, high - begin)]) if high > self.size else first

    def advance(self, out: Indices) -> None:
        """Go on behind steps that gave out these rows."""
        some = out[::_SAMPLED]
        self._distance += int(np.abs(some - np.arange(self.position, self.position + len(out), _SAMPLED)).sum())
        self._looked_at += len(some)
        self.position += len(out)

    def _slots(self, start: int, count: int) -> Indices:
        return (uniforms(self._key, start, count) * self.size).astype(np.int64)
