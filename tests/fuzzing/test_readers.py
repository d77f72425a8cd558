"""A moment of hostile files, the same every time; ``make fuzz`` goes on from there."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from fuzzing.readers import READERS, mutated, one_input, seeds

ROUNDS = 150


@cache
def good() -> dict[str, bytes]:
    return seeds()


@pytest.mark.parametrize("reader", READERS)
def test_rows_or_an_error_of_our_own(reader: str, tmp_path: Path) -> None:
    assert one_input(reader, good()[reader], str(tmp_path))
    chance = random.Random(reader)
    outcomes = [one_input(reader, mutated(good()[reader], chance), str(tmp_path)) for _ in range(ROUNDS)]
    assert not all(outcomes) or "skip" in reader or reader == "example"
