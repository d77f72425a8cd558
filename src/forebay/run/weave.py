"""Rows taken in turns from several sources: how many from each, and in which order.

The sources stand in a circle, each gives `length` rows in its turn, and `done` rows of the first one's turn have
been given before. Counting from the beginning of that turn makes every turn equally long.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from forebay.block import Indices


def available(at_hand: Sequence[int], done: int, length: int) -> int:
    """How many rows can be given before one is needed that is not at hand."""
    begun = [done + at_hand[0], *at_hand[1:]]
    turns = [rows // length for rows in begun]
    fewest = min(turns)
    first = turns.index(fewest)
    return fewest * len(begun) * length + first * length + begun[first] - fewest * length - done


def shares(rows: int, done: int, length: int, sources: int) -> tuple[list[int], int, int]:
    """How many of the next `rows` rows each source gives; then whose turn it is, and how much of it is done."""
    turns, rest = divmod(done + rows, length)
    rounds, last = divmod(turns, sources)
    given = [(rounds + (source < last)) * length for source in range(sources)]
    given[last] += rest
    given[0] -= done
    return given, last, rest


@lru_cache(maxsize=4)
def weave(given: tuple[int, ...], done: int, length: int) -> Indices | None:
    """The order that puts the sources' rows, one source after another, into turns; None if they are already.

    It is only to be read: as long as all sources have rows, the next block has the same.
    """
    rows = sum(given)
    sources = len(given)
    if done + rows <= sources * length:
        return None
    starts = np.zeros(sources, np.int64)
    np.cumsum(given[:-1], out=starts[1:])
    starts[0] -= done
    rounds = -(-(done + rows) // (sources * length))
    order = (
        (np.arange(rounds, dtype=np.int64) * length)[:, None, None]
        + starts[None, :, None]
        + np.arange(length, dtype=np.int64)[None, None, :]
    )
    # The last round may be cut short anywhere; what lies beyond is not looked at.
    return order.reshape(-1)[done : done + rows]
