"""Row numbers of a shuffle buffer, sorted and put back in the memory that they have."""

import numpy as np
import pytest

from forebay.run.picks import Picks


@pytest.mark.parametrize(
    ("size", "position", "total"), [(1, 0, None), (7, 100, None), (5000, 61_234, None), (50, 90, 120)]
)
def test_rows_between_two_numbers_are_found_and_all_go_back(size: int, position: int, total: int | None) -> None:
    picks = Picks(size, 3, 0)
    picks.seek(position, total)
    before = picks.buffer.copy()
    assert picks.sort_rows()
    found: dict[int, int] = {}
    last = int(before.max()) + 1
    for low in range(0, last + 500, 400):
        slots, rows = picks.between(low, low + 400)
        assert (np.diff(rows) > 0).all()
        assert ((rows >= low) & (rows < low + 400)).all()
        found |= dict(zip(slots.tolist(), rows.tolist(), strict=True))
    assert found == dict(enumerate(before.tolist()))
    picks.unsort_rows()
    np.testing.assert_array_equal(picks.buffer, before)


def test_draining_tells_where_rows_were() -> None:
    picks, plain = Picks(1000, 3, 0), Picks(1000, 3, 0)
    for each in (picks, plain):
        each.seek(5000, 6000)
    kept = plain.buffer.copy()
    assert picks.note_places()
    assert picks.oldest == plain.oldest == kept.min()
    for _ in range(10):
        rows, places = picks.drain(100)
        np.testing.assert_array_equal(rows, plain.drain(100)[0])
        np.testing.assert_array_equal(kept[places], rows)
    assert picks.moved == plain.moved


def test_numbers_too_large_to_share_are_left_alone() -> None:
    picks = Picks(1000, 3, 0)
    picks.seek(0, None)
    picks.buffer[-1] = 1 << 60
    before = picks.buffer.copy()
    assert not picks.note_places()
    np.testing.assert_array_equal(picks.buffer, before)
