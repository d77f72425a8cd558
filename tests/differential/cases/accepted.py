"""What tf.data refuses only because its elements are tensors and its functions are traced."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from differential.cases.case import case


@dataclass
class Pair:
    a: Any
    b: Any


class Opaque:
    """Equal to nothing but itself."""


_OPAQUE = Opaque()
_DAY = np.datetime64("2020-01-01")

CASES = (
    case(
        "slices-dataclass",
        lambda d: d.slices(Pair(np.arange(2), np.arange(2.0))),
        "accepted",
        gives=[Pair(np.int64(0), np.float64(0)), Pair(np.int64(1), np.float64(1))],
    ),
    case(
        "tensors-dataclass",
        lambda d: d.tensors(Pair(np.int8(1), b"x")).batch(2),
        "accepted",
        gives=[Pair(np.array([1], np.int8), np.array([b"x"], object))],
    ),
    case(
        "map-to-dataclass",
        lambda d: d.range(2).map(lambda x: Pair(x, x + 1)).map(lambda p: p.b * 10),
        "accepted",
        gives=[np.int64(10), np.int64(20)],
    ),
    case("map-to-object", lambda d: d.range(2).map(lambda x: _OPAQUE), "accepted", gives=[_OPAQUE, _OPAQUE]),
    case("tensors-object", lambda d: d.tensors(_OPAQUE), "accepted", gives=[_OPAQUE]),
    case("slices-datetime", lambda d: d.slices(np.array([_DAY])), "accepted", gives=[_DAY]),
    case(
        "map-int-times-float",
        lambda d: d.range(2).map(lambda x: x * 1.5),
        "accepted",
        gives=[np.float64(0), np.float64(1.5)],
    ),
    case(
        "reduce-from-zero", lambda d: d.range(5).reduce(0, lambda s, x: s + x), "accepted", gives=np.int64(10)
    ),
    case(
        "flat-map-int32-range",
        lambda d: d.slices(np.array([2], np.int32)).flat_map(lambda n: d.range(n)),
        "accepted",
        gives=[np.int64(0), np.int64(1)],
    ),
    case(
        "map-plain-python",
        lambda d: d.slices([b"a", b"bc"]).map(lambda x: len(x)),
        "accepted",
        gives=[np.int64(1), np.int64(2)],
    ),
    case(
        "generator-inferred",
        lambda d: d.generator(lambda: iter([1, 2])),
        "accepted",
        gives=[np.int64(1), np.int64(2)],
    ),
    case(
        "mixed-dict-keys",
        lambda d: d.tensors({1: np.int8(2), "a": np.int8(4)}),
        "accepted",
        gives=[{1: np.int8(2), "a": np.int8(4)}],
    ),
)
