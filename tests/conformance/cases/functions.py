"""Operators that call the user's function: map, filter, take_while, flat_map."""

from __future__ import annotations

import numpy as np

from conformance.case import Case
from conformance.cases.common import Dataset, batches, i64, range_, rows, scalars, slices
from conformance.data import ARRAYS, STRINGS, Frozen, Point, Sample


def _add_in_place(row):
    row += 1
    return row


def _add_in_place_columns(column):
    column += 1
    return column


_BUFFER = np.zeros(3, np.int64)


def _into_one_buffer(i):
    # A decoder that reuses its output: each element is what the buffer held when it was returned.
    _BUFFER[:] = i
    return _BUFFER


def _pairs():
    return slices((ARRAYS["small"], ARRAYS["float32"]))


def _dicts():
    return slices({"a": ARRAYS["small"], "b": ARRAYS["matrix"]})


def _ragged():
    return range_(8).map(lambda i: np.arange(i * 5 % 4))


def _few(i):
    # As a tokenizer gives for lines of which some are blank, the first one too.
    return [1] * (i * 5 % 4)


def _countdown(n):
    return range_(n, 0, -1)


def _countdowns(ns):
    return [j for n in ns for j in range(n, 0, -1)]


CASES = [
    # map
    Case("map", lambda: range_(15).map(lambda i: i * 2 + 1), scalars(range(1, 31, 2))),
    Case(
        "map.sees_numpy_scalars",
        lambda: slices(ARRAYS["half"]).map(lambda x: type(x).__name__),
        ["float16"] * 12,
    ),
    Case("map.range_sees_numpy_scalars", lambda: range_(3).map(lambda x: type(x).__name__), ["int64"] * 3),
    Case(
        "map.keeps_dtype",
        lambda: slices(ARRAYS["float32"]).map(lambda x: x * 2),
        lambda: rows(ARRAYS["float32"] * 2),
    ),
    Case(
        "map.to_float",
        lambda: range_(6).map(lambda i: float(i) / 4),
        scalars((i / 4 for i in range(6)), np.float64),
    ),
    Case(
        "map.to_bool",
        lambda: range_(6).map(lambda i: bool(i % 2)),
        scalars((bool(i % 2) for i in range(6)), bool),
    ),
    Case(
        "map.to_lists_some_empty",
        lambda: range_(12).map(_few),
        lambda: [np.array(_few(i), np.int64 if _few(i) else np.float64) for i in range(12)],
    ),
    Case(
        "map.of_lists_some_empty",
        lambda: range_(12).map(_few).map(lambda row: (row[:2], row.dtype.name)),
        lambda: [
            (np.array(_few(i)[:2], np.int64 if _few(i) else np.float64), "int64" if _few(i) else "float64")
            for i in range(12)
        ],
    ),
    Case("map.to_string", lambda: range_(6).map(lambda i: f"row {i}"), [f"row {i}" for i in range(6)]),
    Case(
        "map.to_bytes",
        lambda: range_(6).map(lambda i: bytes([0, i, 0])),
        [bytes([0, i, 0]) for i in range(6)],
    ),
    Case("map.to_list", lambda: range_(6).map(lambda i: [i, i + 1]), [i64([i, i + 1]) for i in range(6)]),
    Case("map.to_none", lambda: range_(6).map(lambda i: (i, None)), [(np.int64(i), None) for i in range(6)]),
    Case("map.to_nothing_at_all", lambda: range_(5).map(lambda i: None), [None] * 5),
    Case(
        "map.sometimes_none",
        lambda: range_(9).map(lambda i: {"v": None if i % 3 else f"{i}"}),
        [{"v": None if i % 3 else f"{i}"} for i in range(9)],
    ),
    Case(
        "map.to_tuple",
        lambda: range_(6).map(lambda i: (i, -i)),
        [(np.int64(i), np.int64(-i)) for i in range(6)],
    ),
    Case(
        "map.to_structure",
        lambda: range_(6).map(lambda i: Sample(Point(i, np.full(2, i)), {"s": str(i)})),
        [Sample(Point(np.int64(i), np.full(2, i)), {"s": str(i)}) for i in range(6)],
    ),
    Case("map.to_ragged", lambda: _ragged(), [np.arange(i * 5 % 4) for i in range(8)]),
    Case(
        "map.tuple_arguments",
        lambda: _pairs().map(lambda a, b: (b, a + 1)),
        lambda: [(b, a + 1) for a, b in zip(ARRAYS["small"], ARRAYS["float32"], strict=True)],
    ),
    Case(
        "map.one_tuple",
        lambda: slices((ARRAYS["small"],)).map(lambda a: a + 1),
        lambda: rows(ARRAYS["small"] + 1),
    ),
    Case(
        "map.nested_tuple_arguments",
        lambda: range_(5).map(lambda i: (i, (i, i))).map(lambda a, pair: a + pair[0] + pair[1]),
        scalars(range(0, 15, 3)),
    ),
    Case(
        "map.dict_argument",
        lambda: _dicts().map(lambda d: {"sum": d["b"].sum() + d["a"]}),
        lambda: [{"sum": s} for s in ARRAYS["matrix"].sum(1) + ARRAYS["small"]],
    ),
    Case(
        "map.dataclass_argument",
        lambda: slices(Frozen(ARRAYS["small"], ARRAYS["half"])).map(lambda f: f.inner),
        lambda: rows(ARRAYS["small"]),
    ),
    Case("map.identity", lambda: slices(ARRAYS["matrix"]).map(lambda row: row), lambda: rows(ARRAYS["matrix"])),
    Case(
        "map.view_of_argument",
        lambda: slices(ARRAYS["matrix"]).map(lambda row: row[::-1]),
        lambda: rows(ARRAYS["matrix"][:, ::-1]),
    ),
    Case(
        "map.same_result_twice",
        lambda: slices(ARRAYS["matrix"]).map(lambda row: (row, row)),
        lambda: [(row, row.copy()) for row in rows(ARRAYS["matrix"])],
    ),
    Case(
        "map.same_result_for_all",
        lambda: range_(6).map(lambda i: ARRAYS["small"]),
        lambda: [ARRAYS["small"].copy()] * 6,
    ),
    Case(
        "map.writes_into_argument",
        lambda: slices(ARRAYS["matrix"]).map(_add_in_place),
        lambda: rows(ARRAYS["matrix"] + 1),
    ),
    Case(
        "map.reused_buffer",
        lambda: range_(10).map(_into_one_buffer),
        [i64([i] * 3) for i in range(10)],
        one_at_a_time=True,
    ),
    Case("map.of_strings", lambda: slices(STRINGS).map(lambda s: s + "!"), [s + "!" for s in STRINGS]),
    Case("map.of_batch", lambda: range_(10).batch(4).map(lambda b: b.sum()), scalars([6, 22, 17])),
    Case(
        "map.of_map",
        lambda: range_(9).map(lambda i: (i, i * i)).map(lambda a, b: b - a).map(lambda d: {"d": d}),
        [{"d": np.int64(i * i - i)} for i in range(9)],
    ),
    # map over columns
    Case("map.batched", lambda: range_(15).map(lambda c: c * 2 + 1, batched=True), scalars(range(1, 31, 2))),
    Case(
        "map.batched_tuple",
        lambda: _pairs().map(lambda a, b: (b, a + 1), batched=True),
        lambda: [(b, a + 1) for a, b in zip(ARRAYS["small"], ARRAYS["float32"], strict=True)],
    ),
    Case(
        "map.batched_dict",
        lambda: _dicts().map(lambda d: {"sum": d["b"].sum(1) + d["a"], "b": d["b"]}, batched=True),
        lambda: [
            {"sum": s, "b": b}
            for s, b in zip(ARRAYS["matrix"].sum(1) + ARRAYS["small"], rows(ARRAYS["matrix"]), strict=True)
        ],
    ),
    Case(
        "map.batched_identity",
        lambda: slices(ARRAYS["matrix"]).map(lambda c: c, batched=True),
        lambda: rows(ARRAYS["matrix"]),
    ),
    Case(
        "map.batched_same_twice",
        lambda: slices(ARRAYS["matrix"]).map(lambda c: (c, c), batched=True),
        lambda: [(row, row.copy()) for row in rows(ARRAYS["matrix"])],
    ),
    Case(
        "map.batched_writes_into_argument",
        lambda: slices(ARRAYS["matrix"]).map(_add_in_place_columns, batched=True),
        lambda: rows(ARRAYS["matrix"] + 1),
    ),
    Case(
        "map.batched_of_batch",
        lambda: range_(12).batch(4).map(lambda c: c.sum(axis=1), batched=True),
        scalars([6, 22, 38]),
    ),
    Case(
        "map.batched_after_plain",
        lambda: range_(12).map(lambda i: i + 1).map(lambda c: c * 10, batched=True).map(lambda i: i + 1),
        scalars(range(11, 131, 10)),
    ),
    # filter
    Case(
        "filter",
        lambda: range_(25).filter(lambda i: i % 3 == 1),
        scalars(range(1, 25, 3)),
        unknown_length=True,
    ),
    Case("filter.all", lambda: range_(9).filter(lambda i: True), scalars(range(9)), unknown_length=True),
    Case("filter.none", lambda: range_(9).filter(lambda i: False), [], unknown_length=True),
    Case(
        "filter.last_only",
        lambda: range_(300).filter(lambda i: i == 299),
        scalars([299]),
        unknown_length=True,
    ),
    Case(
        "filter.tuple_arguments",
        lambda: _pairs().filter(lambda a, b: b > 0),
        lambda: [(a, b) for a, b in zip(ARRAYS["small"], ARRAYS["float32"], strict=True) if b > 0],
        unknown_length=True,
    ),
    Case(
        "filter.dict_argument",
        lambda: _dicts().filter(lambda d: d["a"] % 4 == 0),
        lambda: [{"a": a, "b": b} for a, b in zip(ARRAYS["small"], rows(ARRAYS["matrix"]), strict=True) if a % 4 == 0],
        unknown_length=True,
    ),
    Case(
        "filter.of_ragged",
        lambda: _ragged().filter(lambda row: len(row) > 1),
        [np.arange(i * 5 % 4) for i in range(8) if i * 5 % 4 > 1],
        unknown_length=True,
    ),
    Case(
        "filter.of_strings",
        lambda: slices(STRINGS).filter(lambda s: len(s) > 2),
        [s for s in STRINGS if len(s) > 2],
        unknown_length=True,
    ),
    Case(
        "filter.batched",
        lambda: range_(25).filter(lambda c: c % 3 == 1, batched=True),
        scalars(range(1, 25, 3)),
        unknown_length=True,
    ),
    Case(
        "filter.batched_tuple",
        lambda: _pairs().filter(lambda a, b: b > 0, batched=True),
        lambda: [(a, b) for a, b in zip(ARRAYS["small"], ARRAYS["float32"], strict=True) if b > 0],
        unknown_length=True,
    ),
    Case(
        "filter.of_filter",
        lambda: range_(60).filter(lambda i: i % 2 == 0).filter(lambda i: i % 5 == 0),
        scalars(range(0, 60, 10)),
        unknown_length=True,
    ),
    Case(
        "filter.then_map",
        lambda: range_(20).filter(lambda i: i % 2 == 1).map(lambda i: i * i),
        scalars(i * i for i in range(1, 20, 2)),
        unknown_length=True,
    ),
    # take_while
    Case("take_while", lambda: range_(20).take_while(lambda i: i < 8), scalars(range(8)), unknown_length=True),
    Case("take_while.never", lambda: range_(20).take_while(lambda i: False), [], unknown_length=True),
    Case(
        "take_while.always",
        lambda: range_(6).take_while(lambda i: True),
        scalars(range(6)),
        unknown_length=True,
    ),
    Case(
        "take_while.comes_back",
        lambda: range_(20).take_while(lambda i: i % 7 != 6),
        scalars(range(6)),
        unknown_length=True,
    ),
    Case(
        "take_while.of_endless",
        lambda: Dataset.counter().take_while(lambda i: i < 11),
        scalars(range(11)),
        unknown_length=True,
    ),
    Case(
        "take_while.tuple_arguments",
        lambda: range_(10).enumerate(5).take_while(lambda n, i: n + i < 14),
        [(np.int64(i + 5), np.int64(i)) for i in range(5)],
        unknown_length=True,
    ),
    Case(
        "take_while.repeated",
        lambda: range_(9).take_while(lambda i: i < 3).repeat(3),
        scalars([0, 1, 2] * 3),
        unknown_length=True,
    ),
    # flat_map
    Case(
        "flat_map",
        lambda: range_(6).flat_map(_countdown),
        scalars(_countdowns(range(6))),
        unknown_length=True,
    ),
    Case(
        "flat_map.slices",
        lambda: slices(ARRAYS["matrix"]).flat_map(slices),
        lambda: scalars(ARRAYS["matrix"].ravel(), np.float64),
        unknown_length=True,
    ),
    Case("flat_map.of_nothing", lambda: range_(0).flat_map(_countdown), [], unknown_length=True),
    Case("flat_map.all_empty", lambda: range_(7).flat_map(lambda i: range_(0)), [], unknown_length=True),
    Case(
        "flat_map.mostly_empty",
        lambda: range_(40).flat_map(lambda i: range_(i).take(2 if i % 13 == 5 else 0)),
        scalars([0, 1] * 3),
        unknown_length=True,
    ),
    Case(
        "flat_map.tuple_arguments",
        lambda: range_(4).enumerate(1).flat_map(lambda n, i: range_(i, i + n)),
        scalars([0, 1, 2, 2, 3, 4, 3, 4, 5, 6]),
        unknown_length=True,
    ),
    Case(
        "flat_map.nested",
        lambda: range_(5).flat_map(lambda i: range_(i).flat_map(_countdown)),
        scalars(_countdowns(j for i in range(5) for j in range(i))),
        unknown_length=True,
    ),
    Case(
        "flat_map.inner_chain",
        lambda: range_(4).flat_map(
            lambda i: range_(i + 3).map(lambda j: j * 10 + i).filter(lambda v: v != 10).batch(2)
        ),
        lambda: [b for i in range(4) for b in batches(i64([j * 10 + i for j in range(i + 3) if j * 10 + i != 10]), 2)],
        unknown_length=True,
    ),
    Case(
        "flat_map.inner_generator",
        lambda: range_(4).flat_map(lambda i: Dataset.from_generator(lambda: range(i, i + 3))),
        scalars(j for i in range(4) for j in range(i, i + 3)),
        unknown_length=True,
    ),
    Case(
        "flat_map.inner_endless",
        lambda: range_(5).flat_map(lambda i: Dataset.counter(i)),
        scalars(range(20)),
        limit=20,
        unknown_length=True,
    ),
    Case(
        "flat_map.of_endless",
        lambda: Dataset.counter(1).flat_map(_countdown),
        scalars(_countdowns(range(1, 9)))[:30],
        limit=30,
        unknown_length=True,
    ),
    Case(
        "flat_map.inner_plans_differ",
        lambda: range_(6).flat_map(lambda i: range_(i) if i % 2 else Dataset.from_tensors(i).repeat(2)),
        scalars([0, 0, 0, 2, 2, 0, 1, 2, 4, 4, 0, 1, 2, 3, 4]),
        unknown_length=True,
    ),
    Case(
        "flat_map.then_batch",
        lambda: range_(6).flat_map(_countdown).batch(4),
        lambda: batches(i64(_countdowns(range(6))), 4),
        unknown_length=True,
    ),
    Case(
        "flat_map.repeated",
        lambda: range_(4).flat_map(_countdown).repeat(2),
        scalars(_countdowns(range(4)) * 2),
        unknown_length=True,
    ),
    Case(
        "flat_map.inner_prefetch",
        lambda: range_(4).flat_map(lambda i: range_(i + 1).prefetch(1)),
        scalars(j for i in range(4) for j in range(i + 1)),
        unknown_length=True,
    ),
]
