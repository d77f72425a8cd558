"""The kernels behind records: every row gets the place that its word names, and comes back from it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._native import gather_rows, place_rows, scatter_rows


@given(
    words=st.lists(st.integers(0, 2**64 - 1), max_size=60),
    buckets=st.sampled_from([1, 2, 8]),
    shift=st.integers(0, 63),
    room=st.integers(1, 9),
    spare=st.integers(0, 4),
)
def test_places_follow_the_words_until_there_is_no_slot(
    words: list[int], buckets: int, shift: int, room: int, spare: int
) -> None:
    first, filled = np.arange(buckets) * 100, np.zeros(buckets, np.int64)
    free, full = 1000 + 100 * np.arange(spare), np.zeros(3 * spare, np.int64)
    places = np.full(len(words), -1)
    placed, count = place_rows(np.array(words, np.uint64), shift, room, first, filled, free, full, places)
    slots, counts, left = [100 * bucket for bucket in range(buckets)], [0] * buckets, free.tolist()
    expected, over = [], []
    for word in words:
        bucket = (word >> shift) % buckets
        if counts[bucket] == room:
            if not left:
                break
            over.append([bucket, slots[bucket], room])
            slots[bucket], counts[bucket] = left.pop(), 0
        expected.append(slots[bucket] + counts[bucket])
        counts[bucket] += 1
    assert places.tolist() == expected + [-1] * (len(words) - len(expected))
    assert (placed, count) == (len(expected), len(over))
    assert (first.tolist(), filled.tolist()) == (slots, counts)
    assert full.reshape(-1, 3)[:count].tolist() == over


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16, 17, 100, 255, 256, 300, 1024, 5000])
def test_rows_go_to_their_places_and_come_back(width: int) -> None:
    rng = np.random.default_rng(width)
    rows = rng.integers(0, 256, 20 * width).astype(np.uint8)
    places = rng.permutation(30)[:20]
    # Not where lines of the cache begin, and with something behind that is not to be touched.
    memory = np.zeros(3 + 30 * width + 70, np.uint8)
    out = memory[3 : 3 + 30 * width]
    scatter_rows(rows, places, out)
    assert np.array_equal(out.reshape(30, width)[places], rows.reshape(20, width))
    assert not np.delete(out.reshape(30, width), places, axis=0).any()
    assert not memory[:3].any()
    assert not memory[3 + 30 * width :].any()
    back = np.zeros_like(rows)
    gather_rows(out, width, 0, places, back)
    assert np.array_equal(back, rows)


def test_fields_come_from_their_records() -> None:
    records = np.arange(60, dtype=np.uint8)
    rows = np.zeros(6, np.uint8)
    gather_rows(records, 10, 3, np.array([5, 0, 2]), rows)
    assert rows.tolist() == [53, 54, 3, 4, 23, 24]


@pytest.mark.parametrize("place", [-1, 10, 2**62])
def test_a_place_outside_is_refused(place: int) -> None:
    rows, places, records = np.zeros(8, np.uint8), np.array([0, place]), np.zeros(40, np.uint8)
    with pytest.raises(IndexError, match="place 1 is out of range"):
        scatter_rows(rows, places, records)
    with pytest.raises(IndexError, match="place 1 is out of range"):
        gather_rows(records, 4, 0, places, rows)


def test_a_field_outside_its_record_is_refused() -> None:
    rows, places, records = np.zeros(8, np.uint8), np.array([0, 1]), np.zeros(40, np.uint8)
    with pytest.raises(ValueError, match="within a record"):
        gather_rows(records, 4, 2**63, places, rows)
    with pytest.raises(ValueError, match="whole number of bytes"):
        scatter_rows(rows[:7], places, records)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"first": np.zeros(3, np.int64), "filled": np.zeros(3, np.int64)}, "power of two"),
        ({"first": np.zeros(4, np.int64)}, "differ in length"),
        ({"filled": np.array([0, -1])}, "negative"),
        ({"shift": 64}, "below 64"),
        ({"room": 0}, "at least one row"),
        ({"places": np.zeros(1, np.int64)}, "places is shorter"),
        ({"full": np.zeros(5, np.int64)}, "full is shorter"),
    ],
)
def test_buckets_that_cannot_be_are_refused(other: dict[str, Any], message: str) -> None:
    arguments = {
        "words": np.zeros(2, np.uint64),
        "shift": 0,
        "room": 1,
        "first": np.zeros(2, np.int64),
        "filled": np.zeros(2, np.int64),
        "free": np.zeros(2, np.int64),
        "full": np.zeros(6, np.int64),
        "places": np.zeros(2, np.int64),
    }
    with pytest.raises(ValueError, match=message):
        place_rows(**(arguments | other))
