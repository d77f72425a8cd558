"""Operators that pick, repeat, group or number rows."""

from __future__ import annotations

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import Dataset, batches, i64, objects, range_, rows, scalars, slices
from conformance.data import ARRAYS, BYTES, LONG_BYTES, STRINGS, Point, Sample


def _pairs():
    return slices((ARRAYS["matrix"], {"label": ARRAYS["small"]}))


def _ragged():
    return range_(8).map(lambda i: np.arange(i * 5 % 4))


def _ragged_rows():
    return [np.arange(i * 5 % 4) for i in range(8)]


CASES = [
    # take, skip, shard
    Case("take", lambda: range_(20).take(7), scalars(range(7))),
    Case("take.none", lambda: range_(20).take(0), []),
    Case("take.more_than_there_is", lambda: range_(4).take(9), scalars(range(4))),
    Case("take.all", lambda: range_(4).take(-1), scalars(range(4))),
    Case(
        "take.of_stream",
        lambda: range_(40).filter(lambda i: i % 3 == 0).take(5),
        scalars(range(0, 15, 3)),
        unknown_length=True,
    ),
    Case("skip", lambda: range_(20).skip(7), scalars(range(7, 20))),
    Case("skip.none", lambda: range_(5).skip(0), scalars(range(5))),
    Case("skip.more_than_there_is", lambda: range_(4).skip(9), []),
    Case("skip.all", lambda: range_(4).skip(-1), []),
    Case(
        "skip.of_stream",
        lambda: range_(40).filter(lambda i: i % 3 == 0).skip(9),
        scalars(range(27, 40, 3)),
        unknown_length=True,
    ),
    Case("skip.of_endless", lambda: Dataset.counter().skip(1000), scalars(range(1000, 1020)), limit=20),
    Case("skip_take", lambda: range_(30).skip(4).take(11).skip(2), scalars(range(6, 15))),
    Case("shard.first", lambda: range_(17).shard(3, 0), scalars(range(0, 17, 3))),
    Case("shard.last", lambda: range_(17).shard(3, 2), scalars(range(2, 17, 3))),
    Case("shard.only", lambda: range_(5).shard(1, 0), scalars(range(5))),
    Case("shard.empty", lambda: range_(3).shard(5, 4), []),
    Case("shard.of_shard", lambda: range_(40).shard(2, 1).shard(3, 1), scalars(range(3, 40, 6))),
    Case(
        "shard.of_stream",
        lambda: range_(40).filter(lambda i: i > 4).shard(4, 3),
        scalars(range(8, 40, 4)),
        unknown_length=True,
    ),
    Case(
        "shard.of_structure",
        lambda: _pairs().shard(5, 1),
        lambda: [(ARRAYS["matrix"][i].copy(), {"label": ARRAYS["small"][i]}) for i in (1, 6, 11)],
    ),
    # repeat
    Case("repeat", lambda: range_(5).repeat(3), scalars([*range(5)] * 3)),
    Case("repeat.once", lambda: range_(5).repeat(1), scalars(range(5))),
    Case("repeat.never", lambda: range_(5).repeat(0), []),
    Case("repeat.for_ever", lambda: range_(5).repeat(), scalars([*range(5)] * 5), limit=25),
    Case("repeat.minus_one", lambda: range_(5).repeat(-1), scalars([*range(5)] * 5), limit=25),
    Case("repeat.for_ever_take", lambda: range_(4).repeat().take(15), scalars([*range(4)] * 4)[:15]),
    Case("repeat.for_ever_skip", lambda: range_(4).repeat().skip(6).take(7), scalars([*range(4)] * 4)[6:13]),
    Case("repeat.of_repeat", lambda: range_(3).repeat(2).repeat(3), scalars([*range(3)] * 6)),
    Case(
        "repeat.of_stream",
        lambda: range_(9).filter(lambda i: i % 4 == 0).repeat(3),
        scalars([0, 4, 8] * 3),
        unknown_length=True,
    ),
    Case("repeat.for_ever_of_nothing", lambda: range_(0).repeat(), []),
    Case(
        "repeat.for_ever_of_nothing_left",
        lambda: range_(9).filter(lambda i: False).repeat(),
        [],
        unknown_length=True,
    ),
    Case("repeat.of_nothing", lambda: range_(0).repeat(3), []),
    Case(
        "repeat.of_one",
        lambda: Dataset.from_tensors(ARRAYS["small"]).repeat(),
        lambda: [ARRAYS["small"].copy()] * 9,
        limit=9,
    ),
    Case("repeat.then_batch", lambda: range_(5).repeat(3).batch(4), lambda: batches(i64([*range(5)] * 3), 4)),
    Case("repeat.of_batch", lambda: range_(5).batch(4).repeat(2), [i64([0, 1, 2, 3]), i64([4])] * 2),
    # batch
    Case("batch", lambda: range_(14).batch(4), lambda: batches(np.arange(14), 4)),
    Case(
        "batch.drop_remainder",
        lambda: range_(14).batch(4, drop_remainder=True),
        lambda: batches(np.arange(12), 4),
    ),
    Case("batch.drop_remainder_exact", lambda: range_(12).batch(4, True), lambda: batches(np.arange(12), 4)),
    Case("batch.drop_all", lambda: range_(3).batch(4, drop_remainder=True), []),
    Case("batch.larger_than_data", lambda: range_(3).batch(10), [i64([0, 1, 2])]),
    Case("batch.of_one", lambda: range_(4).batch(1), lambda: batches(np.arange(4), 1)),
    Case(
        "batch.of_batch",
        lambda: range_(16).batch(2).batch(3),
        lambda: [np.arange(6).reshape(3, 2), np.arange(6, 12).reshape(3, 2), np.arange(12, 16).reshape(2, 2)],
    ),
    Case("batch.of_rows", lambda: slices(ARRAYS["cube"]).batch(4), lambda: batches(ARRAYS["cube"], 4)),
    Case(
        "batch.of_structure",
        lambda: _pairs().batch(5),
        lambda: [
            (m, {"label": s}) for m, s in zip(batches(ARRAYS["matrix"], 5), batches(ARRAYS["small"], 5), strict=True)
        ],
    ),
    Case(
        "batch.of_dataclass",
        lambda: slices(Sample(ARRAYS["matrix"], ARRAYS["bools"])).batch(5),
        lambda: [Sample(m, b) for m, b in zip(batches(ARRAYS["matrix"], 5), batches(ARRAYS["bools"], 5), strict=True)],
    ),
    Case(
        "batch.of_strings",
        lambda: slices(STRINGS).batch(4),
        lambda: [objects(STRINGS[:4]), objects(STRINGS[4:8]), objects(STRINGS[8:])],
    ),
    Case("batch.of_bytes", lambda: slices(BYTES).batch(6), lambda: [objects(BYTES[:6]), objects(BYTES[6:])]),
    Case(
        "batch.of_long_bytes",
        lambda: slices(LONG_BYTES).batch(2).batch(3),
        lambda: [objects(LONG_BYTES[at : at + 6]).reshape(3, 2) for at in (0, 6)],
    ),
    Case(
        "batch.of_ragged_alike_by_two",
        lambda: range_(8).map(lambda i: np.full(i // 2, i)).batch(2),
        [np.array([[i] * (i // 2), [i + 1] * (i // 2)], np.int64).reshape(2, i // 2) for i in range(0, 8, 2)],
    ),
    Case(
        "batch.of_empty_rows",
        lambda: slices(ARRAYS["empty_rows"]).batch(2),
        lambda: batches(ARRAYS["empty_rows"], 2),
    ),
    Case(
        "batch.of_stream",
        lambda: range_(30).filter(lambda i: i % 2 == 1).batch(4),
        lambda: batches(np.arange(1, 30, 2), 4),
        unknown_length=True,
    ),
    Case("batch.several_blocks", lambda: slices(ARRAYS["long"]).batch(7), lambda: batches(ARRAYS["long"], 7)),
    # unbatch
    Case("unbatch", lambda: slices(ARRAYS["matrix"]).take(4).unbatch(), lambda: scalars(range(16), np.float64)),
    Case(
        "unbatch.of_rows",
        lambda: slices(ARRAYS["cube"]).unbatch(),
        lambda: rows(ARRAYS["cube"].reshape(18, 3)),
    ),
    Case(
        "unbatch.of_structure",
        lambda: slices((ARRAYS["cube"], {"t": ARRAYS["cube"]})).unbatch(),
        lambda: [(row, {"t": row.copy()}) for row in rows(ARRAYS["cube"].reshape(18, 3))],
    ),
    Case(
        "unbatch.ragged",
        lambda: _ragged().unbatch(),
        lambda: scalars(np.concatenate(_ragged_rows())),
        unknown_length=True,
    ),
    Case(
        "unbatch.ragged_all_empty",
        lambda: range_(5).map(lambda i: np.zeros((0, 3))).unbatch(),
        [],
        unknown_length=True,
    ),
    Case(
        "unbatch.ragged_rows",
        lambda: range_(6).map(lambda i: np.full((i % 3, 2), i)).unbatch(),
        [i64([i, i]) for i in range(6) for _ in range(i % 3)],
        unknown_length=True,
    ),
    Case("unbatch.strings", lambda: slices(STRINGS).batch(4).unbatch(), STRINGS, unknown_length=True),
    Case("unbatch.of_batch", lambda: range_(13).batch(5).unbatch(), scalars(range(13)), unknown_length=True),
    Case(
        "unbatch.then_batch",
        lambda: range_(12).batch(5).unbatch().batch(4),
        lambda: batches(np.arange(12), 4),
        unknown_length=True,
    ),
    # enumerate
    Case("enumerate", lambda: range_(10, 16).enumerate(), [(np.int64(i), np.int64(i + 10)) for i in range(6)]),
    Case(
        "enumerate.start",
        lambda: slices(["a", "b"]).enumerate(start=7),
        [(np.int64(7), "a"), (np.int64(8), "b")],
    ),
    Case(
        "enumerate.of_tuple",
        lambda: slices((ARRAYS["small"], ARRAYS["half"])).enumerate(3),
        lambda: [(np.int64(i + 3), (ARRAYS["small"][i], ARRAYS["half"][i])) for i in range(12)],
    ),
    Case(
        "enumerate.of_stream",
        lambda: range_(20).filter(lambda i: i % 3 == 1).enumerate(),
        [(np.int64(i), np.int64(3 * i + 1)) for i in range(7)],
        unknown_length=True,
    ),
    Case(
        "enumerate.of_repeat",
        lambda: range_(3).repeat(3).enumerate(),
        [(np.int64(i), np.int64(i % 3)) for i in range(9)],
    ),
    Case(
        "enumerate.then_skip",
        lambda: range_(10).enumerate().skip(4),
        [(np.int64(i), np.int64(i)) for i in range(4, 10)],
    ),
    # ragged, text and empty leaves that only pass through
    Case(
        "ragged.take_skip_shard",
        lambda: _ragged().skip(1).shard(2, 1).take(3),
        lambda: [_ragged_rows()[i] for i in (2, 4, 6)],
    ),
    Case(
        "ragged.many_axes",
        lambda: range_(9).map(lambda i: np.full((i % 2, 3, i % 3), i)),
        [np.full((i % 2, 3, i % 3), i) for i in range(9)],
    ),
    Case(
        "ragged.number_of_axes",
        lambda: range_(6).map(lambda i: np.full((2,) * (i % 3), i)[()]),
        [np.full((2,) * (i % 3), i)[()] for i in range(6)],
    ),
    Case(
        "strings.take_skip_shard",
        lambda: slices({"s": STRINGS, "b": BYTES}).skip(2).shard(2, 1),
        [{"s": STRINGS[i], "b": BYTES[i]} for i in (3, 5, 7, 9)],
    ),
    Case(
        "namedtuple.through_all",
        lambda: slices(Point(ARRAYS["matrix"], ARRAYS["small"])).skip(2).batch(3).unbatch().take(6),
        lambda: [Point(ARRAYS["matrix"][i].copy(), ARRAYS["small"][i]) for i in range(2, 8)],
        unknown_length=True,
    ),
    # prefetch
    Case("prefetch", lambda: range_(18).prefetch(3), scalars(range(18))),
    Case(
        "prefetch.autotune",
        lambda: range_(18).batch(4).prefetch(fb.AUTOTUNE),
        lambda: batches(np.arange(18), 4),
    ),
    Case("prefetch.zero", lambda: range_(6).prefetch(0), scalars(range(6))),
    Case(
        "prefetch.endless",
        lambda: Dataset.counter().map(lambda i: np.full(1000, i)).prefetch(2),
        [np.full(1000, i) for i in range(20)],
        limit=20,
        threaded=True,
    ),
    Case(
        "prefetch.of_prefetch",
        lambda: range_(11).prefetch(2).map(lambda i: i + 1).prefetch(2),
        scalars(range(1, 12)),
    ),
    Case(
        "prefetch.in_the_middle",
        lambda: range_(30).filter(lambda i: i % 2 == 0).prefetch(2).batch(4).repeat(2),
        lambda: batches(np.arange(0, 30, 2), 4) * 2,
        unknown_length=True,
    ),
    Case("prefetch.of_nothing", lambda: range_(0).prefetch(1), []),
    # options
    Case(
        "with_options.in_the_middle",
        lambda: range_(9).with_options(fb.Options(block_bytes=16)).map(lambda i: i * 2).batch(2),
        lambda: batches(np.arange(0, 18, 2), 2),
    ),
    Case(
        "apply",
        lambda: range_(9).apply(lambda ds: ds.filter(lambda i: i != 4)),
        scalars(i for i in range(9) if i != 4),
        unknown_length=True,
    ),
]
