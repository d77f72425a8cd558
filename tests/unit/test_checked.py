"""Checksums that go on from one another, and reading that takes them on the way."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._native import Errands, crc32c, read_checked
from forebay.block import Block, Column, RowBuilder
from forebay.run.packed import Packing, pack, unpack
from forebay.storage.checked import checksum
from unit.support import assert_same

PIECE = 4 << 20
"""What the kernel reads at once."""

DATA = np.random.default_rng(7).integers(0, 256, 3 * PIECE, np.uint8)

# Around where one way of working it out takes over from another.
EDGES = (192, 256, 1024, 2048, 4096, 41_984, 2 * 41_984)
LENGTHS = [*range(20), *(edge + i for edge in EDGES for i in (-1, 0, 1, 7, 8, 255, 2047)), 100_003]


@pytest.mark.parametrize("start", [0, 1, 8, 63])
def test_every_length_has_the_checksum_that_tables_give(start: int) -> None:
    for length in LENGTHS:
        data = DATA[start : start + length]
        assert crc32c(data) == crc32c(data, portable=True), length
        assert crc32c(data, 0x1234_5678) == crc32c(data, 0x1234_5678, portable=True), length


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 63), st.integers(0, 9000), st.integers(0, 9000), st.booleans())
def test_a_checksum_goes_on_from_another(start: int, first: int, second: int, portable: bool) -> None:
    data = DATA[start : start + first + second]
    whole = crc32c(data, portable=True)
    assert crc32c(data[first:], crc32c(data[:first], portable=portable), portable=not portable) == whole
    assert checksum(data[:first], bytes(data[first:])) == whole
    assert checksum(data[first:], before=crc32c(data[:first])) == whole


def test_anything_with_bytes_in_one_piece_has_a_checksum() -> None:
    data = bytes(range(256)) * 40
    for same in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.float64).reshape(40, -1)):
        assert crc32c(same) == crc32c(data)
    assert crc32c(b"") == 0
    assert crc32c(b"", 77) == 77
    with pytest.raises((ValueError, BufferError)):
        crc32c(DATA[:100:2])
    with pytest.raises(TypeError):
        crc32c("text")  # type: ignore[arg-type]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "data").write_bytes(DATA)
    number = os.open(tmp_path / "data", os.O_RDONLY)
    yield number
    os.close(number)


@pytest.mark.parametrize("size", [0, 1, 4095, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 12_345])
def test_what_is_read_is_checked(file: int, size: int) -> None:
    for offset in (0, 64, 1001):
        out = np.zeros(size, np.uint8)
        assert read_checked(file, offset, out) == crc32c(DATA[offset : offset + size], portable=True)
        assert np.array_equal(out, DATA[offset : offset + size])


def test_other_memory_is_read_into(file: int) -> None:
    out: Any
    for out in (bytearray(800), memoryview(bytearray(800)), np.zeros((10, 10), np.float64)):
        assert read_checked(file, 8, out) == crc32c(DATA[8:808])
        assert bytes(out) == DATA[8:808].tobytes()


@pytest.mark.parametrize("size", [100, PIECE + 100])
def test_a_file_that_ends_before(file: int, size: int) -> None:
    assert read_checked(file, len(DATA) - size, np.zeros(size, np.uint8)) is not None
    assert read_checked(file, len(DATA) - size + 1, np.zeros(size, np.uint8)) is None
    assert read_checked(file, 2 * len(DATA), np.zeros(size, np.uint8)) is None


def test_errors_of_the_system_are_told(tmp_path: Path) -> None:
    out = np.zeros(10, np.uint8)
    closed = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        read_checked(closed, 0, out)
    os.close(closed)
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        read_checked(closed, 0, out)
    assert caught.value.errno == errno.EBADF


def test_places_and_memory_that_cannot_be(file: int) -> None:
    for offset in (-1, 2**63 - 5):
        with pytest.raises(ValueError, match="no such place"):
            read_checked(file, offset, np.zeros(10, np.uint8))
    with pytest.raises((BufferError, ValueError)):
        read_checked(file, 0, b"read only")  # type: ignore[arg-type]
    with pytest.raises((BufferError, ValueError)):
        read_checked(file, 0, np.zeros(10, np.uint8)[::2])


def _pickled(columns: list[Column], buffers: list[Any]) -> bytes:
    import pickle

    return pickle.dumps(columns, 5, buffer_callback=buffers.append)


def _packed(block: Block) -> tuple[Packing, Any]:
    packing, pieces = pack(block, _pickled)
    return packing, np.frombuffer(bytearray(b"".join(pieces)), np.uint8)


@pytest.mark.parametrize(
    ("element", "sizes"),
    [
        (lambda i: {"x": i, "y": np.full((2, 3), i, np.float32)}, 0),
        (lambda i: (np.zeros(0), i, np.zeros((2, 0), np.int8)), 0),
        (lambda i: {"a": i, "text": "é" * i, "b": np.arange(3), "ragged": np.arange(i)}, 4),
        (lambda i: (frozenset([i]), i), 1),
        (lambda i: np.datetime64("2020-01-01") + i, 0),
        (lambda i: (), 0),
    ],
)
def test_columns_come_back_from_their_bytes(element: Any, sizes: int) -> None:
    block, fault = RowBuilder().build([element(i) for i in range(5)])
    assert fault is None
    assert block is not None
    packing, data = _packed(block)
    assert len(data) == packing.nbytes(5)
    assert min(len(packing.sizes), 1) == min(sizes, 1)
    again = Block(block.structure, unpack(packing, 5, data), 5)
    assert_same(list(again.elements()), list(block.elements()))


def test_columns_that_do_not_lie_in_their_bytes_are_refused() -> None:
    block, _ = RowBuilder().build([np.arange(100)] * 10)
    assert block is not None
    packing, data = _packed(block)
    for rows, some, begin in ((11, data, 0), (10, data[:-1], 0), (10, data, 64), (-1, data, 0)):
        with pytest.raises((TypeError, ValueError)):
            unpack(packing, rows, some, begin)


@pytest.mark.parametrize("size", [0, 1, (1 << 19) - 1, 1 << 19, (1 << 20) + 1, (1 << 21) + 8191, PIECE + 5])
@pytest.mark.parametrize("offset", [0, 4099])
def test_two_threads_read_what_one_does(tmp_path: Path, size: int, offset: int) -> None:
    (tmp_path / "file").write_bytes(DATA)
    errands = Errands()
    out = np.zeros(size, np.uint8)
    with (tmp_path / "file").open("rb") as file:
        # Whoever comes late, or not at all.
        for _ in range(20):
            out[:] = 0
            coming = errands.read_checked(file.fileno(), offset, out)
            assert coming.wait() == crc32c(DATA[offset : offset + size])
            assert np.array_equal(out, DATA[offset : offset + size])
            assert coming.wait() == crc32c(DATA[offset : offset + size])
    errands.stop()


def test_two_threads_that_come_to_the_end_of_a_file_tell(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA[: 3 << 20])
    errands = Errands()
    with (tmp_path / "file").open("rb") as file:
        assert errands.read_checked(file.fileno(), 5, np.zeros(3 << 20, np.uint8)).wait() is None
        with pytest.raises(ValueError, match="no such place"):
            errands.read_checked(file.fileno(), -1, np.zeros(8, np.uint8))
    closed = errands.read_checked(file_number_of_nothing(), 0, np.zeros(8, np.uint8))
    with pytest.raises(OSError, match="Bad file descriptor"):
        closed.wait()
    errands.stop()


def test_what_is_not_waited_for_is_let_go_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    errands = Errands()
    with (tmp_path / "file").open("rb") as file:
        for _ in range(50):
            errands.read_checked(file.fileno(), 0, np.zeros(len(DATA), np.uint8))
        last = errands.read_checked(file.fileno(), 0, np.zeros(len(DATA), np.uint8))
        errands.stop()
        assert last.wait() == crc32c(DATA)


def test_a_forked_process_reads_by_itself(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    errands = Errands()
    out = np.zeros(PIECE, np.uint8)
    with (tmp_path / "file").open("rb") as file:
        expected = errands.read_checked(file.fileno(), 0, out).wait()
        child = os.fork()
        if child == 0:
            found = errands.read_checked(file.fileno(), 0, out).wait()
            errands.settle()
            errands.close(file.fileno())
            os._exit(0 if found == expected else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert errands.read_checked(file.fileno(), 0, out).wait() == expected
    errands.stop()


def file_number_of_nothing() -> int:
    """The number of a file that is closed, and that no other will get meanwhile."""
    return 1 << 20
