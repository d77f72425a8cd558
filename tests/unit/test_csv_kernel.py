"""The kernel that parses CSV: records that are plain, which it reads many at a time, and others among them."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay._native import CsvParser

INT32, INT64, FLOAT, DOUBLE, BYTES = range(5)
TYPES = (INT64, FLOAT, DOUBLE, INT32, BYTES)
FEW_FIELDS, MANY_FIELDS, MISSING, NO_NUMBER = 4, 5, 6, 7

few = settings(max_examples=150, deadline=None)


def parser(types: tuple[int, ...] = TYPES, selected: tuple[int, ...] = (), missing: bytes = b"NA") -> CsvParser:
    defaults = {INT32: -3, INT64: -4, FLOAT: -0.5, DOUBLE: -1.5, BYTES: b"none"}
    return CsvParser([(kind, False, defaults[kind]) for kind in types], list(selected), ord(","), True, missing)


def parsed(
    made: CsvParser, data: bytes, last: bool = True, most: int = 1 << 20
) -> tuple[list[list[Any]], tuple[int, ...]]:
    """The values of each column, and how it ended."""
    # In memory of just this size, behind bytes that would be noticed.
    columns, end = made.parse(np.frombuffer(data, np.uint8).copy(), last, most)
    found = []
    for column in columns:
        if isinstance(column, tuple):
            text, offsets = column[0].tobytes(), column[1].tolist()
            assert offsets[0] == 0
            assert offsets[-1] == len(text)
            found.append([text[a:b] for a, b in pairwise(offsets)])
        else:
            found.append(column.tolist())
    return found, end


def single(text: str) -> float:
    """The float32 that is nearest to a decimal."""
    exact, near = Fraction(text), np.float32(float(text))
    if not np.isfinite(near):
        return float(near)
    around = [np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf)]
    finite = [each for each in (near, *around) if np.isfinite(each)]
    even = {each: int(np.float32(each).view(np.uint32)) & 1 for each in finite}
    best = min(finite, key=lambda each: (abs(Fraction(float(each)) - exact), even[each]))
    return float(np.copysign(best, -1.0 if text.startswith("-") else 1.0))


def value(kind: int, text: str) -> Any:
    default = {INT32: -3, INT64: -4, FLOAT: -0.5, DOUBLE: -1.5, BYTES: b"none"}[kind]
    if text in ("", "NA"):
        return default
    if kind == BYTES:
        return text.encode()
    return int(text) if kind in (INT32, INT64) else single(text) if kind == FLOAT else float(text)


def same(kind: int, found: Any, text: str) -> bool:
    expected = value(kind, text)
    return bool(found == expected) and (kind not in (FLOAT, DOUBLE) or np.signbit(found) == np.signbit(expected))


whole = st.from_regex(r"[-+]?[0-9]{1,9}", fullmatch=True)
long_whole = st.from_regex(r"[-+]?0{0,20}[0-9]{1,18}", fullmatch=True)
# float32 ends at 3e38.
decimal = st.from_regex(r"[-+]?([0-9]{1,20}(\.[0-9]{0,22})?|\.[0-9]{1,22})(e[-+]?[0-9])?", fullmatch=True)
text = st.text("abc 1.-", max_size=40) | st.text('ab",\r\n', max_size=8)
missing = st.sampled_from(["", "NA"])
record = st.tuples(long_whole | missing, decimal | missing, decimal | missing, whole | missing, text)


def written(field: str, quoted: bool) -> str:
    return '"' + field.replace('"', '""') + '"' if quoted or set(field) & set('",\r\n') else field


@few
@given(
    rows=st.lists(record, min_size=1, max_size=40),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=3),
    columns=st.sets(st.integers(0, 4), max_size=2),
    others=st.sets(st.integers(0, 200), max_size=3),
    closed=st.booleans(),
)
def test_every_field_is_what_python_reads(
    rows: list[Any], ends: list[str], columns: set[int], others: set[int], closed: bool
) -> None:
    data = ""
    for i, row in enumerate(rows):
        data += ",".join(written(each, j in columns or i * len(row) + j in others) for j, each in enumerate(row))
        data += ends[i * len(ends) // len(rows)]
    if not closed:
        data = data.removesuffix("\n").removesuffix("\r")
    found, end = parsed(parser(), data.encode())
    assert end[:2] == (len(rows), len(data))
    for kind, column, texts in zip(TYPES, found, zip(*rows)):
        assert all(same(kind, each, field) for each, field in zip(column, texts, strict=True)), (column, texts)


@few
@given(st.lists(decimal, min_size=30, max_size=60))
def test_decimals_are_rounded_to_the_nearest(texts: list[str]) -> None:
    data = "".join(f"{each},{each}\n" for each in texts)
    (singles, doubles), _ = parsed(parser((FLOAT, DOUBLE)), data.encode())
    for each, small, large in zip(texts, singles, doubles, strict=True):
        assert same(FLOAT, small, each), each
        assert same(DOUBLE, large, each), each


def test_decimals_next_to_the_middle_of_two_numbers() -> None:
    chance, texts = random.Random(1), []
    for bits, most in ((53, 19), (24, 19)):
        for _ in range(2000):
            # A number with one bit too many, written with up to 19 digits, and its neighbours.
            odd = chance.getrandbits(bits) | 1 << bits | 1
            places = chance.randrange(11)
            scaled = Fraction(odd, 2 ** chance.randrange(12)) * 10**places
            for digits in (int(scaled) - 1, int(scaled), int(scaled) + 1):
                written = str(digits).zfill(places + 1)
                if len(written) <= most:
                    texts.append(f"{written[: len(written) - places]}.{written[len(written) - places :]}")
    assert len(texts) > 6000
    (singles, doubles), _ = parsed(parser((FLOAT, DOUBLE)), "".join(f"{each},{each}\n" for each in texts).encode())
    assert [each for each, found in zip(texts, doubles, strict=True) if found != float(each)] == []
    assert [each for each, found in zip(texts, singles, strict=True) if found != single(each)] == []


NUMBERS = [
    "0",
    "-0",
    "00012",
    "1.",
    ".5",
    "-.5",
    "+7.25",
    "0.1",
    "1e5",
    "1e-7",
    "inf",
    "-inf",
    " 12 ",
    "0x10",
    "99999999999999999999",
]
NO_NUMBERS = [
    "-",
    "+",
    ".",
    "1.2.3",
    "1,",
    "--1",
    "1-",
    "1a",
    "a1",
    "+-1",
    "1 2",
    "/",
    ":",
    "1/2",
    "0:1",
    "é",
    "1.2é",
    "e5",
]


@pytest.mark.parametrize("kind", [INT32, INT64, FLOAT, DOUBLE])
@pytest.mark.parametrize("written", [*NUMBERS, *NO_NUMBERS])
def test_numbers_among_others_are_as_they_are_alone(kind: int, written: str) -> None:
    one = parser((kind, BYTES))
    alone, alone_end = parsed(one, f"{written},x\n".encode())
    before, behind = "12345,a name of some length\n" * 5, "7,y\n" * 3
    found, end = parsed(one, f"{before}{written},x\n{behind}".encode())
    if alone_end[0]:
        assert found[0] == [12345] * 5 + alone[0] + [7] * 3
        assert found[1] == [b"a name of some length"] * 5 + [b"x"] + [b"y"] * 3
    else:
        assert found == [[12345] * 5, [b"a name of some length"] * 5]
        moved = len(before.encode())
        assert end == (5, moved, *alone_end[2:5], *(place + moved for place in alone_end[5:]))
        assert end[3] == (MANY_FIELDS if "," in written else NO_NUMBER)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("length", [*range(70), *range(4060, 4130, 7), 20_000])
def test_fields_of_any_length(end: str, length: int) -> None:
    rows = [("x" * length, str(i)) for i in range(5)]
    data = "".join(f"{name},{number}{end}" for name, number in rows)
    for written in (data, data[: -len(end)]):
        found, _ = parsed(parser((BYTES, INT64)), written.encode())
        assert found == [[value(BYTES, name) for name, _ in rows], list(range(5))]


@pytest.mark.parametrize("digits", range(1, 24))
def test_numbers_of_any_length(digits: int) -> None:
    chance = random.Random(digits)
    texts = ["".join(chance.choices("0123456789", k=digits)) for _ in range(50)]
    wholes = [each for each in texts if int(each) < 2**63] or ["0"]
    assert parsed(parser((INT64,)), ("\n".join(wholes) + "\n").encode())[0] == [[int(each) for each in wholes]]
    points = [f"-{each[:at]}.{each[at:]}" for each in texts for at in range(digits + 1)]
    assert parsed(parser((DOUBLE,)), ("\n".join(points) + "\n").encode())[0] == [[float(each) for each in points]]


def test_limits_of_int32() -> None:
    rows = ["2147483647", "-2147483648"] * 20
    found, end = parsed(parser((INT32,)), "\n".join([*rows, "2147483648", "1\n"]).encode())
    assert found == [[2**31 - 1, -(2**31)] * 20]
    assert end[3] == NO_NUMBER


def test_quotes_far_behind() -> None:
    plain = [f"{i},{i / 8},name {i}\n" for i in range(1000)]
    plain[700] = '700,87.5,"name, with ""quotes""\nand\r\nlines"\n'
    plain[701] = '"701","87.625",name 701\n'
    found, end = parsed(parser((INT64, DOUBLE, BYTES)), "".join(plain).encode())
    assert end[0] == 1000
    assert found[0] == list(range(1000))
    assert found[1] == [i / 8 for i in range(1000)]
    assert found[2][699:702] == [b"name 699", b'name, with "quotes"\nand\r\nlines', b"name 701"]


@pytest.mark.parametrize("length", [*range(0, 300, 13), 4000, 10_000])
def test_long_text_in_quotes(length: int) -> None:
    names = [("some, text\r\n" * (length // 12 + 1))[:length], "plain", '"' * (length % 50), "a,b"] * 20
    rows = [f"{i},{written(name, False)},{i}.25\n" for i, name in enumerate(names)]
    found, end = parsed(parser((INT64, BYTES, DOUBLE)), "".join(rows).encode())
    assert end[0] == 80
    assert found == [list(range(80)), [value(BYTES, name) for name in names], [i + 0.25 for i in range(80)]]


def test_quotes_around_all_fields_of_a_column() -> None:
    names = [f"name {i}" for i in range(600)]
    names[100], names[200], names[300], names[400] = "", "a, b", 'a "b"', "a\nb"
    rows = [f'{i},{written(name, True)},"{i}.5"\n' for i, name in enumerate(names)]
    rows[500], rows[501] = "500,name 500,500.5\n", '"501","name 501",501.5\n'
    found, end = parsed(parser((INT64, BYTES, DOUBLE)), "".join(rows).encode())
    assert (end[0], found[0]) == (600, list(range(600)))
    assert found[1] == [value(BYTES, name) for name in names]
    assert found[2] == [i + 0.5 for i in range(600)]
    for bad in ('600,"a"b,1\n', '600,a"b",1\n', '600,"a"",1\n', '600,""a",1\n', '600, "a",1\n'):
        some, end = parsed(parser((INT64, BYTES, DOUBLE)), "".join([*rows, bad, rows[0]]).encode())
        _, alone = parsed(parser((INT64, BYTES, DOUBLE)), (bad + rows[0]).encode())
        assert (end[0], end[3], end[4], some) == (600, alone[3], alone[4], found)
        assert alone[3] != 0


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("1,2\n", FEW_FIELDS),
        ("1,2,x,4\n", MANY_FIELDS),
        ("\n", FEW_FIELDS),
        ("1,b,x\n", NO_NUMBER),
        ("1,2\r", FEW_FIELDS),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 5, 299])
def test_a_record_at_fault_ends_it_and_leaves_nothing(bad: str, fault: int, at: int) -> None:
    rows = [f"{i},{i}.5,name {i}\n" for i in range(300)]
    rows[at] = bad
    data = "".join(rows).encode()
    found, end = parsed(parser((INT64, DOUBLE, BYTES)), data)
    start = len("".join(rows[:at]))
    assert (end[0], end[1], end[3]) == (at, start, fault)
    assert end[7] == start + len(bad)
    assert found == [list(range(at)), [i + 0.5 for i in range(at)], [f"name {i}".encode() for i in range(at)]]
    found, end = parsed(parser((INT64, DOUBLE, BYTES)), data[end[7] :])
    assert (end[0], found[0]) == (299 - at, list(range(at + 1, 300)))


def test_fields_that_are_empty_and_required() -> None:
    made = CsvParser([(INT64, True, None), (BYTES, True, None)], [], ord(","), True, b"NA")
    for bad in (",x\n", "NA,x\n", "7,\n", "7,NA\n"):
        found, end = parsed(made, ("1,a\n" * 50 + bad + "1,a\n").encode())
        assert (found, end[3]) == ([[1] * 50, [b"a"] * 50], MISSING)


def test_some_of_the_fields() -> None:
    rows = [f"{i},skipped,{i}.25,x{i},{'y' * (i % 7)}" for i in range(500)]
    rows[77] += ",one more"
    rows[78] = "78,,78.25,x78"
    rows[90] = '90,"a, b",90.25,"x90",'
    found, end = parsed(parser((DOUBLE, BYTES), (2, 3)), "\n".join(rows).encode())
    assert end[0] == 500
    assert found == [[i + 0.25 for i in range(500)], [f"x{i}".encode() for i in range(500)]]
    rows[300] = "300,x,1.5"
    assert parsed(parser((DOUBLE, BYTES), (2, 3)), "\n".join(rows).encode())[1][:5:3] == (300, FEW_FIELDS)


def test_records_of_more_fields_than_are_looked_at_at_once() -> None:
    width = 9000
    data = "".join(",".join(str(i + j) for j in range(width)) + "\n" for i in range(3)).encode()
    found, end = parsed(parser((INT64,) * width), data)
    assert (end[0], end[1]) == (3, len(data))
    assert found == [[j, j + 1, j + 2] for j in range(width)]
    assert parsed(parser((INT64,), (width - 1,)), data)[0] == [[width - 1, width, width + 1]]


@few
@given(
    data=st.text('12.5,,,\n\n\r"-', max_size=300).map(str.encode),
    cuts=st.lists(st.integers(0, 300), min_size=1, max_size=5),
    most=st.integers(1, 20),
)
def test_nothing_depends_on_what_is_read_at_once(data: bytes, cuts: list[int], most: int) -> None:
    made = parser((BYTES, DOUBLE), (0, 1), b"")
    (texts, numbers), end = parsed(made, data)
    for cut in cuts:
        part = data[:cut]
        some, so_far = parsed(made, part, last=False, most=most)
        assert so_far[0] <= min(end[0], most)
        assert some == [texts[: so_far[0]], numbers[: so_far[0]]]
    # One after another, each of them first in its data.
    at = 0
    for text_found, number in zip(texts, numbers):
        some, one = parsed(made, data[at:], most=1)
        assert some == [[text_found], [number]]
        at += one[1]
    assert at == end[1]


def test_a_delimiter_is_neither_a_line_end_nor_a_quote() -> None:
    for wrong in '\n\r"':
        with pytest.raises(ValueError, match=re.escape("a delimiter is no line end and no quote")):
            CsvParser([(INT64, True, None)], [], ord(wrong), True, b"")


@pytest.mark.parametrize("delimiter", ["\t", ";", "\0", " ", "1", "\x7f"])
def test_other_delimiters(delimiter: str) -> None:
    made = CsvParser([(BYTES, False, b""), (BYTES, False, b"")], [], ord(delimiter), False, b"")
    rows = [(f"a{'b' * (i % 90)}", f'"c{"d" * (i % 50)}') for i in range(300)]
    found, _ = parsed(made, "".join(delimiter.join(row) + "\n" for row in rows).encode())
    assert found == [[a.encode() for a, _ in rows], [b.encode() for _, b in rows]]
