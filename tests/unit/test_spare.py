"""Memory that is used again must not be anybody's."""

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from forebay import Dataset
from forebay._native import clear_spare, kept_spare, spare_bytes
from forebay.block.aligned import aligned_empty
from forebay.block.dense import Dense

SIZE = 1 << 20


def place(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def test_what_nobody_refers_to_is_used_again() -> None:
    clear_spare()
    first = place(spare_bytes(SIZE))
    assert place(spare_bytes(SIZE)) == first
    assert kept_spare() >= SIZE
    assert clear_spare() >= SIZE
    assert kept_spare() == 0
    assert clear_spare() == 0


@pytest.mark.parametrize(
    "keep",
    [
        lambda array: array,
        lambda array: array[5:9].view(np.uint32).reshape(1, 1),
        lambda array: memoryview(array)[3:],
        lambda array: list(array[:64].reshape(4, 16)),
        lambda array: np.frombuffer(array.data, np.float64),
        lambda array: np.from_dlpack(array),
    ],
)
def test_what_is_looked_at_is_left_alone(keep: Any) -> None:
    clear_spare()
    made = spare_bytes(SIZE)
    made[:] = 7
    kept = keep(made)
    first = place(made)
    del made
    other = spare_bytes(SIZE)
    assert place(other) != first
    del kept
    gc.collect()
    # The one that was left alone is free now; the other is not.
    assert place(spare_bytes(SIZE)) == first


def test_other_sizes_do_not_stay_for_good() -> None:
    clear_spare()
    arrays = [spare_bytes(size) for size in range(SIZE, 8 * SIZE, SIZE)]
    assert clear_spare() == 0
    del arrays
    assert 8 << 20 <= clear_spare() <= 12 << 20


def test_sizes_that_take_turns_stay_and_one_out_of_use_goes() -> None:
    clear_spare()
    first, second = (place(spare_bytes(size)) for size in (SIZE, 2 * SIZE))
    for _ in range(30):
        assert place(spare_bytes(SIZE)) == first
        assert place(spare_bytes(2 * SIZE)) == second
    for _ in range(100):
        spare_bytes(2 * SIZE)
    assert clear_spare() == 2 * SIZE


def test_memory_stays_for_the_next_epoch_unless_an_iterator_is_closed_early() -> None:
    clear_spare()
    dataset = Dataset.from_tensor_slices(np.zeros((4000, 128))).shuffle(500, seed=3).batch(16)
    for _ in dataset:
        pass
    assert clear_spare() > 0
    with iter(dataset) as it:
        next(it)
    assert clear_spare() == 0


def test_memory_begins_at_a_page_and_its_place_is_used_again() -> None:
    """Also where the C library has long put such arrays into its heap, with small objects made in between."""
    kept: list[Any] = []
    places = set()
    for _ in range(200):
        array = spare_bytes(SIZE)
        assert place(array) % 4096 == 0
        places.add(place(array))
        kept.append([bytearray(1000) for _ in range(3)])
        del array
        clear_spare()
    assert len(places) < 20


def test_aligned_views_hold_their_memory() -> None:
    views = [aligned_empty((512, 256), np.float64, place=offset) for offset in range(0, 64, 8)]
    assert len({view.base.ctypes.data for view in views if view.base is not None}) == len(views)


def test_threads_never_share() -> None:
    def fill(number: int) -> bool:
        mine = [spare_bytes(SIZE) for _ in range(3)]
        for array in mine:
            array[:] = number
        return all((array == number).all() for array in mine)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(fill, range(200)))


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("shape", [(40,), (9, 11), (32,), (1000,)])
def test_wide_rows_are_taken_as_numpy_takes_them(shape: tuple[int, ...], read_only: bool) -> None:
    values = np.random.default_rng(0).random((50, *shape))
    values.flags.writeable = not read_only
    order = np.random.default_rng(1).integers(0, 50, 700)
    for some in (values, values[::2], values.astype(">f8"), np.asfortranarray(values)):
        taken = Dense(some, owned=False).take(order % len(some)).values
        np.testing.assert_array_equal(taken, some[order % len(some)])
        assert taken.dtype == some.dtype
        assert taken.flags.writeable


def test_elements_that_are_kept_stay_as_they_are() -> None:
    data = np.random.default_rng(0).random((4000, 128))
    dataset = Dataset.from_tensor_slices({"x": data, "n": np.arange(4000)}).shuffle(500, seed=3).batch(16).prefetch(2)
    kept = []
    for number, batch in enumerate(dataset):
        if number % 7 == 0:
            kept.append(batch)
        else:
            batch["x"][:] = -1
    for batch in kept:
        np.testing.assert_array_equal(batch["x"], data[batch["n"]])


def test_records_that_hold_objects_are_memory_of_their_own() -> None:
    records = np.array([(i, [i]) for i in range(5)], [("a", "i4"), ("o", object)])
    for dataset in (Dataset.from_tensor_slices(records), Dataset.from_tensor_slices(records).map(lambda x: x)):
        assert [row["o"] for row in dataset] == [[i] for i in range(5)]


def test_a_piece_serves_for_what_is_a_little_smaller() -> None:
    """Blocks are rarely of one size; the whole piece is there again afterwards."""
    clear_spare()
    first = place(spare_bytes(4 * SIZE))
    for size in (4 * SIZE - SIZE // 4, 4 * SIZE - 5000, 4 * SIZE):
        assert place(spare_bytes(size, roomy=True)) == first
    assert kept_spare() == 4 * SIZE
    assert place(spare_bytes(3 * SIZE, roomy=True)) != first
    assert place(spare_bytes(4 * SIZE - SIZE // 4)) != first
    assert place(spare_bytes(4 * SIZE + 1)) != first


def test_the_piece_that_fits_best_is_taken() -> None:
    clear_spare()
    arrays = [spare_bytes(size * SIZE // 4) for size in (17, 16)]
    small = place(arrays[1])
    del arrays
    assert place(spare_bytes(4 * SIZE, roomy=True)) == small
