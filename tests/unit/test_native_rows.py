"""The kernel behind records: rows and fields come from their places."""

import numpy as np
import pytest

from forebay._native import gather_rows


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16, 17, 100, 255, 256, 300, 1024, 5000])
def test_rows_come_from_their_places(width: int) -> None:
    rng = np.random.default_rng(width)
    records = rng.integers(0, 256, 30 * width).astype(np.uint8)
    places = rng.permutation(30)[:20]
    # Something behind is not to be touched.
    memory = np.zeros(20 * width + 70, np.uint8)
    gather_rows(records, width, 0, places, memory[: 20 * width])
    assert np.array_equal(memory[: 20 * width].reshape(20, width), records.reshape(30, width)[places])
    assert not memory[20 * width :].any()


def test_fields_come_from_their_records() -> None:
    records = np.arange(60, dtype=np.uint8)
    rows = np.zeros(6, np.uint8)
    gather_rows(records, 10, 3, np.array([5, 0, 2]), rows)
    assert rows.tolist() == [53, 54, 3, 4, 23, 24]


@pytest.mark.parametrize("place", [-1, 10, 2**62])
def test_a_place_outside_is_refused(place: int) -> None:
    rows, places, records = np.zeros(8, np.uint8), np.array([0, place]), np.zeros(40, np.uint8)
    with pytest.raises(IndexError, match="place 1 is out of range"):
        gather_rows(records, 4, 0, places, rows)


def test_a_field_outside_its_record_is_refused() -> None:
    rows, places, records = np.zeros(8, np.uint8), np.array([0, 1]), np.zeros(40, np.uint8)
    with pytest.raises(ValueError, match="within a record"):
        gather_rows(records, 4, 2**63, places, rows)
    with pytest.raises(ValueError, match="whole number of bytes"):
        gather_rows(records, 4, 0, places, rows[:7])
