"""The kernels against plain Python models, and with arguments that no caller should give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._native import drain, exchange, gather_ranges, permute, philox
from unit.support import fixed

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
keys = st.integers(0, 2**64 - 1)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def bytes_of(*values: int) -> np.ndarray:
    return np.array(values, np.uint8)


def permuted(positions: np.ndarray, size: int, key: tuple[int, int]) -> np.ndarray:
    out = np.full(len(positions), -1, np.int64)
    permute(positions, size, *key, out)
    return out


# gather_ranges


@fixed
@given(st.binary(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=20))
def test_gather_ranges_copies_slices_behind_one_another(source: bytes, pairs: list[tuple[int, int]]) -> None:
    ranges = [(min(a, len(source)), max(min(a, len(source)), min(b, len(source)))) for a, b in pairs]
    expected = b"".join(source[start:stop] for start, stop in ranges)
    out = np.zeros(len(expected), np.uint8)
    starts, stops = ints(*(r[0] for r in ranges)), ints(*(r[1] for r in ranges))
    gather_ranges(np.frombuffer(source, np.uint8), starts, stops, out)
    assert out.tobytes() == expected


@pytest.mark.parametrize(
    ("starts", "stops", "size"),
    [
        ([-1], [1], 2),
        ([0], [11], 11),
        ([9], [12], 3),
        ([INT64_MIN], [INT64_MIN], 0),
        ([INT64_MAX], [INT64_MAX], 0),
        ([0, 5], [3, 2], 0),  # The sizes 3 and -3 add up to what out has.
        ([5, 0], [2, 3], 0),
        ([0, INT64_MIN], [5, INT64_MIN], 5),
        ([INT64_MIN], [INT64_MIN + 4], 4),
        ([INT64_MAX - 4], [INT64_MAX], 4),
        ([0, 0, 0], [INT64_MAX, INT64_MAX, 6], 4),  # Together 2**64 + 4 bytes.
    ],
)
def test_gather_ranges_refuses_ranges_outside_the_source(starts: list[int], stops: list[int], size: int) -> None:
    source, out = np.arange(10, dtype=np.uint8), np.zeros(size, np.uint8)
    with pytest.raises((IndexError, ValueError)):
        gather_ranges(source, ints(*starts), ints(*stops), out)


def test_gather_ranges_names_the_range_that_is_wrong() -> None:
    with pytest.raises(IndexError, match="range 2 "):
        gather_ranges(np.zeros(4, np.uint8), ints(0, 1, 3), ints(1, 2, 5), np.zeros(4, np.uint8))


@fixed
@given(
    st.lists(st.tuples(st.integers(INT64_MIN, INT64_MAX), st.integers(INT64_MIN, INT64_MAX)), min_size=1, max_size=4)
)
def test_gather_ranges_with_any_bounds_raises_or_stays_inside(pairs: list[tuple[int, int]]) -> None:
    source = np.arange(16, dtype=np.uint8)
    starts, stops = ints(*(p[0] for p in pairs)), ints(*(p[1] for p in pairs))
    size = sum(b - a for a, b in pairs) % 2**64
    valid = all(0 <= a <= b <= 16 for a, b in pairs)
    out = np.zeros(size if size <= 64 else 7, np.uint8)
    if valid:
        gather_ranges(source, starts, stops, out)
        assert out.tobytes() == b"".join(source[a:b].tobytes() for a, b in pairs)
    else:
        with pytest.raises((IndexError, ValueError)):
            gather_ranges(source, starts, stops, out)


@pytest.mark.parametrize("room", [0, 2, 4])
def test_gather_ranges_refuses_an_out_of_another_size(room: int) -> None:
    with pytest.raises(ValueError, match="size"):
        gather_ranges(np.zeros(9, np.uint8), ints(0), ints(3), np.zeros(room, np.uint8))


def test_gather_ranges_refuses_starts_without_stops() -> None:
    with pytest.raises(ValueError, match="length"):
        gather_ranges(np.zeros(9, np.uint8), ints(0, 1), ints(3), np.zeros(3, np.uint8))


# permute


SIZES = [*range(1, 301), *(2**k + d for k in range(9, 18) for d in (-1, 0, 1)), 10**6]


@pytest.mark.parametrize("key", [(0, 0), (1, 2), (2**64 - 1, 2**64 - 1), (0x9E3779B97F4A7C15, 7)])
def test_permute_is_a_bijection_of_every_size(key: tuple[int, int]) -> None:
    for size in SIZES:
        out = permuted(np.arange(size), size, key)
        assert out.min() == 0, size
        assert out.max() == size - 1, size
        assert np.bincount(out, minlength=size).max() == 1, size


@fixed
@given(st.integers(1, 2**63), st.lists(st.integers(0, 2**63 - 1), max_size=30), keys, keys)
def test_permute_is_injective_and_inside_at_any_size(size: int, wanted: list[int], key0: int, key1: int) -> None:
    positions = ints(*sorted({w % size for w in wanted}))
    out = permuted(positions, size, (key0, key1))
    assert len(set(out.tolist())) == len(positions)
    assert all(0 <= value < size for value in out.tolist())


@fixed
@given(st.integers(1, 500), keys, keys, st.data())
def test_permute_answers_each_position_by_itself(size: int, key0: int, key1: int, data: st.DataObject) -> None:
    whole = permuted(np.arange(size), size, (key0, key1))
    some = data.draw(st.lists(st.integers(0, size - 1), max_size=20))
    assert permuted(ints(*some), size, (key0, key1)).tolist() == whole[some].tolist()


def test_permute_depends_on_both_halves_of_the_key() -> None:
    orders = {tuple(permuted(np.arange(1000), 1000, key).tolist()) for key in [(1, 2), (1, 3), (2, 2), (2, 1), (3, 1)]}
    assert len(orders) == 5


@pytest.mark.parametrize("position", [-1, 10, 11, INT64_MIN, INT64_MAX])
def test_permute_refuses_positions_outside(position: int) -> None:
    with pytest.raises(IndexError, match="position 1 "):
        permuted(ints(0, position), 10, (1, 2))


@pytest.mark.parametrize("size", [0, 2**63 + 1, 2**64 - 1])
def test_permute_refuses_a_size_that_int64_cannot_number(size: int) -> None:
    with pytest.raises(ValueError, match="size"):
        permuted(ints(0), size, (1, 2))


@pytest.mark.parametrize("size", [-1, 2**64])
def test_permute_refuses_a_size_outside_64_bits(size: int) -> None:
    with pytest.raises(TypeError):
        permuted(ints(0), size, (1, 2))


def test_permute_refuses_an_out_of_another_length() -> None:
    with pytest.raises(ValueError, match="length"):
        permute(ints(0, 1), 4, 1, 2, ints(0))


# exchange and drain


@fixed
@given(st.lists(st.integers(INT64_MIN, INT64_MAX), min_size=1, max_size=20), st.data())
def test_exchange_is_one_swap_after_another(entries: list[int], data: st.DataObject) -> None:
    slots = data.draw(st.lists(st.integers(0, len(entries) - 1), max_size=40))
    incoming = data.draw(st.lists(st.integers(INT64_MIN, INT64_MAX), min_size=len(slots), max_size=len(slots)))
    model, expected = list(entries), []
    for slot, new in zip(slots, incoming):
        expected.append(model[slot])
        model[slot] = new
    buffer, out = ints(*entries), np.zeros(len(slots), np.int64)
    exchange(buffer, ints(*slots), ints(*incoming), out)
    assert out.tolist() == expected
    assert buffer.tolist() == model


@fixed
@given(st.lists(st.integers(INT64_MIN, INT64_MAX), min_size=1, max_size=20), st.data())
def test_drain_moves_the_last_live_entry_into_the_gap(entries: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(entries)))
    slots = [data.draw(st.integers(0, len(entries) - 1 - step)) for step in range(count)]
    model, expected = list(entries), []
    for slot in slots:
        expected.append(model[slot])
        model[slot] = model[-1]
        model.pop()
    buffer, out = ints(*entries), np.zeros(count, np.int64)
    drain(buffer, ints(*slots), out)
    assert out.tolist() == expected
    assert buffer[: len(model)].tolist() == model


@pytest.mark.parametrize("slot", [-1, 3, 4, INT64_MIN, INT64_MAX])
def test_exchange_refuses_slots_outside(slot: int) -> None:
    with pytest.raises(IndexError, match="slot 1 "):
        exchange(ints(1, 2, 3), ints(0, slot), ints(8, 9), ints(0, 0))


@pytest.mark.parametrize("slot", [-1, 2, 3, INT64_MIN, INT64_MAX])
def test_drain_refuses_slots_that_are_no_longer_live(slot: int) -> None:
    with pytest.raises(IndexError, match="slot 1 "):
        drain(ints(1, 2, 3), ints(0, slot), ints(0, 0))


def test_drain_refuses_more_slots_than_entries() -> None:
    with pytest.raises(ValueError, match="more slots"):
        drain(ints(1, 2), ints(0, 0, 0), ints(0, 0, 0))


def test_exchange_and_drain_refuse_lengths_that_differ() -> None:
    with pytest.raises(ValueError, match="length"):
        exchange(ints(1), ints(0), ints(0, 0), ints(0))
    with pytest.raises(ValueError, match="length"):
        exchange(ints(1), ints(0), ints(0), ints(0, 0))
    with pytest.raises(ValueError, match="length"):
        drain(ints(1, 2), ints(0), ints(0, 0))


def test_an_empty_buffer_has_no_slots() -> None:
    exchange(ints(), ints(), ints(), ints())
    drain(ints(), ints(), ints())
    with pytest.raises(IndexError):
        exchange(ints(), ints(0), ints(0), ints(0))


@given(st.tuples(keys, keys), st.integers(0, 2**64 - 1000) | st.integers(0, 40), st.integers(0, 200))
def test_philox_is_that_of_numpy_from_any_word_on(key: tuple[int, int], start: int, count: int) -> None:
    out = np.zeros(count, np.uint64)
    philox(*key, start, out)
    generator = np.random.Philox(key=np.array(key, np.uint64), counter=start // 4)
    assert np.array_equal(out, generator.random_raw(start % 4 + count)[start % 4 :])


# Arrays of another kind: an implicit copy would take the result with it.

good = {
    "gather_ranges": (gather_ranges, [bytes_of(1, 2, 3), ints(0, 1), ints(1, 2), bytes_of(0, 0)]),
    "permute": (permute, [ints(0, 1), 4, 1, 2, ints(0, 0)]),
    "exchange": (exchange, [ints(1, 2), ints(0, 1), ints(8, 9), ints(0, 0)]),
    "drain": (drain, [ints(1, 2), ints(0, 0), ints(0, 0)]),
}
ARRAYS = [(name, i) for name, (_, args) in good.items() for i, arg in enumerate(args) if isinstance(arg, np.ndarray)]


def strided(array: np.ndarray) -> np.ndarray:
    wide = np.zeros(2 * len(array), array.dtype)
    wide[::2] = array
    return wide[::2]


@pytest.mark.parametrize(("kernel", "position"), ARRAYS)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a.astype(np.int32),
        lambda a: a.astype(np.float64),
        lambda a: a.astype(np.uint64),
        lambda a: a.astype(">i8"),
        lambda a: a.astype(object),
        lambda a: a.reshape(1, -1),
        lambda a: a[0],
        lambda a: a.tolist(),
        lambda a: None,
        strided,
    ],
    ids=["int32", "float64", "uint64", "big-endian", "object", "2-d", "scalar", "list", "none", "strided"],
)
def test_arrays_of_another_kind_are_refused(kernel: str, position: int, spoil: object) -> None:
    function, args = good[kernel]
    wrong = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    wrong[position] = spoil(wrong[position])
    with pytest.raises((TypeError, ValueError)):
        function(*wrong)


@pytest.mark.parametrize(("kernel", "position"), [("gather_ranges", 3), ("permute", 4), ("exchange", 0), ("drain", 2)])
def test_arrays_to_write_into_must_be_writable(kernel: str, position: int) -> None:
    function, args = good[kernel]
    frozen = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    frozen[position].flags.writeable = False
    with pytest.raises(TypeError):
        function(*frozen)


def test_sources_may_be_read_only() -> None:
    out = np.zeros(2, np.uint8)
    gather_ranges(np.frombuffer(b"abcd", np.uint8), ints(1), ints(3), out)
    assert out.tobytes() == b"bc"
