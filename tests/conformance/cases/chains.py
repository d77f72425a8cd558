"""Long chains: what users write, and what the optimiser likes to move about."""

from __future__ import annotations

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import Dataset, batches, i64, range_, scalars, slices
from conformance.cases.laws import buffered, distinct_within
from conformance.data import ARRAYS, LONG_BYTES


def _training():
    """The pipeline of every tutorial."""
    return (
        slices((ARRAYS["matrix"], ARRAYS["small"]))
        .shuffle(8, seed=11)
        .map(lambda x, y: (x * 2, y - 100))
        .batch(5)
        .repeat(2)
        .prefetch(fb.AUTOTUNE)
    )


def _training_law(elements):
    assert [len(y) for _, y in elements] == [5, 5, 2] * 2
    for x, y in elements:
        assert (x[:, 0] / 8 == y).all()
    orders = [[int(i) for _, y in elements[k : k + 3] for i in y] for k in (0, 3)]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(12))
    assert orders[0] != orders[1]


def _everything():
    left = range_(40).filter(lambda i: i % 4 != 2).map(lambda i: i + 1).skip(3)
    right = slices(["a", "b", "c"]).repeat().enumerate()
    return (
        Dataset.zip(left, right)
        .shard(2, 1)
        .map(lambda n, pair: {"n": n, "index": pair[0], "text": pair[1]})
        .take_while(lambda d: d["n"] < 36)
        .batch(3)
        .concatenate(slices({"n": [[0]], "index": [[0]], "text": [["z"]]}).take(1))
        .prefetch(1)
    )


def _everything_expected():
    left = [i + 1 for i in range(40) if i % 4 != 2][3:]
    rows = [(n, i, "abc"[i % 3]) for i, n in enumerate(left)][1::2]
    rows = rows[: next(k for k, row in enumerate(rows) if row[0] >= 36)]
    out = []
    for k in range(0, len(rows), 3):
        n, index, text = zip(*rows[k : k + 3], strict=True)
        out.append({"n": i64(n), "index": i64(index), "text": np.array(text, object)})
    return [*out, {"n": i64([0]), "index": i64([0]), "text": np.array(["z"], object)}]


CASES = [
    Case(
        "map.to_long_bytes",
        lambda: range_(9).map(lambda i: bytes([i]) * (i * 300)),
        [bytes([i]) * (i * 300) for i in range(9)],
    ),
    Case(
        "shuffle.of_long_bytes",
        lambda: slices(LONG_BYTES).filter(lambda row: True).shuffle(5, seed=1),
        law=buffered(LONG_BYTES, 5, bytes),
        reshuffles=True,
        unknown_length=True,
    ),
    Case("chain.training", _training, law=_training_law, reshuffles=True),
    Case("chain.everything", _everything, _everything_expected, unknown_length=True),
    Case(
        "chain.slices_of_slices",
        lambda: range_(200).skip(5).shard(3, 1).take(40).skip(2).shard(2, 1).take(11),
        lambda: scalars([*range(200)][5:][1::3][:40][2:][1::2][:11]),
    ),
    Case(
        "chain.map_skip_map_take",
        lambda: range_(50).map(lambda i: i + 1).skip(3).map(lambda i: i * 2).take(9).map(lambda i: i - 1).shard(2, 0),
        lambda: scalars([(i + 1) * 2 - 1 for i in range(3, 12)][::2]),
    ),
    Case(
        "chain.batch_skip_unbatch",
        lambda: range_(30).batch(4).skip(2).unbatch().skip(1).batch(5, drop_remainder=True),
        lambda: batches(np.arange(9, 29), 5),
        unknown_length=True,
    ),
    Case(
        "chain.batch_shard_unbatch",
        lambda: range_(30).batch(4).shard(3, 1).unbatch(),
        scalars([4, 5, 6, 7, 16, 17, 18, 19, 28, 29]),
        unknown_length=True,
    ),
    Case(
        "chain.repeat_shard_batch",
        lambda: range_(7).repeat(3).shard(2, 1).batch(4),
        lambda: batches(i64([*range(7)] * 3)[1::2], 4),
    ),
    Case(
        "chain.repeat_skip_over_rounds",
        lambda: range_(7).repeat(5).skip(17).take(12),
        scalars(([*range(7)] * 5)[17:29]),
    ),
    Case(
        "chain.filter_repeat_enumerate_shard",
        lambda: range_(10).filter(lambda i: i % 3 != 0).repeat(2).enumerate().shard(3, 2),
        [(np.int64(k), np.int64(v)) for k, v in [*enumerate([1, 2, 4, 5, 7, 8] * 2)][2::3]],
        unknown_length=True,
    ),
    Case(
        "chain.flat_map_of_batches",
        lambda: range_(20).batch(6).flat_map(slices).filter(lambda i: i % 5 != 0).batch(3),
        lambda: batches(i64([i for i in range(20) if i % 5]), 3),
        unknown_length=True,
    ),
    Case(
        "chain.zip_concatenate_repeat",
        lambda: Dataset.zip(range_(4).concatenate(range_(9, 11)), range_(3).repeat()).repeat(2).skip(4),
        [(np.int64(a), np.int64(b)) for a, b in [*zip([0, 1, 2, 3, 9, 10], [0, 1, 2] * 2, strict=True)] * 2][4:],
    ),
    Case(
        "chain.shuffle_skip_shuffle",
        lambda: range_(60).shuffle(seed=1).skip(10).map(lambda i: i * 3).shuffle(seed=2).shard(2, 0),
        law=distinct_within(0, 180, 25),
        reshuffles=True,
    ),
    Case(
        "chain.shuffle_batch_unbatch_filter",
        lambda: range_(60).shuffle(seed=1).batch(7).unbatch().filter(lambda i: i % 3 == 0),
        law=distinct_within(0, 60, 20),
        reshuffles=True,
        unknown_length=True,
    ),
    Case("chain.deep", lambda: _deep(), scalars(range(40, 60))),
]


def _deep():
    dataset = range_(20)
    for _ in range(40):
        dataset = dataset.map(lambda i: i + 1)
    return dataset
