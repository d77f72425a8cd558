"""What Forebay does in its own way, spelt out: it cannot be worked out from what tf.data does.

Most of it is what tf.data refuses only because its elements are tensors and its functions are traced.
"""

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
    case("reduce-from-zero", lambda d: d.range(5).reduce(0, lambda s, x: s + x), "accepted", gives=np.int64(10)),
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
    case(
        "slices-ragged-list",
        lambda d: d.slices([[1, 2], [3]]),
        "accepted",
        gives=[np.array([1, 2]), np.array([3])],
    ),
    case("slices-none-in-list", lambda d: d.slices([1, None]), "accepted", gives=[np.int64(1), None]),
    case("map-to-none", lambda d: d.range(2).map(lambda x: None), "accepted", gives=[None, None]),
    case("map-to-empty-tuple", lambda d: d.range(2).map(lambda x: ()), "accepted", gives=[(), ()]),
    case("map-to-empty-dict", lambda d: d.range(2).map(lambda x: {}), "accepted", gives=[{}, {}]),
    case(
        "zip-on-a-dataset",
        lambda d: d.range(2).zip(d.range(5, 7)),
        "zip-method",
        gives=[(np.int64(0), np.int64(5)), (np.int64(1), np.int64(6))],
    ),
    case("take-beyond-int64", lambda d: d.range(1).take(2**70), "accepted", gives=[np.int64(0)]),
    case("reduce-python-state", lambda d: d.range(5).reduce(0, lambda s, x: s + 1), "any-state", gives=5),
    case(
        "reduce-other-structure",
        lambda d: d.range(2).reduce(np.int64(7), lambda s, x: (s, x)),
        "any-state",
        gives=((np.int64(7), np.int64(0)), np.int64(1)),
    ),
    case(
        "reduce-other-dtype",
        lambda d: d.range(3).reduce(np.int64(0), lambda s, x: 1.5),
        "any-state",
        gives=1.5,
    ),
    case("reduce-to-none", lambda d: d.range(3).reduce(np.int64(0), lambda s, x: None), "any-state", gives=None),
    case(
        "shuffle-no-size",
        lambda d: sorted(d.list(d.range(3).shuffle())) == [0, 1, 2],
        "shuffle-everything",
        gives=True,
    ),
    case(
        "after-map-error",
        lambda d: d.trace(d.range(5).map(lambda x: d.f.check(x, x != 2))),
        "errors-stay",
        gives=(0, 1, "error", "error", "error", "error", "error"),
    ),
    case(
        "after-batched-error",
        lambda d: d.trace(d.range(5).map(lambda x: d.f.check(x, x != 2)).batch(2)),
        "errors-stay",
        gives=([0, 1], "error", "error", "error", "error", "error", "error"),
    ),
    case(
        "after-filter-error",
        lambda d: d.trace(d.range(5).filter(lambda x: d.f.check(x, x != 2) >= 0)),
        "errors-stay",
        gives=(0, 1, "error", "error", "error", "error", "error"),
    ),
    case(
        "after-unequal-batch",
        lambda d: d.trace(d.range(5).map(lambda x: d.f.arange(x // 3)).batch(2)),
        "errors-stay",
        gives=([[], []], "error", "error", "error", "error", "error", "error"),
    ),
    case("writable", lambda d: d.list(d.slices(np.zeros((1, 2))))[0].flags.writeable, "writable", gives=True),
)
