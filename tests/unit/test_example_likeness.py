"""Examples like earlier ones are parsed by what they have in common: with the same result, or the same fault."""

import random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._native import Parser
from forebay.io import serialize_example
from forebay.io.request import Request
from unit.test_example import CRAFTED, FEATURES, made_up

KEYS = Request(FEATURES).wanted()
COMPARING, PLAIN = Parser(KEYS, False), Parser(KEYS, False, compares=False)


def listed(value: Any) -> Any:
    """What a parser gives, as something that can be compared bit by bit."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    return [listed(each) for each in value] if isinstance(value, (list, tuple)) else value


def assert_alike(records: list[bytes]) -> Any:
    """Both parsers make the same of these, wherever they lie."""
    found = PLAIN.parse_list(records)
    assert listed(COMPARING.parse_list(records)) == listed(found)
    data = np.frombuffer(b"".join(records), np.uint8)
    stops = np.cumsum([len(record) for record in records])
    starts = stops - [len(record) for record in records]
    assert listed(COMPARING.parse_column(data, starts, stops)) == listed(found)
    return found


def element(chance: random.Random, size: int) -> dict[str, Any]:
    """Of a form that depends on `size` alone, but for the numbers of bytes that int64s take."""
    return {
        "i": chance.choice([0, 5, 300, -1, 1 << 40]),
        "f": [chance.random(), chance.random()],
        "s": chance.randbytes(size),
        "s2": [chance.randbytes(3), b"x" * size],
        "v": [chance.randrange(200) for _ in range(size)],
        "vf": [chance.random()] * size,
        "vs": [b"ab"] * size,
        "q": [0.25] * 2 * size,
        "r": [chance.randrange(1 << 20) for _ in range(2)],
        "not asked for": chance.randbytes(4),
    }


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.lists(st.integers(0, 3), min_size=8, max_size=30))
def test_records_of_a_few_forms(chance: random.Random, sizes: list[int]) -> None:
    records = [serialize_example(element(chance, size)) for size in sizes]
    assert assert_alike(records)[1] == (0, 0, -1, 0)


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 3), st.integers(1, 4))
def test_records_that_are_nearly_like_others(chance: random.Random, size: int, changes: int) -> None:
    records = [serialize_example(element(chance, size)) for _ in range(12)]
    damaged = bytearray(chance.choice(records))
    for _ in range(changes):
        damaged[chance.randrange(len(damaged))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
    assert_alike([*records, bytes(damaged), *records])


def test_records_that_are_odd() -> None:
    good = CRAFTED["plain"]
    for record in CRAFTED.values():
        assert_alike([record] * 12)
        assert_alike([good, record] * 6)


def test_records_that_have_little_in_common() -> None:
    chance = random.Random(3)
    for _ in range(30):
        assert_alike([made_up(chance) for _ in range(100)])
