"""Rows taken in turns from several sources: how many from each, and in which order.

The sources stand in a circle, each gives `length` rows in its turn, and `done` rows of the first one's turn have
been given before. Counting from the beginning of that turn makes every turn equally long.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from forebay.block import Block, Indices, concat_blocks
from forebay.block.spans import Spans


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


def woven(parts: Sequence[Sequence[Block]], done: int, length: int) -> Block:
    """The rows of several sources, each in parts that follow one another, in turns."""
    blocks = [part for source in parts for part in source]
    given = tuple([sum([part.rows for part in source]) for source in parts])
    if len(given) == 1 or done + sum(given) <= len(given) * length:
        return concat_blocks(blocks)
    if all(len(block.columns) == 1 and type(block.columns[0]) is Spans for block in blocks):
        spans: list[list[Spans]] = [[cast(Spans, part.columns[0]) for part in source] for source in parts]
        column = Spans.in_turns(spans, done, length)
        if column is not None:
            first = blocks[0]
            return Block(first.structure, [column], sum(given), first.cursor)
    return concat_blocks(blocks).take(weave(given, done, length))


@lru_cache(maxsize=4)
def weave(given: tuple[int, ...], done: int, length: int) -> Indices:
    """The order that puts the sources' rows, one source after another, into turns.

    It is only to be read: as long as all sources have rows, the next block has the same.
    """
    rows = sum(given)
    sources = len(given)
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
