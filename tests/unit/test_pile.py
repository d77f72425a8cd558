"""Rows of several blocks put together as they come: what comes out is what ``concat_blocks`` makes of them."""

import weakref

import numpy as np
import pytest

import forebay as fb
from forebay.block import Block, Cursor, RowBuilder, concat_blocks
from forebay.block.pile import Pile

WIDE = 50_000  # Four rows of float64 are more than a MiB.


def block_of(*rows):
    block, fault = RowBuilder().build(list(rows))
    assert fault is None
    return block.at(Cursor({"first": 7}))


def rows_of(blocks):
    return list(concat_blocks(blocks).elements())


@pytest.mark.parametrize(
    "blocks",
    [
        [block_of(np.ones(WIDE)), block_of(np.full(WIDE, 2.0), np.full(WIDE, 3.0)), block_of(np.full(WIDE, 4.0))],
        [block_of(np.ones(WIDE)), block_of(np.ones(WIDE - 1)), block_of(np.ones(WIDE)), block_of(np.ones(WIDE))],
        [block_of(np.ones(WIDE))],
        [block_of(np.ones(WIDE)), block_of(np.ones(WIDE)), block_of(np.ones(WIDE))],
        [block_of((np.ones(WIDE), 1)), block_of((np.zeros(WIDE), 2)), block_of((np.ones(WIDE), 3))],
        [block_of(np.ones(3)), block_of(np.zeros(3)), block_of(np.ones(3)), block_of(np.ones(3))],
        [block_of("a" * WIDE * 8), block_of("b" * WIDE * 8), block_of("c"), block_of("d")],
        [block_of(np.ones(WIDE, ">f8")), block_of(np.zeros(WIDE)), block_of(np.ones(WIDE, ">f8"))],
    ],
    ids=["alike", "another shape", "one of four", "three of four", "pairs", "small", "text", "byte orders"],
)
def test_all_rows_come_out_in_order(blocks):
    pile = Pile(blocks[0], 4, 1 << 30)
    for block in blocks[1:]:
        pile.add(block)
    together = pile.blocks()
    assert together[0].cursor == blocks[0].cursor
    for given, wanted in zip(rows_of(together), rows_of(blocks), strict=True):
        np.testing.assert_equal(given, wanted)


def test_blocks_that_are_alike_are_let_go_of():
    first, second = block_of(np.ones(WIDE)), block_of(np.zeros(WIDE))
    alive = [weakref.ref(first.columns[0].values), weakref.ref(second.columns[0].values)]
    pile = Pile(first, 4, 1 << 30)
    pile.add(second)
    del first, second
    assert [one() for one in alive] == [None, None]
    assert len(pile.blocks()) == 1


def test_no_memory_is_made_ready_beyond_the_budget():
    """Rows that never come are none that could not be held."""
    first = block_of(np.ones(WIDE))
    assert Pile(first, 1 << 60, 1 << 20).blocks() == [first]
    assert [x.shape for x in fb.Dataset.from_tensors(np.ones(WIDE)).batch(1 << 60)] == [(1, WIDE)]


def test_few_rows_do_not_hold_the_memory_of_many():
    (block,) = Pile(block_of(np.ones(WIDE)), 100, 1 << 30).blocks()
    values = block.columns[0].values
    assert isinstance(block, Block)
    assert values.base is None or values.base.nbytes < 2 * values.nbytes


def test_unequal_rows_are_refused_where_they_are():
    sizes = [WIDE, WIDE, WIDE, WIDE, WIDE, WIDE + 1]
    dataset = fb.Dataset.range(6).map(lambda i: np.ones(sizes[i])).batch(4)
    iterator = iter(dataset)
    assert next(iterator).shape == (4, WIDE)
    with pytest.raises(fb.DataError, match="element 5"):
        next(iterator)
