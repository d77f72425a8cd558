"""from_generator: Python iterables of any kind, restarted for each epoch."""

from __future__ import annotations

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import Dataset, i64, scalars
from conformance.data import BYTES, STRINGS, Point, Sample

generator = Dataset.from_generator


def _squares():
    for i in range(14):
        yield i * i


def _counted(stop, word):
    for i in range(stop):
        yield i, word


def _triangle():
    for i in range(9):
        yield np.arange(i * 5 % 7)


def _triangle_pairs():
    for i in range(9):
        yield {"len": i, "values": np.full((i % 3, 2), i, np.float32)}


def _nested():
    for i in range(8):
        yield Sample(Point(np.full(3, i), [i, i + 1]), {"name": f"n{i}"})


def _dict_order_varies():
    for i in range(6):
        yield {"a": i, "b": -i} if i % 2 == 0 else {"b": -i, "a": i}


def _maybe():
    for i in range(9):
        yield i, (None if i % 3 == 0 else "set")


def _reused_buffer():
    # A reader that hands out one buffer over and over: each element is what it was when it was handed out.
    buffer = np.zeros(3, np.int64)
    for i in range(10):
        buffer[:] = i
        yield buffer


def _endless():
    i = 0
    while True:
        yield i
        i += 1


class Seekable:
    """An iterator that knows where it is, so that resuming need not re-read what came before."""

    def __init__(self, stop: int) -> None:
        self.position = 0
        self.stop = stop
        self.words: list[str] = []

    def __iter__(self):
        return self

    def __next__(self):
        if self.position == self.stop:
            raise StopIteration
        self.position += 1
        # The value depends on the path taken, not on the position alone.
        self.words = [*self.words[-2:], f"w{self.position * 7 % 5}"]
        return self.position, " ".join(self.words)

    def state_dict(self):
        return {"position": self.position, "words": list(self.words)}

    def load_state_dict(self, state):
        self.position = state["position"]
        self.words = list(state["words"])


def _seekable_elements(stop):
    return [(np.int64(position), words) for position, words in Seekable(stop)]


_SIGNATURE = {
    "len": fb.TensorSpec((), np.int32),
    "values": fb.TensorSpec((None, 2), np.float64),
}

CASES = [
    Case("generator.plain", lambda: generator(_squares), scalars(i * i for i in range(14)), unknown_length=True),
    Case("generator.empty", lambda: generator(lambda: iter(())), [], unknown_length=True),
    Case("generator.list", lambda: generator(lambda: [3, 1, 2]), scalars([3, 1, 2]), unknown_length=True),
    Case(
        "generator.args",
        lambda: generator(_counted, args=(6, "w")),
        [(np.int64(i), "w") for i in range(6)],
        unknown_length=True,
    ),
    Case(
        "generator.signature",
        lambda: generator(_squares, output_signature=fb.TensorSpec((), np.float32)),
        scalars((i * i for i in range(14)), np.float32),
        unknown_length=True,
    ),
    Case(
        "generator.signature_of_structure",
        lambda: generator(_triangle_pairs, output_signature=_SIGNATURE),
        [{"len": np.int32(i), "values": np.full((i % 3, 2), i, np.float64)} for i in range(9)],
        unknown_length=True,
    ),
    Case(
        "generator.output_types",
        lambda: generator(_squares, np.int16),
        scalars((i * i for i in range(14)), np.int16),
        unknown_length=True,
    ),
    Case(
        "generator.output_types_and_shapes",
        lambda: generator(_triangle, np.int32, (None,)),
        [np.arange(i * 5 % 7, dtype=np.int32) for i in range(9)],
        unknown_length=True,
    ),
    Case(
        "generator.ragged",
        lambda: generator(_triangle),
        [np.arange(i * 5 % 7) for i in range(9)],
        unknown_length=True,
    ),
    Case(
        "generator.ragged_structure",
        lambda: generator(_triangle_pairs),
        [{"len": np.int64(i), "values": np.full((i % 3, 2), i, np.float32)} for i in range(9)],
        unknown_length=True,
    ),
    Case(
        "generator.nested",
        lambda: generator(_nested),
        [Sample(Point(i64([i] * 3), i64([i, i + 1])), {"name": f"n{i}"}) for i in range(8)],
        unknown_length=True,
    ),
    Case("generator.strings", lambda: generator(lambda: STRINGS), STRINGS, unknown_length=True),
    Case("generator.bytes", lambda: generator(lambda: BYTES), BYTES, unknown_length=True),
    Case(
        "generator.dict_order_varies",
        lambda: generator(_dict_order_varies),
        [{"a": np.int64(i), "b": np.int64(-i)} for i in range(6)],
        unknown_length=True,
    ),
    Case(
        "generator.none_leaves",
        lambda: generator(_maybe),
        [(np.int64(i), None if i % 3 == 0 else "set") for i in range(9)],
        unknown_length=True,
    ),
    Case(
        "generator.reused_buffer",
        lambda: generator(_reused_buffer),
        [i64([i] * 3) for i in range(10)],
        unknown_length=True,
    ),
    Case("generator.endless", lambda: generator(_endless), scalars(range(25)), limit=25, unknown_length=True),
    Case(
        "generator.seekable",
        lambda: generator(lambda: Seekable(15)),
        lambda: _seekable_elements(15),
        unknown_length=True,
    ),
    Case(
        "generator.seekable_then_batch",
        lambda: generator(lambda: Seekable(15)).map(lambda position, words: position).batch(4),
        [i64(range(1, 5)), i64(range(5, 9)), i64(range(9, 13)), i64(range(13, 16))],
        unknown_length=True,
    ),
    Case(
        "generator.seekable_repeated",
        lambda: generator(lambda: Seekable(4)).repeat(3),
        lambda: _seekable_elements(4) * 3,
        unknown_length=True,
    ),
]
