"""Operators that call the user's functions, and the ways to get one value out of a dataset."""

import numpy as np

from differential.cases.case import Point, case

_GRID = np.arange(12).reshape(3, 4)

MAP = (
    case("map", lambda d: d.range(5).map(lambda x: x * 2)),
    case("map-keyword", lambda d: d.range(5).map(map_func=lambda x: x * 2, name="m")),
    case("map-identity", lambda d: d.range(5).map(lambda x: x)),
    case("map-divide", lambda d: d.range(5).map(lambda x: x / 2)),
    case("map-floor-divide-negative", lambda d: d.range(-3, 3).map(lambda x: x // 2)),
    case("map-modulo-negative", lambda d: d.range(-3, 3).map(lambda x: x % 3)),
    case("map-compare", lambda d: d.range(3).map(lambda x: x > 1)),
    case("map-keeps-int8", lambda d: d.slices(np.arange(3, dtype=np.int8)).map(lambda x: x + x)),
    case("map-keeps-float32", lambda d: d.slices(np.arange(3, dtype=np.float32)).map(lambda x: x * x)),
    case("map-to-tuple", lambda d: d.range(3).map(lambda x: (x, x + 1))),
    case("map-to-one-tuple", lambda d: d.range(3).map(lambda x: (x,))),
    case("map-to-nested", lambda d: d.range(3).map(lambda x: ((x,), {"k": (x, x * x)}))),
    case("map-to-dict-order", lambda d: d.range(3).map(lambda x: {"b": x, "a": x + 1})),
    case("map-to-namedtuple", lambda d: d.range(3).map(lambda x: Point(x, x + 1))),
    case("map-to-array", lambda d: d.range(3).map(lambda x: d.f.stack([x, x * x]))),
    case("map-to-numpy-array", lambda d: d.range(3).map(lambda x: np.arange(2))),
    case("map-to-numpy-scalar", lambda d: d.range(3).map(lambda x: np.float32(2))),
    case("map-to-int", lambda d: d.range(3).map(lambda x: 1), "python-numbers"),
    case("map-to-float", lambda d: d.range(3).map(lambda x: 1.5), "python-numbers"),
    case("map-to-bool", lambda d: d.range(3).map(lambda x: True)),
    case("map-to-bytes", lambda d: d.range(3).map(lambda x: b"a")),
    case("map-to-str", lambda d: d.range(3).map(lambda x: "a"), "text"),
    case("map-to-none-leaf", lambda d: d.range(3).map(lambda x: (x, None))),
    case("map-to-list-inside", lambda d: d.range(3).map(lambda x: ([x, x], x))),
    case("map-to-list", lambda d: d.range(3).map(lambda x: [x, x + 1]), "lists-are-arrays"),
    case("map-to-variable-length", lambda d: d.range(4).map(lambda x: d.f.fill(x, x))),
    case("map-tuple-unpacked", lambda d: d.zip(d.range(3), d.range(5, 9)).map(lambda a, b: a + b)),
    case("map-tuple-star", lambda d: d.zip(d.range(3), d.range(3)).map(lambda *a: np.int64(len(a)))),
    case("map-one-tuple-unpacked", lambda d: d.range(3).map(lambda x: (x,)).map(lambda x: x + 1)),
    case(
        "map-nested-tuple-whole",
        lambda d: d.zip(d.range(3), d.zip(d.range(3), d.range(3))).map(lambda a, b: a + b[1]),
    ),
    case("map-one-nested-tuple", lambda d: d.range(3).map(lambda x: ((x, x),)).map(lambda x: x[0] + x[1])),
    case(
        "map-namedtuple-whole", lambda d: d.slices(Point(np.arange(3), np.arange(3))).map(lambda p: p.a + p.b)
    ),
    case(
        "map-namedtuple-star",
        lambda d: d.slices(Point(np.arange(3), np.arange(3))).map(lambda *a: np.int64(len(a))),
    ),
    case(
        "map-namedtuple-inside",
        lambda d: d.zip(d.slices(Point(np.arange(3), np.arange(3))), d.range(3)).map(lambda p, x: p.b + x),
    ),
    case(
        "map-dict-whole", lambda d: d.slices({"x": np.arange(3), "y": np.arange(3.0)}).map(lambda e: e["x"])
    ),
    case("map-dict-extended", lambda d: d.slices({"x": np.arange(3)}).map(lambda e: {"z": e["x"] * 2, **e})),
    case("map-none-leaf-argument", lambda d: d.slices((np.arange(3), None)).map(lambda a, b: (b, a))),
    case("map-map", lambda d: d.range(5).map(lambda x: x + 1).map(lambda x: x * 10).map(lambda x: (x, -x))),
    case(
        "map-map-tuple",
        lambda d: d.range(5).map(lambda x: (x, x + 1)).map(lambda a, b: (b, a)).map(lambda a, b: a - b),
    ),
    case("map-of-batches", lambda d: d.range(5).batch(2).map(lambda x: d.f.sum(x))),
    case("map-batch", lambda d: d.range(5).map(lambda x: (x, x * x)).batch(2)),
    case("map-batch-drop", lambda d: d.range(5).map(lambda x: {"q": x}).batch(2, True)),
    case("map-batch-unequal", lambda d: d.range(5).map(lambda x: d.f.arange(x)).batch(2)),
    case("map-batch-unequal-later", lambda d: d.range(5).map(lambda x: d.f.arange(x // 3)).batch(3)),
    case("map-unbatch", lambda d: d.range(4).map(lambda x: d.f.arange(x)).unbatch()),
    case("map-unbatch-pairs", lambda d: d.range(4).map(lambda x: (d.f.arange(x), d.f.fill(x, x))).unbatch()),
    case(
        "map-unbatch-mixed-sizes",
        lambda d: d.range(4).map(lambda x: (d.f.arange(x), d.f.arange(x // 2 * 2))).unbatch(),
    ),
    case("map-take", lambda d: d.range(9).map(lambda x: x * 2).take(3)),
    case("map-skip", lambda d: d.range(9).map(lambda x: x * 2).skip(7)),
    case("map-shard", lambda d: d.range(9).map(lambda x: x * 2).shard(4, 1)),
    case("map-repeat", lambda d: d.range(3).map(lambda x: x * 2).repeat(2)),
    case("map-enumerate", lambda d: d.range(3).map(lambda x: x * 2).enumerate().map(lambda i, x: i - x)),
    case(
        "map-concatenate", lambda d: d.range(3).map(lambda x: -x).concatenate(d.range(2).map(lambda x: x * 5))
    ),
    case("map-zip", lambda d: d.zip(d.range(3).map(lambda x: -x), d.range(4).map(lambda x: (x, x)))),
    case("map-empty", lambda d: d.range(0).map(lambda x: (x, x))),
    case("map-raises", lambda d: d.range(5).map(lambda x: d.f.check(x, x != 2))),
    case("map-raises-first", lambda d: d.range(5).map(lambda x: d.f.check(x, x != 0))),
    case("map-raises-batch", lambda d: d.range(9).map(lambda x: d.f.check(x, x != 7)).batch(3)),
    case("map-raises-beyond-take", lambda d: d.range(9).map(lambda x: d.f.check(x, x != 7)).take(6)),
    case("map-raises-within-skip", lambda d: d.range(9).map(lambda x: d.f.check(x, x != 2)).skip(5)),
    case("map-raises-other-shard", lambda d: d.range(9).map(lambda x: d.f.check(x, x != 2)).shard(2, 1)),
)

FILTER = (
    case("filter", lambda d: d.range(10).filter(lambda x: x % 2 == 0)),
    case("filter-keyword", lambda d: d.range(3).filter(predicate=lambda x: x > 0, name="f")),
    case("filter-all", lambda d: d.range(3).filter(lambda x: True)),
    case("filter-none", lambda d: d.range(3).filter(lambda x: False)),
    case("filter-numpy-bool", lambda d: d.range(3).filter(lambda x: np.bool_(True))),
    case("filter-empty", lambda d: d.range(0).filter(lambda x: x > 0)),
    case("filter-tuple", lambda d: d.zip(d.range(3), d.range(3)).filter(lambda a, b: a + b > 2)),
    case("filter-dict", lambda d: d.slices({"x": np.arange(5), "y": _grid(5)}).filter(lambda e: e["x"] > 2)),
    case(
        "filter-namedtuple", lambda d: d.slices(Point(np.arange(5), np.arange(5))).filter(lambda p: p.a > 2)
    ),
    case("filter-bytes", lambda d: d.slices([b"a", b"b", b"a"]).filter(lambda x: x == b"a")),
    case("filter-rows", lambda d: d.slices(_GRID).filter(lambda x: x[0] > 0)),
    case(
        "filter-bools", lambda d: d.slices(np.array([[True, False], [False, False]])).filter(lambda x: x[0])
    ),
    case("filter-filter", lambda d: d.range(20).filter(lambda x: x % 2 == 0).filter(lambda x: x % 3 == 0)),
    case("filter-map", lambda d: d.range(9).filter(lambda x: x > 5).map(lambda x: x * 2)),
    case("filter-take", lambda d: d.range(9).filter(lambda x: x % 2 == 1).take(2)),
    case("filter-skip", lambda d: d.range(9).filter(lambda x: x % 2 == 1).skip(2)),
    case("filter-shard", lambda d: d.range(9).filter(lambda x: x % 2 == 1).shard(2, 1)),
    case("filter-batch", lambda d: d.range(9).filter(lambda x: x % 2 == 1).batch(3)),
    case("filter-batches", lambda d: d.range(9).batch(2).filter(lambda x: d.f.sum(x) > 5)),
    case("filter-repeat", lambda d: d.range(3).filter(lambda x: x > 0).repeat(2)),
    case("filter-repeat-forever", lambda d: d.range(3).filter(lambda x: x > 0).repeat()),
    case("filter-none-repeat-forever", lambda d: d.range(3).filter(lambda x: x > 5).repeat()),
    case("filter-enumerate", lambda d: d.range(9).filter(lambda x: x > 5).enumerate()),
    case("filter-raises", lambda d: d.range(5).filter(lambda x: d.f.check(x, x != 2) >= 0)),
    case("take-while", lambda d: d.range(10).take_while(lambda x: x < 4)),
    case("take-while-keyword", lambda d: d.range(10).take_while(predicate=lambda x: x < 4, name="t")),
    case("take-while-all", lambda d: d.range(3).take_while(lambda x: x < 100)),
    case("take-while-none", lambda d: d.range(3).take_while(lambda x: x < 0)),
    case("take-while-not-again", lambda d: d.slices(np.array([1, 9, 1])).take_while(lambda x: x < 5)),
    case("take-while-infinite", lambda d: d.counter().take_while(lambda x: x < 5)),
    case("take-while-tuple", lambda d: d.zip(d.range(3), d.range(3)).take_while(lambda a, b: a + b < 3)),
    case("take-while-batch", lambda d: d.range(9).take_while(lambda x: x < 5).batch(2)),
    case("take-while-skip", lambda d: d.range(9).skip(2).take_while(lambda x: x < 5).skip(1)),
    case("take-while-repeat", lambda d: d.range(9).take_while(lambda x: x < 2).repeat(3)),
    case(
        "take-while-raises-beyond",
        lambda d: d.range(9).map(lambda x: d.f.check(x, x != 7)).take_while(lambda x: x < 4),
    ),
)

FLAT_MAP = (
    case("flat-map-range", lambda d: d.range(4).flat_map(lambda x: d.range(x))),
    case("flat-map-keyword", lambda d: d.range(4).flat_map(map_func=lambda x: d.range(x), name="f")),
    case("flat-map-empty", lambda d: d.range(0).flat_map(lambda x: d.range(x))),
    case("flat-map-empty-inner", lambda d: d.range(3).flat_map(lambda x: d.range(0))),
    case("flat-map-tensors", lambda d: d.range(3).flat_map(lambda x: d.tensors(x).repeat(2))),
    case("flat-map-slices", lambda d: d.slices(_GRID).flat_map(lambda x: d.slices(x))),
    case("flat-map-constructor", lambda d: d.slices(_GRID).flat_map(d.slices)),
    case("flat-map-list", lambda d: d.range(3).flat_map(lambda x: d.slices([x, x + 1]))),
    case("flat-map-pairs", lambda d: d.range(3).flat_map(lambda x: d.tensors((x, x * x)).repeat(2))),
    case("flat-map-dicts", lambda d: d.range(3).flat_map(lambda x: d.slices({"k": d.f.stack([x, x + 1])}))),
    case("flat-map-zip", lambda d: d.range(3).flat_map(lambda x: d.zip(d.range(2), d.tensors(x).repeat()))),
    case(
        "flat-map-of-tuple",
        lambda d: d.zip(d.range(3), d.range(1, 4)).flat_map(lambda a, b: d.range(a, a + b)),
    ),
    case(
        "flat-map-of-dict", lambda d: d.slices({"n": np.array([2, 0, 1])}).flat_map(lambda e: d.range(e["n"]))
    ),
    case(
        "flat-map-of-namedtuple",
        lambda d: d.slices(Point(np.array([1, 2]), np.array([3, 4]))).flat_map(lambda p: d.range(p.a, p.b)),
    ),
    case(
        "flat-map-nested",
        lambda d: d.range(4).flat_map(lambda x: d.range(x).flat_map(lambda y: d.tensors(y).repeat(x))),
    ),
    case(
        "flat-map-flat-map",
        lambda d: d.range(4).flat_map(lambda x: d.range(x)).flat_map(lambda x: d.range(x + 1)),
    ),
    case(
        "flat-map-inner-pipeline",
        lambda d: d.range(4).flat_map(
            lambda x: d.range(x + 3).map(lambda y: y * x).filter(lambda y: y > 1).batch(2)
        ),
    ),
    case("flat-map-infinite-inner", lambda d: d.range(3).flat_map(lambda x: d.tensors(x).repeat())),
    case("flat-map-infinite-outer", lambda d: d.counter().flat_map(lambda x: d.range(x % 3))),
    case("flat-map-take", lambda d: d.range(5).flat_map(lambda x: d.range(x)).take(5)),
    case("flat-map-skip", lambda d: d.range(5).flat_map(lambda x: d.range(x)).skip(5)),
    case("flat-map-batch", lambda d: d.range(5).flat_map(lambda x: d.range(x)).batch(4)),
    case("flat-map-shard", lambda d: d.range(5).flat_map(lambda x: d.range(x)).shard(3, 1)),
    case("flat-map-repeat", lambda d: d.range(3).flat_map(lambda x: d.range(x)).repeat(2)),
    case("flat-map-batches", lambda d: d.range(10).batch(3).flat_map(lambda x: d.slices(x))),
    case("flat-map-raises", lambda d: d.range(5).flat_map(lambda x: d.range(d.f.check(x, x != 3)))),
    case(
        "flat-map-inner-raises",
        lambda d: d.range(5).flat_map(lambda x: d.range(x).map(lambda y: d.f.check(y, y != 2))),
    ),
)

VALUES = (
    case("reduce-sum", lambda d: d.range(5).reduce(np.int64(0), lambda s, x: s + x)),
    case(
        "reduce-keyword",
        lambda d: d.range(5).reduce(initial_state=np.int64(0), reduce_func=lambda s, x: s + x),
    ),
    case("reduce-count", lambda d: d.range(5).reduce(np.int64(0), lambda s, x: s + 1)),
    case("reduce-empty", lambda d: d.range(0).reduce(np.int64(7), lambda s, x: s + x)),
    case("reduce-float", lambda d: d.slices(np.arange(4.0)).reduce(np.float64(0.5), lambda s, x: s * 2 + x)),
    case("reduce-order", lambda d: d.range(1, 6).reduce(np.int64(0), lambda s, x: s * 10 + x)),
    case(
        "reduce-tuple-state",
        lambda d: d.range(5).reduce((np.int64(0), np.int64(1)), lambda s, x: (s[0] + x, s[1] * 2)),
    ),
    case(
        "reduce-dict-state", lambda d: d.range(5).reduce({"a": np.int64(0)}, lambda s, x: {"a": s["a"] + x})
    ),
    case(
        "reduce-tuple-elements",
        lambda d: d.zip(d.range(3), d.range(3)).reduce(np.int64(0), lambda s, x: s + x[0] * x[1]),
    ),
    case(
        "reduce-dict-elements",
        lambda d: d.slices({"x": np.arange(3)}).reduce(np.int64(0), lambda s, x: s + x["x"]),
    ),
    case(
        "reduce-growing-array",
        lambda d: d.range(5).batch(2).reduce(np.zeros(0, np.int64), lambda s, x: d.f.concat([s, x])),
    ),
    case("reduce-python-state", lambda d: d.range(5).reduce(0, lambda s, x: s + 1), "python-numbers"),
    case("single-element", lambda d: d.range(7, 8).get_single_element()),
    case("single-batch", lambda d: d.range(5).batch(5).get_single_element()),
    case("single-tuple", lambda d: d.zip(d.range(1), d.range(1)).get_single_element()),
    case("single-dict", lambda d: d.slices({"b": _GRID[:1], "a": [b"x"]}).get_single_element()),
    case("single-of-filter", lambda d: d.range(9).filter(lambda x: x == 4).get_single_element()),
    case("single-of-none", lambda d: d.range(0).get_single_element()),
    case("single-of-none-filtered", lambda d: d.range(9).filter(lambda x: x == 40).get_single_element()),
    case("single-of-two", lambda d: d.range(2).get_single_element()),
    case("single-of-infinite", lambda d: d.counter().get_single_element()),
    case("len", lambda d: len(d.range(5))),
    case("len-batch", lambda d: len(d.range(5).batch(2))),
    case("len-empty", lambda d: len(d.range(0))),
    case("len-zip", lambda d: len(d.zip(d.range(5), d.counter()))),
    case("len-infinite", lambda d: len(d.range(3).repeat()), python_error=True),
    case("len-filter", lambda d: len(d.range(3).filter(lambda x: True)), python_error=True),
    case("len-generator", lambda d: len(d.generator(lambda: iter([1]), np.int64)), python_error=True),
    case("true-when-empty", lambda d: bool(d.range(0))),
    case("contains", lambda d: np.int64(3) in d.list(d.range(5))),
    case("equality-is-identity", lambda d: d.range(3) == d.range(3)),
    case("apply", lambda d: d.range(5).apply(lambda ds: ds.take(2))),
    case("apply-keyword", lambda d: d.range(5).apply(transformation_func=lambda ds: ds.batch(2))),
    case(
        "apply-chain",
        lambda d: d.range(5).apply(lambda ds: ds.map(lambda x: x + 1)).apply(lambda ds: ds.batch(2)),
    ),
    case("reshuffles", lambda d: (lambda ds: d.list(ds) == d.list(ds))(d.range(50).shuffle(50, seed=1))),
    case(
        "reshuffles-not", lambda d: (lambda ds: d.list(ds) == d.list(ds))(d.range(50).shuffle(50, 1, False))
    ),
    case(
        "reshuffles-rounds",
        lambda d: (lambda a: a[:50] == a[50:])(d.list(d.range(50).shuffle(50, seed=1).repeat(2))),
    ),
    case(
        "reshuffles-rounds-not",
        lambda d: (lambda a: a[:50] == a[50:])(d.list(d.range(50).shuffle(50, 1, False).repeat(2))),
    ),
    case("random-again", lambda d: (lambda ds: d.list(ds) == d.list(ds))(d.random(seed=4).take(9))),
    case("random-rerandomized", lambda d: (lambda ds: d.list(ds) == d.list(ds))(d.random(4, True).take(9))),
    case("random-by-seed", lambda d: d.list(d.random(seed=4).take(9)) == d.list(d.random(seed=5).take(9))),
)


def _grid(rows: int) -> np.ndarray:
    return np.arange(rows * 2).reshape(rows, 2)


CASES = (*MAP, *FILTER, *FLAT_MAP, *VALUES)
