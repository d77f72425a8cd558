"""How many rows the next block is to have."""

from forebay.run.pace import Pace


def rows_after(seconds_of, blocks=40, row_bytes=100):
    """The size that blocks come to if one of n rows takes seconds_of(n)."""
    pace = Pace(1 << 20)
    for _ in range(blocks):
        pace.observe(pace.rows, row_bytes * pace.rows, seconds_of(pace.rows))
    return pace.rows


def test_quick_rows_fill_a_block():
    assert rows_after(lambda rows: 1e-7 * rows) == (1 << 20) // 100


def test_rows_that_take_long_come_in_small_blocks():
    assert 5 <= rows_after(lambda rows: 0.003 * rows) <= 7
    assert rows_after(lambda rows: 0.05 * rows) == 1
    assert rows_after(lambda rows: 3.0 * rows) == 1


def test_what_takes_long_however_many_rows_there_are_is_asked_for_many():
    assert rows_after(lambda rows: 0.04 + 1e-6 * rows) > 2000


def test_it_is_tried_once_only():
    pace = Pace(1 << 20)
    seen = set()
    for _ in range(40):
        seen.add(pace.rows)
        pace.observe(pace.rows, 100, 0.05 * pace.rows)
    assert seen == {1, 2}
    assert pace.rows == 1


def test_one_block_that_others_held_up_is_not_taken_for_a_rule():
    pace = Pace(1 << 20)
    longest = 0.0
    for block in range(60):
        seconds = 1e-4 * pace.rows
        # The block before the trial took twice as long as its rows do, so that the trial seems to add nothing.
        held_up = block == 4
        longest = max(longest, seconds)
        pace.observe(pace.rows, 8 * pace.rows, 2 * seconds if held_up else seconds)
    assert 200 <= pace.rows <= 400
    assert longest < 0.1


def test_who_computes_is_not_asked_for_more_to_find_out():
    pace = Pace(1 << 20)
    seen = set()
    for _ in range(40):
        seen.add(pace.rows)
        pace.observe(pace.rows, 100, 0.05 * pace.rows, computing=True)
    assert seen == {1}


def test_larger_rows_make_smaller_blocks():
    pace = Pace(1 << 20)
    for _ in range(20):
        pace.observe(pace.rows, 100 * pace.rows, 0.0)
    pace.observe(10, 10 << 20, 0.0)
    assert pace.rows == 1
