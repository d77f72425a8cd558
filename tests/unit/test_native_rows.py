"""The kernels behind records: every row gets the place that its word names, and comes back from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._native import gather_rows, place_rows, scatter_rows


@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=60), st.sampled_from([1, 2, 8]), st.integers(0, 63), st.integers(0, 9)
)
def test_places_follow_the_words_until_a_bucket_is_full(words: list[int], buckets: int, shift: int, room: int) -> None:
    first = np.arange(buckets) * 100
    filled = np.zeros(buckets, np.int64)
    places = np.full(len(words), -1)
    placed = place_rows(np.array(words, np.uint64), shift, first, filled, room, places)
    expected, counts = [], [0] * buckets
    for word in words:
        bucket = (word >> shift) % buckets
        if counts[bucket] == room:
            break
        expected.append(100 * bucket + counts[bucket])
        counts[bucket] += 1
    assert places.tolist() == expected + [-1] * (len(words) - len(expected))
    assert (placed, filled.tolist()) == (len(expected), counts)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16, 17, 100])
def test_rows_come_back_from_their_records(width: int) -> None:
    rng = np.random.default_rng(width)
    rows = rng.integers(0, 256, 20 * width).astype(np.uint8)
    places = rng.permutation(30)[:20]
    stride, offset = width + 5, 3
    records = np.zeros(30 * stride, np.uint8)
    scatter_rows(rows, places, records, stride, offset)
    fields = records.reshape(30, stride)
    assert np.array_equal(fields[places, offset : offset + width], rows.reshape(20, width))
    assert not fields[:, :offset].any()
    assert not fields[:, offset + width :].any()
    back = np.zeros_like(rows)
    gather_rows(records, stride, offset, places, back)
    assert np.array_equal(back, rows)


@pytest.mark.parametrize("place", [-1, 10, 2**62])
def test_a_place_outside_is_refused(place: int) -> None:
    rows, places, records = np.zeros(8, np.uint8), np.array([0, place]), np.zeros(40, np.uint8)
    with pytest.raises(IndexError, match="place 1 is out of range"):
        scatter_rows(rows, places, records, 4, 0)
    with pytest.raises(IndexError, match="place 1 is out of range"):
        gather_rows(records, 4, 0, places, rows)


def test_a_field_outside_its_record_is_refused() -> None:
    rows, places, records = np.zeros(8, np.uint8), np.array([0, 1]), np.zeros(40, np.uint8)
    with pytest.raises(ValueError, match="within a record"):
        scatter_rows(rows, places, records, 4, 1)
    with pytest.raises(ValueError, match="within a record"):
        gather_rows(records, 4, 2**63, places, rows)
    with pytest.raises(ValueError, match="whole number of bytes"):
        scatter_rows(rows[:7], places, records, 4, 0)


def test_buckets_that_cannot_be_are_refused() -> None:
    words, places = np.zeros(2, np.uint64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="power of two"):
        place_rows(words, 0, np.zeros(3, np.int64), np.zeros(3, np.int64), 1, places)
    with pytest.raises(ValueError, match="differ in length"):
        place_rows(words, 0, np.zeros(4, np.int64), np.zeros(2, np.int64), 1, places)
    with pytest.raises(ValueError, match="below 64"):
        place_rows(words, 64, np.zeros(2, np.int64), np.zeros(2, np.int64), 1, places)
    with pytest.raises(ValueError, match="shorter"):
        place_rows(words, 0, np.zeros(2, np.int64), np.zeros(2, np.int64), 1, places[:1])
