"""What is read one after another: the next is on its way, as far as there is room, and nobody gets anything else."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from forebay._native import crc32c
from forebay.ledger import Ledger
from forebay.run.stretches import Stretch, Stretches

SIZE = 3 << 20
DATA = np.random.default_rng(1).integers(0, 256, 4 * SIZE, np.uint8)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "file").write_bytes(DATA)
    number = os.open(tmp_path / "file", os.O_RDWR)
    yield number
    os.close(number)


def at(file: int, number: int, nbytes: int = SIZE) -> Stretch:
    return Stretch(None, file, number * SIZE, nbytes)


def of(stretch: Stretch) -> NDArray[np.uint8]:
    return DATA[stretch.offset : stretch.offset + stretch.nbytes]


def is_read(stretches: Stretches, wanted: Stretch, then: Stretch | None) -> bool:
    data, found = stretches.read(wanted, crc32c(of(wanted)), then)
    return found == crc32c(of(wanted)) and np.array_equal(data, of(wanted))


def test_the_next_is_held_while_it_is_on_its_way(file: int) -> None:
    ledger = Ledger(1 << 30)
    stretches = Stretches(ledger.lease("reader"))
    for number in range(4):
        then = at(file, number + 1) if number < 3 else None
        assert is_read(stretches, at(file, number), then)
        assert ledger.held == (SIZE if then else 0)
    stretches.stop()


@pytest.mark.parametrize(("budget", "nbytes"), [(SIZE - 1, SIZE), (1 << 30, (1 << 20) - 1)])
def test_nothing_is_begun_where_there_is_no_room_or_no_use(file: int, budget: int, nbytes: int) -> None:
    ledger = Ledger(budget)
    stretches = Stretches(ledger.lease("reader"))
    for number in range(3):
        assert is_read(stretches, at(file, number, nbytes), at(file, number + 1, nbytes))
        assert ledger.held == 0
    stretches.stop()


def test_something_else_may_be_asked_for(file: int) -> None:
    ledger = Ledger(1 << 30)
    stretches = Stretches(ledger.lease("reader"))
    for number in (0, 2, 1, 1, 3):
        assert is_read(stretches, at(file, number), at(file, 0, SIZE - 1))
    stretches.stop()
    assert ledger.held == 0
    assert is_read(stretches, at(file, 1), None)


def test_what_was_written_after_it_was_begun_with_is_found(file: int) -> None:
    stretches = Stretches(Ledger(1 << 30).lease("reader"))
    os.pwrite(file, bytes(SIZE), SIZE)
    assert is_read(stretches, at(file, 0), at(file, 1))
    os.pwrite(file, DATA[SIZE : 2 * SIZE], SIZE)
    assert is_read(stretches, at(file, 1), None)
    stretches.stop()


def test_a_forked_process_reads_what_the_other_had_begun_with(file: int) -> None:
    for _ in range(10):
        stretches = Stretches(Ledger(1 << 30).lease("reader"))
        assert is_read(stretches, at(file, 0), at(file, 1))
        child = os.fork()
        if child == 0:
            os._exit(0 if is_read(stretches, at(file, 1), at(file, 2)) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert is_read(stretches, at(file, 1), None)
        stretches.stop()


def test_a_file_that_is_too_short_has_no_checksum(file: int) -> None:
    stretches = Stretches(Ledger(1 << 30).lease("reader"))
    os.ftruncate(file, SIZE + 5)
    assert is_read(stretches, at(file, 0), at(file, 1))
    assert stretches.read(at(file, 1), crc32c(of(at(file, 1))))[1] is None
    stretches.stop()
