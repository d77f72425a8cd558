"""Values of the standard library and of NumPy that functions refer to: keys of cached plans in which they count."""

import array
import codecs
import collections
import csv
import ctypes
import datetime
import decimal
import enum
import fractions
import functools
import hashlib
import hmac
import io
import itertools
import json
import operator
import os
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import types
import unicodedata
import zoneinfo
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.plan.fingerprint import digest
from forebay.plan.identity import content_key, contents_of_plan

# Closed where they are no longer wanted, as warnings are errors.
OPEN: list[Any] = []
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]


class Choice(enum.Enum):
    A = "a"
    B = "b"


class Flags(enum.Flag):
    A = 1
    B = 2
    C = 4


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]


class Either(ctypes.Union):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]


class Header(struct.Struct):
    """Of a class of the user's own."""


class Shown:
    def __init__(self, k: int) -> None:
        self.k = k

    def __repr__(self) -> str:
        return "the same"


class Number(np.float64):
    def __repr__(self) -> str:
        return "the same"


def row(kind: Any, place: int, value: Any) -> Any:
    made = np.zeros(1, [("a", *kind)])
    made["a"][0, place] = value
    return made[0]


def same_byte() -> tuple[Any, Any]:
    """Two states with the same digest, and not of the same bytes."""
    seen: dict[bytes, Any] = {}
    for number in itertools.count():
        state = hashlib.blake2b(b"%d" % number, digest_size=1)
        other = seen.setdefault(state.digest(), state)
        if other is not state:
            return other, state
    raise AssertionError


def kept_open(*arguments: Any, **more: Any) -> Any:
    file = open(*arguments, **more)  # noqa: SIM115 - closed below
    OPEN.append(file)
    return file


def at(place: int, file: Any) -> Any:
    file.seek(place)
    return file


def checked(function: Any, k: int) -> Any:
    function.errcheck = adding(k)
    return function


def adding(k: int) -> Callable[..., Any]:
    return lambda *_: k


def hashed(make: Callable[[], Any], k: int) -> Any:
    state = make()
    state.update(b"x" * k)
    return state


# Each makes a value of a number, of 1 and 2 different ones.
MAKING: dict[str, Callable[[int], Any]] = {
    "a struct": lambda k: struct.Struct("<iq"[: k + 1]),
    "a struct's method": lambda k: struct.Struct("<iq"[: k + 1]).unpack_from,
    "a struct of another class": lambda k: Header("<iq"[: k + 1]),
    "a pattern": lambda k: re.compile("a" * k),
    "a pattern's flags": lambda k: re.compile("a", re.IGNORECASE if k == 1 else 0),
    "a pattern's method": lambda k: re.compile("a" * k).search,
    "a match": lambda k: re.match("a*", "a" * k),
    "an itemgetter": lambda k: operator.itemgetter(k, "a"),
    "an attrgetter": lambda k: operator.attrgetter("a" * k),
    "a methodcaller": lambda k: operator.methodcaller("a", k),
    "a partial": lambda k: functools.partial(pow, k, mod=3),
    "a remembering function": lambda k: functools.lru_cache(adding(k)),
    "a key of comparisons": lambda k: functools.cmp_to_key(adding(k)),
    "a decimal": lambda k: decimal.Decimal(k),
    "a precision": lambda k: decimal.Context(prec=10 + k),
    "traps": lambda k: decimal.Context(traps=[decimal.Inexact] if k == 1 else []),
    "a fraction": lambda k: fractions.Fraction(k, 3),
    "a complex number": lambda k: complex(k, 1),
    "the sign of a zero": lambda k: (0.0, -0.0)[k - 1],
    "an offset": lambda k: datetime.timezone(datetime.timedelta(hours=k)),
    "a time": lambda k: datetime.datetime(2000, 1, k, tzinfo=datetime.UTC),
    "a zone": lambda k: zoneinfo.ZoneInfo(("Europe/Paris", "UTC")[k - 1]),
    "a path": lambda k: pathlib.Path("a" * k),
    "a mapping that cannot be written to": lambda k: types.MappingProxyType(dict.fromkeys(WORDS, k)),
    "a namespace": lambda k: types.SimpleNamespace(a=k),
    "a member": lambda k: list(Choice)[k - 1],
    "flags": lambda k: (Flags.A | Flags.C, Flags.A | Flags.B)[k - 1],
    "a dict": lambda k: dict.fromkeys(WORDS, k),
    "a dict's order": lambda k: dict.fromkeys(WORDS[:: 3 - 2 * k]),
    "an ordered dict": lambda k: collections.OrderedDict.fromkeys(WORDS[:: 3 - 2 * k]),
    "a defaultdict": lambda k: collections.defaultdict(list, {"a": [k]}),
    "a deque": lambda k: collections.deque(WORDS, maxlen=9 + k),
    "a counter": lambda k: collections.Counter(WORDS * k),
    "a chain of dicts": lambda k: collections.ChainMap({"a": k}, {"b": 1}),
    "a set": lambda k: set(WORDS[k:]),
    "a frozenset": lambda k: frozenset(WORDS[k:]),
    "sets in a set": lambda k: {frozenset(WORDS[k:]), frozenset(WORDS[:2])},
    "sets in a dict": lambda k: {word: {*WORDS[k:]} for word in WORDS},
    "a set among constants": lambda k: eval(f"lambda x: x in {{'alpha', 'beta', 'gamma', {k}}}"),
    "keys": lambda k: dict.fromkeys(WORDS[k:]).keys(),
    "a range": lambda k: range(k),
    "a slice": lambda k: slice(k, None),
    "bytes": lambda k: bytes(k),
    "a bytearray": lambda k: bytearray(k),
    "a view of bytes": lambda k: memoryview(bytes(k)),
    "a view's order": lambda k: memoryview(np.zeros((2, 3), order="CF"[k - 1])),
    "an array of numbers": lambda k: array.array("i", [k]),
    "an array's type": lambda k: array.array("iI"[k - 1], [1]),
    "an iterator": lambda k: itertools.islice([1, 2, 3], k),
    "a dialect": lambda k: csv.get_dialect(("excel", "unix")[k - 1]),
    "a database of letters": lambda k: (unicodedata.ucd_3_2_0, adding(k))[k - 1],
    "a text in a stream": lambda k: io.TextIOWrapper(io.BytesIO(b"a" * k)),
    "an encoding": lambda k: io.TextIOWrapper(io.BytesIO(b"a"), ("utf-8", "latin-1")[k - 1]),
    "an encoding's errors": lambda k: io.TextIOWrapper(io.BytesIO(b"a"), errors=("strict", "ignore")[k - 1]),
    "line ends of a stream": lambda k: io.TextIOWrapper(io.BytesIO(b"a"), newline=("", None)[k - 1]),
    "one line end": lambda k: io.TextIOWrapper(io.BytesIO(b"a"), newline=("\n", "\r")[k - 1]),
    "a place in a stream": lambda k: at(k, io.BufferedReader(io.BytesIO(b"abc"))),
    "a file's encoding": lambda k: kept_open(__file__, encoding=("utf-8", "latin-1")[k - 1]),
    "a file's line ends": lambda k: kept_open(__file__, newline=("", None)[k - 1]),
    "a place in a file": lambda k: at(k, kept_open(__file__)),
    "a decoding reader": lambda k: codecs.getreader(("utf-8", "latin-1")[k - 1])(io.BytesIO(b"a")),
    "a descriptor": lambda k: (types.FunctionType.__code__, types.FunctionType.__globals__)[k - 1],
    "a bound method": lambda k: {"a": k}.get,
    "an operation's method": lambda k: (1 + k).__add__,
    **{
        f"a state of {name}": functools.partial(hashed, make)
        for name, make in (
            *(("sha256", hashlib.sha256), ("blake2b", hashlib.blake2b), ("sha3", hashlib.sha3_256)),
            *(("md5", hashlib.md5), ("two bytes", lambda: hashlib.blake2b(digest_size=2))),
            *(("shake", hashlib.shake_128), ("hmac", lambda: hmac.new(b"key", digestmod="sha256"))),
        )
    },
    "a state of a hash with the same digest": lambda k: same_byte()[k - 1],
    "a row of fields": lambda k: np.array([(k,)], [("a", "i4")])[0],
    "a long row of fields": lambda k: row(("f8", (3000,)), 1500, k),
    "digits in a row of fields": lambda k: row(("f8", (3,)), 1, 0.1234567890 + k * 1e-12),
    "an object in a row of fields": lambda k: row((object, (1,)), 0, Shown(k)),
    "bytes without fields": lambda k: np.void(b"a" * k),
    "a number of another class": lambda k: Number(k),
    "an integer of many digits": lambda k: 10**5000 + k,
    "integers of many digits": lambda k: (-(10**5000), [10**5000])[k - 1],
    "a dtype": lambda k: np.dtype(("<i4", ">i4")[k - 1]),
    "a dtype's fields": lambda k: np.dtype([("a", "i4"), ("b" * k, "f8")]),
    "a dtype's alignment": lambda k: np.dtype([("a", "i1"), ("b", "f8")], align=k == 1),
    "a dtype's notes": lambda k: np.dtype("i4", metadata={"a": k}),
    "notes in a field": lambda k: np.dtype([("a", np.dtype(("i4", 2))), ("b", np.dtype("i4", metadata={"a": k}))]),
    "notes of an array": lambda k: np.zeros(3, np.dtype("i4", metadata={"a": k})),
    "a universal function": lambda k: (np.add, np.multiply)[k - 1],
    "its method": lambda k: (np.add.reduce, np.multiply.reduce)[k - 1],
    "a vectorised function": lambda k: np.vectorize(adding(k)),
    "a seed": lambda k: np.random.SeedSequence(k),
    "a day": lambda k: np.datetime64(k, "D"),
    "days off": lambda k: np.busdaycalendar(holidays=[f"2020-01-0{k}"]),
    "a number in C": lambda k: ctypes.c_int(k),
    "a structure": lambda k: Pair(k, 2.0),
    "a union": lambda k: Either(k),
    "their classes": lambda k: (Pair, Either)[k - 1],
    "an array in C": lambda k: (ctypes.c_int * 3)(k, 2, 3),
    "a buffer": lambda k: ctypes.create_string_buffer(b"a" * k, 5),
    "a text in C": lambda k: ctypes.c_char_p(b"a" * k),
    "a function in C": lambda k: getattr(ctypes.CDLL(None), ("abs", "labs")[k - 1]),
    "a function in C with a check": lambda k: checked(ctypes.CDLL(None).abs, k),
}


@pytest.fixture(scope="module", autouse=True)
def files_are_closed() -> Iterator[None]:
    yield
    for file in OPEN:
        file.close()


def key(value: Any) -> str:
    """That of a plan whose function refers to the value."""
    plan = fb.Dataset.range(3).map(lambda x: value and x).plan
    return content_key(contents_of_plan(plan), [])


def in_fresh_process(code: str, *arguments: str, seed: str) -> Any:
    """What it prints last; texts are in another order in sets of processes with other seeds."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("what", MAKING)
def test_other_values_make_other_keys(what: str) -> None:
    make = MAKING[what]
    assert key(make(1)) == key(make(1)) != key(make(2))


def test_the_same_values_make_the_same_keys_in_every_process() -> None:
    code = (
        "import json; from unit.test_fingerprint_standard import MAKING, key\n"
        "print(json.dumps({what: [key(make(1)), key(make(2))] for what, make in MAKING.items()}))"
    )
    one, other = (in_fresh_process(code, seed=seed) for seed in ("1", "2"))
    assert one == other
    assert one.keys() == MAKING.keys()


def test_a_cache_is_used_by_the_next_run_of_a_function_that_refers_to_a_struct(tmp_path: Path) -> None:
    code = (
        "import json, struct, sys; import forebay as fb\n"
        "layout = struct.Struct(sys.argv[2])\n"
        "def read(i):\n"
        "    return layout.unpack(bytes(layout.size))[0] + i\n"
        "print(json.dumps([int(x) for x in fb.Dataset.range(2).map(read).cache(sys.argv[1])]))"
    )
    assert in_fresh_process(code, str(tmp_path / "kept"), "<i", seed="1") == [0, 1]
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "kept").iterdir()}
    assert in_fresh_process(code, str(tmp_path / "kept"), "<i", seed="2") == [0, 1]
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "kept").iterdir()} == kept
    assert in_fresh_process(code, str(tmp_path / "kept"), "<q", seed="2") == [0, 1]
    assert {path.name for path in (tmp_path / "kept").iterdir()} != set(kept)


def test_a_file_is_known_by_its_name_only_if_that_is_what_is_read(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with tarfile.open(tmp_path / name, "w") as archive:
            archive.addfile(tarfile.TarInfo("a.txt"))
    with tarfile.open(tmp_path / "a") as archive, pytest.warns(UserWarning, match="ExFileObject"):
        key(archive.extractfile("a.txt"))
    with open(tmp_path / "a", "rb") as file:
        assert key(file) == key(file)
        os.replace(tmp_path / "b", tmp_path / "a")
        with pytest.warns(UserWarning, match="BufferedReader"):
            key(file)


def test_files_that_nothing_is_read_from_count_by_name(tmp_path: Path) -> None:
    with open(tmp_path / "a", "w") as file:
        before = key(file)
        file.write("a")
        file.flush()
        assert key(file) == before
    assert key(file) == key(file)


def test_functions_that_prototypes_find_cannot_be_known() -> None:
    found = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(("abs", ctypes.CDLL(None)))
    with pytest.warns(UserWarning, match="CFunctionType"):
        key(found)


def test_a_file_that_was_opened_by_its_number_cannot_be_known(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    with open(os.open(tmp_path / "a", os.O_RDONLY), "rb") as file, pytest.warns(UserWarning, match="BufferedReader"):
        key(file)


@pytest.mark.parametrize(
    "make", [np.asfortranarray, lambda a: a[:, ::-1][:, ::-1].T.copy().T, lambda a: a.repeat(2, 0)[::2]]
)
def test_how_a_captured_array_lies_counts(make: Callable[[Any], Any]) -> None:
    plain = np.arange(6.0).reshape(2, 3)
    other = make(plain)
    assert (plain == other).all()
    assert key(plain) == key(plain.copy()) != key(other) == key(make(plain))
    # As large ones do, which are hashed where they lie.
    plain = np.arange(60_000.0).reshape(200, 300)
    assert key(plain) == key(plain.copy()) != key(make(plain))


def test_what_lies_as_usual_has_the_key_that_it_always_had() -> None:
    # Another one here, and all that is kept on disk of such functions would be made anew.
    assert digest(np.arange(6, dtype="<i4").reshape(2, 3), contents=True) == "4130dd9a3f28f29d"
    assert digest(np.zeros((300, 300), "<f8"), contents=True) == "3dd072e71daaa8b4"


def test_where_an_axis_of_one_entry_would_go_on_does_not_count() -> None:
    columns = np.zeros((2, 1, 3), order="F")
    other = np.lib.stride_tricks.as_strided(columns, strides=(8, 999 * 8, 16))
    assert not columns.flags.c_contiguous
    assert key(columns) == key(other)


def test_how_a_sliced_array_lies_does_not_count_since_functions_get_copies() -> None:
    plain = np.arange(24.0).reshape(4, 2, 3)
    seen = []
    for data in (plain, np.asfortranarray(plain)):
        dataset = fb.Dataset.from_tensor_slices(data)
        list(dataset.map(lambda row: seen.append(row.strides) or row))
        list(dataset.map(lambda rows: seen.append(rows.strides[1:]) or rows, batched=True))
        seen.append(content_key(contents_of_plan(dataset.plan), []))
    assert len(set(seen)) == 2
