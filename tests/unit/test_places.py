"""Lists of places: in order, whole, and of one size in memory however long they get."""

import os
import sys

import pytest

from forebay.errors import DataError
from forebay.run.places import Place, Places
from forebay.run.spill import SpillFile
from forebay.run.spill_room import SpillStore


def place(number: int) -> Place:
    return Place(number << 33, number, number % 7, number << 1, number % 3)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 65, 1025, 40_000])
def test_places_come_back_in_order(count: int) -> None:
    file = SpillFile(SpillStore())
    places = Places(file)
    for number in range(count):
        places.append(place(number))
    for _ in range(2):
        assert list(places) == [place(number) for number in range(count)]
    assert places.nbytes == sum(place(number).nbytes for number in range(count))
    assert places.rows == sum(place(number).rows for number in range(count))
    file.close()


def test_in_memory_there_are_only_the_last_few() -> None:
    file = SpillFile(SpillStore())
    places = Places(file)
    for number in range(40_000):
        places.append(place(number))
    inner, held = places, 0
    while inner is not None:
        held += sys.getsizeof(inner) + sys.getsizeof(inner._last)
        inner = inner._pages
    assert held < 10_000
    file.close()


def test_a_changed_page_is_noticed() -> None:
    file = SpillFile(SpillStore())
    places = Places(file)
    for number in range(1000):
        places.append(place(number))
    before = os.pread(file.fileno, 1, 100)
    os.pwrite(file.fileno, bytes([before[0] ^ 1]), 100)
    with pytest.raises(DataError, match="has come back changed"):
        list(places)
    file.close()
