"""shuffle: buffered and whole, over indexable inputs and over streams, within and across epochs."""

from __future__ import annotations

import numpy as np

from conformance.case import Case
from conformance.cases.common import Dataset, range_, slices
from conformance.cases.laws import buffered, distinct_within, reordered, rounds
from conformance.data import ARRAYS, STRINGS


def _stream(n):
    """The numbers below n from an input that cannot be indexed."""
    return Dataset.from_generator(lambda: range(n))


def _odd(n):
    return range_(n).filter(lambda i: i % 2 == 1)


def _flat(batches):
    return [i for b in batches for i in b]


def _batched_law(n, buffer_size, batch):
    law = buffered(range(n), buffer_size)

    def check(elements):
        assert [len(e) for e in elements] == [min(batch, n - i) for i in range(0, n, batch)]
        law(_flat(elements))

    return check


def _rows_together(elements):
    # Shuffling moves whole rows: every leaf of an element comes from the same input row.
    for row, label, text in elements:
        assert row[0] / 4 == label
        assert text == f"{label}"
    reordered(range(12))([label for _, label, _ in elements])


def _first_of_each_round(elements):
    # repeat() before shuffle: one buffer over an endless stream of rounds.
    for t, e in enumerate(elements):
        assert 0 <= e < 10
        assert sum(1 for other in elements[: t + 1] if other == e) <= (t + 7) // 10 + 1


CASES = [
    # Over an indexable input.
    Case("shuffle.buffer", lambda: range_(25).shuffle(6, seed=1), law=buffered(range(25), 6), reshuffles=True),
    Case(
        "shuffle.buffer_two",
        lambda: range_(25).shuffle(2, seed=5),
        law=buffered(range(25), 2),
        reshuffles=True,
    ),
    Case(
        "shuffle.buffer_one_keeps_order",
        lambda: range_(15).shuffle(1, seed=1),
        [np.int64(i) for i in range(15)],
    ),
    Case(
        "shuffle.buffer_as_large_as_data",
        lambda: range_(25).shuffle(25, seed=1),
        law=reordered(range(25)),
        reshuffles=True,
    ),
    Case(
        "shuffle.buffer_larger_than_data",
        lambda: range_(25).shuffle(1000, seed=1),
        law=reordered(range(25)),
        reshuffles=True,
    ),
    Case(
        "shuffle.several_blocks",
        lambda: range_(130).shuffle(50, seed=9),
        law=buffered(range(130), 50),
        reshuffles=True,
    ),
    Case(
        "shuffle.fixed_order",
        lambda: range_(25).shuffle(6, seed=1, reshuffle_each_iteration=False),
        law=buffered(range(25), 6),
    ),
    Case("shuffle.of_nothing", lambda: range_(0).shuffle(5, seed=1), []),
    Case("shuffle.of_one", lambda: range_(1).shuffle(5, seed=1), [np.int64(0)]),
    Case(
        "shuffle.unseeded",
        lambda: range_(40).shuffle(15),
        law=buffered(range(40), 15),
        reshuffles=True,
        seeded=False,
    ),
    Case(
        "shuffle.unseeded_fixed_order",
        lambda: range_(40).shuffle(15, reshuffle_each_iteration=False),
        law=buffered(range(40), 15),
        seeded=False,
    ),
    Case(
        "shuffle.rows",
        lambda: slices((ARRAYS["matrix"], np.arange(12), [f"{i}" for i in range(12)])).shuffle(8, seed=2),
        law=_rows_together,
        reshuffles=True,
    ),
    Case(
        "shuffle.strings",
        lambda: slices(STRINGS).shuffle(4, seed=2),
        law=buffered(STRINGS, 4, key=str),
        reshuffles=True,
    ),
    Case(
        "shuffle.batch",
        lambda: range_(23).shuffle(7, seed=3).batch(4),
        law=_batched_law(23, 7, 4),
        reshuffles=True,
    ),
    Case(
        "shuffle.of_batch",
        lambda: range_(40).batch(2).shuffle(5, seed=3),
        law=buffered(range(0, 40, 2), 5, key=lambda b: int(b[0])),
        reshuffles=True,
    ),
    Case(
        "shuffle.after_skip_take_shard",
        lambda: range_(90).skip(3).take(60).shard(2, 1).shuffle(10, seed=3),
        law=buffered(range(4, 63, 2), 10),
        reshuffles=True,
    ),
    Case(
        "shuffle.after_skip_larger_than_data",
        lambda: range_(30).skip(5).shuffle(1000, seed=3),
        law=reordered(range(5, 30)),
        reshuffles=True,
    ),
    Case(
        "shuffle.after_nothing_dropped",
        lambda: range_(30).take(-1).skip(0).shuffle(1000, seed=3),
        law=reordered(range(30)),
        reshuffles=True,
    ),
    Case(
        "shuffle.then_skip",
        lambda: range_(30).shuffle(30, seed=3).skip(12),
        law=distinct_within(0, 30, 18),
        reshuffles=True,
    ),
    Case(
        "shuffle.then_shard",
        lambda: range_(30).shuffle(30, seed=3).shard(2, 1),
        law=distinct_within(0, 30, 15),
        reshuffles=True,
    ),
    Case(
        "shuffle.after_map",
        lambda: range_(25).map(lambda i: i * 2).shuffle(6, seed=1),
        law=buffered(range(0, 50, 2), 6),
        reshuffles=True,
    ),
    Case(
        "shuffle.after_concatenate",
        lambda: range_(12).concatenate(range_(12, 25)).shuffle(6, seed=1),
        law=buffered(range(25), 6),
        reshuffles=True,
    ),
    Case(
        "shuffle.of_zip",
        lambda: Dataset.zip(range_(20), range_(20)).shuffle(6, seed=1),
        law=buffered([(i, i) for i in range(20)], 6, key=lambda p: (int(p[0]), int(p[1]))),
        reshuffles=True,
    ),
    Case(
        "shuffle.of_shuffle",
        lambda: range_(25).shuffle(5, seed=1).shuffle(5, seed=2),
        law=reordered(range(25)),
        reshuffles=True,
    ),
    Case(
        "shuffle.endless_range",
        lambda: range_(10**12).shuffle(40, seed=1),
        law=buffered(range(100), 40, whole=False),
        limit=45,
        reshuffles=True,
    ),
    # Over a stream.
    Case(
        "shuffle.stream",
        lambda: _stream(25).shuffle(6, seed=1),
        law=buffered(range(25), 6),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_filtered",
        lambda: _odd(50).shuffle(6, seed=1),
        law=buffered(range(1, 50, 2), 6),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_buffer_one",
        lambda: _stream(9).shuffle(1, seed=1),
        [np.int64(i) for i in range(9)],
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_buffer_larger_than_data",
        lambda: _stream(25).shuffle(1000, seed=1),
        law=reordered(range(25)),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_several_blocks",
        lambda: _stream(130).shuffle(50, seed=9),
        law=buffered(range(130), 50),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_fixed_order",
        lambda: _stream(25).shuffle(6, seed=1, reshuffle_each_iteration=False),
        law=buffered(range(25), 6),
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_unseeded",
        lambda: _stream(40).shuffle(15),
        law=buffered(range(40), 15),
        reshuffles=True,
        seeded=False,
        unknown_length=True,
    ),
    Case("shuffle.stream_empty", lambda: _stream(0).shuffle(5, seed=1), [], unknown_length=True),
    Case(
        "shuffle.stream_ragged",
        lambda: range_(20).map(lambda i: np.full(i % 4 + 1, i)).shuffle(6, seed=4),
        law=buffered(range(20), 6, key=lambda row: int(row[-1])),
        reshuffles=True,
    ),
    Case(
        "shuffle.stream_endless",
        lambda: range_(10).repeat().shuffle(7, seed=1),
        law=_first_of_each_round,
        limit=35,
        reshuffles=True,
    ),
    Case(
        "shuffle.stream_batched",
        lambda: _stream(23).shuffle(7, seed=3).batch(4),
        law=_batched_law(23, 7, 4),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_prefetched",
        lambda: _odd(50).shuffle(6, seed=1).prefetch(2),
        law=buffered(range(1, 50, 2), 6),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_of_shuffled_stream",
        lambda: _stream(25).shuffle(5, seed=1).filter(lambda i: i != 3).shuffle(5, seed=2),
        law=reordered([i for i in range(25) if i != 3]),
        reshuffles=True,
        unknown_length=True,
    ),
    # Uniform over everything.
    Case("shuffle.whole", lambda: range_(30).shuffle(seed=1), law=reordered(range(30)), reshuffles=True),
    Case(
        "shuffle.whole_fixed_order",
        lambda: range_(30).shuffle(seed=1, reshuffle_each_iteration=False),
        law=reordered(range(30)),
    ),
    Case(
        "shuffle.whole_unseeded",
        lambda: range_(30).shuffle(),
        law=reordered(range(30)),
        reshuffles=True,
        seeded=False,
    ),
    Case("shuffle.whole_of_nothing", lambda: range_(0).shuffle(seed=1), []),
    Case("shuffle.whole_of_one", lambda: range_(1).shuffle(seed=1), [np.int64(0)]),
    Case(
        "shuffle.whole_large",
        lambda: range_(70_000).shuffle(seed=1),
        law=distinct_within(0, 70_000, 40),
        limit=40,
        reshuffles=True,
    ),
    Case(
        "shuffle.whole_huge",
        lambda: range_(10**15).shuffle(seed=1),
        law=distinct_within(0, 10**15, 40),
        limit=40,
        reshuffles=True,
    ),
    Case(
        "shuffle.whole_rows",
        lambda: slices((ARRAYS["matrix"], np.arange(12), [f"{i}" for i in range(12)])).shuffle(seed=2),
        law=_rows_together,
        reshuffles=True,
    ),
    Case(
        "shuffle.whole_after_map",
        lambda: range_(30).map(lambda i: i + 5).shuffle(seed=1),
        law=reordered(range(5, 35)),
        reshuffles=True,
    ),
    Case(
        "shuffle.whole_of_shard",
        lambda: range_(60).skip(2).shard(2, 1).shuffle(seed=1),
        law=reordered(range(3, 60, 2)),
        reshuffles=True,
    ),
    Case(
        "shuffle.stream_whole",
        lambda: _stream(30).shuffle(seed=1),
        law=reordered(range(30)),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_whole_twice",
        lambda: _stream(20).shuffle(seed=1).batch(3).repeat(2).unbatch(),
        law=reordered([*range(20), *range(20)]),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "shuffle.stream_whole_kept",
        lambda: _stream(25).filter(lambda i: i % 3 > 0).shuffle(seed=1, reshuffle_each_iteration=False),
        law=reordered([i for i in range(25) if i % 3]),
        unknown_length=True,
    ),
    Case("shuffle.stream_whole_of_nothing", lambda: _stream(0).shuffle(seed=1), [], unknown_length=True),
    Case(
        "shuffle.whole_then_batch_prefetch",
        lambda: range_(23).shuffle(seed=3).batch(4).prefetch(2),
        law=_batched_law(23, 23, 4),
        reshuffles=True,
    ),
    # Rounds of repeat are epochs.
    Case(
        "shuffle.repeat",
        lambda: range_(12).shuffle(5, seed=1).repeat(4),
        law=rounds(range(12), 4, fresh=True, buffer_size=5),
        reshuffles=True,
    ),
    Case(
        "shuffle.repeat_fixed_order",
        lambda: range_(12).shuffle(5, seed=1, reshuffle_each_iteration=False).repeat(3),
        law=rounds(range(12), 3, fresh=False, buffer_size=5),
    ),
    Case(
        "shuffle.repeat_for_ever",
        lambda: range_(12).shuffle(5, seed=1).repeat(),
        law=rounds(range(12), 3, fresh=True, buffer_size=5),
        limit=36,
        reshuffles=True,
    ),
    Case(
        "shuffle.repeat_whole",
        lambda: range_(12).shuffle(seed=1).repeat(4),
        law=rounds(range(12), 4, fresh=True),
        reshuffles=True,
    ),
    Case(
        "shuffle.repeat_stream",
        lambda: _stream(12).shuffle(5, seed=1).repeat(3),
        law=rounds(range(12), 3, fresh=True, buffer_size=5),
        reshuffles=True,
        unknown_length=True,
    ),
    Case(
        "shuffle.repeat_unseeded",
        lambda: range_(12).shuffle(12).repeat(3),
        law=rounds(range(12), 3, fresh=True),
        reshuffles=True,
        seeded=False,
    ),
    Case(
        "shuffle.repeat_twice",
        lambda: range_(12).shuffle(seed=1).repeat(2).repeat(2),
        law=rounds(range(12), 4, fresh=True),
        reshuffles=True,
    ),
    Case(
        "shuffle.after_repeat",
        lambda: range_(12).repeat(2).shuffle(24, seed=1),
        law=reordered([*range(12)] * 2),
        reshuffles=True,
    ),
]
