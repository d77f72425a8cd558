"""Operators that move elements and do not look at them: every argument form, alone and on one another."""

import numpy as np

from differential.cases.case import Point, case

_GRID = np.arange(12).reshape(3, 4)

TAKE_SKIP = (
    *(case(f"take-{n}", lambda d, n=n: d.range(10).take(n)) for n in (0, 1, 9, 10, 11, 100, -1)),
    *(case(f"skip-{n}", lambda d, n=n: d.range(10).skip(n)) for n in (0, 1, 9, 10, 11, 100, -1)),
    case("take-negative", lambda d: d.range(10).take(-5), "negative-counts"),
    case("skip-negative", lambda d: d.range(10).skip(-5), "negative-counts"),
    case("take-numpy-count", lambda d: d.range(10).take(np.int32(2))),
    case("take-bool-count", lambda d: d.range(10).take(True), "bool-counts"),
    case("take-keyword", lambda d: d.range(10).take(count=3, name="first")),
    case("skip-keyword", lambda d: d.range(10).skip(count=3, name="rest")),
    case("skip-take", lambda d: d.range(10).skip(3).take(4)),
    case("take-skip", lambda d: d.range(10).take(4).skip(3)),
    case("skip-all-take", lambda d: d.range(4).skip(4).take(2)),
    case("take-take", lambda d: d.range(10).take(7).take(3).take(5)),
    case("skip-skip", lambda d: d.range(10).skip(2).skip(3)),
    case("take-of-rows", lambda d: d.slices((_GRID, [b"a", b"b", b"c"])).take(2)),
    case("skip-of-rows", lambda d: d.slices({"x": _GRID, "y": np.arange(3.0)}).skip(2)),
)

CACHE = (
    case("cache", lambda d: d.range(10).cache()),
    case("cache-empty-name", lambda d: d.range(10).cache("")),
    case("cache-keyword", lambda d: d.range(10).cache(filename="", name="kept")),
    case("cache-empty", lambda d: d.range(0).cache()),
    case("cache-repeat", lambda d: d.range(4).cache().repeat(3)),
    case("cache-repeat-skip", lambda d: d.range(4).cache().repeat(3).skip(5)),
    case("cache-take-repeat", lambda d: d.range(4).cache().take(4).repeat(2)),
    case("cache-skip", lambda d: d.range(9).cache().skip(4).batch(2)),
    case("cache-shard", lambda d: d.range(9).cache().shard(2, 1)),
    case("cache-of-rows", lambda d: d.slices({"x": _GRID, "y": [b"a", b"bc", b""]}).cache().repeat(2)),
    case("cache-map", lambda d: d.range(6).map(lambda x: x * 2).cache().map(lambda x: x + 1).repeat(2)),
    case("cache-filter", lambda d: d.range(12).filter(lambda x: x % 3 == 0).cache().repeat(2)),
    case("cache-of-batches", lambda d: d.range(7).batch(3).cache().unbatch().repeat(2)),
    case("cache-cache", lambda d: d.range(5).cache().cache().repeat(2)),
    case("cache-zip-with-itself", lambda d: (lambda c: d.zip((c, c.skip(2))))(d.range(6).cache())),
)

REPEAT = (
    *(case(f"repeat-{n}", lambda d, n=n: d.range(3).repeat(n)) for n in (0, 1, 3, -1, None)),
    case("repeat", lambda d: d.range(3).repeat()),
    case("repeat-negative", lambda d: d.range(3).repeat(-3), "negative-counts"),
    case("repeat-keyword", lambda d: d.range(3).repeat(count=2, name="again")),
    case("repeat-empty", lambda d: d.range(0).repeat()),
    case("repeat-empty-count", lambda d: d.range(0).repeat(3)),
    case("repeat-take", lambda d: d.range(3).repeat().take(7)),
    case("repeat-skip-take", lambda d: d.range(3).repeat().skip(5).take(4)),
    case("repeat-repeat", lambda d: d.range(2).repeat(2).repeat(2)),
    case("repeat-forever-repeat-zero", lambda d: d.range(2).repeat().repeat(0)),
    case("repeat-forever-repeat", lambda d: d.range(2).repeat().repeat(2)),
    case("repeat-take-repeat", lambda d: d.range(3).repeat().take(4).repeat(2)),
    case("repeat-batch-across-rounds", lambda d: d.range(3).repeat(3).batch(2)),
    case("repeat-of-batches", lambda d: d.range(5).batch(2).repeat(2)),
    case("repeat-of-structures", lambda d: d.slices({"x": _GRID, "y": [b"a", b"b", b"c"]}).repeat(2)),
)

BATCH = (
    case("batch", lambda d: d.range(10).batch(3)),
    case("batch-drop", lambda d: d.range(10).batch(3, drop_remainder=True)),
    case("batch-even", lambda d: d.range(9).batch(3)),
    case("batch-even-drop", lambda d: d.range(9).batch(3, True)),
    case("batch-of-one", lambda d: d.range(3).batch(1)),
    case("batch-larger", lambda d: d.range(2).batch(5)),
    case("batch-larger-drop", lambda d: d.range(2).batch(5, True)),
    case("batch-empty", lambda d: d.range(0).batch(3)),
    case("batch-numpy-size", lambda d: d.range(10).batch(np.int64(4))),
    case("batch-bool-size", lambda d: d.range(3).batch(True), "bool-counts"),
    case("batch-keyword", lambda d: d.range(5).batch(batch_size=2, drop_remainder=False, name="b")),
    case("batch-batch", lambda d: d.range(12).batch(2).batch(3)),
    case("batch-batch-drop", lambda d: d.range(11).batch(2, True).batch(3, True)),
    case("batch-batch-short-last", lambda d: d.range(10).batch(2).batch(3)),
    case("batch-three-times", lambda d: d.range(16).batch(2, True).batch(2, True).batch(2, True)),
    case("batch-unequal", lambda d: d.range(6).batch(4).batch(2)),
    case("batch-unequal-later", lambda d: d.range(10).batch(3).batch(2)),
    case("batch-rows", lambda d: d.slices(_GRID).batch(2)),
    case("batch-tuple", lambda d: d.slices((_GRID, np.arange(3.0))).batch(2)),
    case("batch-dict", lambda d: d.slices({"b": _GRID, "a": np.arange(3, dtype=np.float32)}).batch(2, True)),
    case("batch-nested", lambda d: d.slices((_GRID, {"q": (np.arange(3), _GRID)})).batch(2)),
    case("batch-namedtuple", lambda d: d.slices(Point(_GRID, np.arange(3))).batch(2)),
    case("batch-bytes", lambda d: d.slices([b"a", b"bc", b""]).batch(2)),
    case("batch-str", lambda d: d.slices(["a", "bc", "ü"]).batch(2), "text"),
    case("batch-bytes-matrix", lambda d: d.slices(np.array([[b"a", b"bc"]] * 3, dtype=object)).batch(2)),
    case("batch-bools", lambda d: d.slices([True, False, True]).batch(2)),
    case("batch-none-leaf", lambda d: d.slices((np.arange(3), None)).batch(2)),
    case("batch-none-in-dict", lambda d: d.slices({"a": np.arange(3), "b": None}).batch(2)),
    case("batch-empty-tuple-inside", lambda d: d.tensors((np.int8(1), ())).repeat(3).batch(2)),
    case("batch-zero-width", lambda d: d.slices(np.zeros((3, 0))).batch(2)),
    case("batch-take", lambda d: d.range(10).batch(3).take(2)),
    case("batch-skip", lambda d: d.range(10).batch(3).skip(3)),
    case("batch-shard", lambda d: d.range(10).batch(2).shard(2, 1)),
    case(
        "batch-of-variable-length",
        lambda d: d.generator(lambda: iter([[1], [1, 2]]), output_signature=d.spec((None,))).batch(2),
    ),
    case(
        "batch-of-equal-variable",
        lambda d: d.generator(lambda: iter([[1, 2], [3, 4]]), output_signature=d.spec((None,))).batch(2),
    ),
    case(
        "batch-singles-of-variable",
        lambda d: d.generator(lambda: iter([[1], [1, 2]]), output_signature=d.spec((None,))).batch(1),
    ),
)

UNBATCH = (
    case("unbatch", lambda d: d.slices(_GRID).unbatch()),
    case("unbatch-rows", lambda d: d.slices(np.arange(24).reshape(2, 3, 4)).unbatch()),
    case("unbatch-tensors", lambda d: d.tensors(_GRID).unbatch()),
    case("unbatch-twice", lambda d: d.slices(np.arange(24).reshape(2, 3, 4)).unbatch().unbatch()),
    case("unbatch-batch", lambda d: d.range(10).batch(3).unbatch()),
    case("unbatch-batch-drop", lambda d: d.range(10).batch(3, True).unbatch()),
    case("unbatch-batch-batch", lambda d: d.range(12).batch(2, True).batch(3, True).unbatch().unbatch()),
    case("unbatch-rebatch", lambda d: d.range(10).batch(3).unbatch().batch(4)),
    case("unbatch-unequal-later", lambda d: d.range(10).batch(3).batch(2).unbatch()),
    case("unbatch-tuple", lambda d: d.tensors((_GRID, np.arange(3.0))).unbatch()),
    case("unbatch-dict", lambda d: d.tensors({"b": _GRID, "a": np.arange(3.0)}).unbatch()),
    case("unbatch-namedtuple", lambda d: d.tensors(Point(_GRID, np.arange(3.0))).unbatch()),
    case("unbatch-bytes", lambda d: d.slices(np.array([[b"a", b"bc"], [b"", b"d"]], dtype=object)).unbatch()),
    case("unbatch-str", lambda d: d.slices([["a", "b"], ["c", "d"]]).unbatch(), "text"),
    case("unbatch-none-leaf", lambda d: d.tensors((np.arange(3), None)).unbatch()),
    case("unbatch-batched-none", lambda d: d.slices({"a": np.arange(3), "b": None}).batch(2).unbatch()),
    case("unbatch-empty-rows", lambda d: d.slices(np.zeros((2, 0))).unbatch(), "known-length"),
    case("unbatch-no-rows", lambda d: d.slices(np.zeros((0, 2))).unbatch()),
    case(
        "unbatch-variable",
        lambda d: d.generator(lambda: iter([[1], [], [1, 2]]), output_signature=d.spec((None,))).unbatch(),
    ),
    case("unbatch-take", lambda d: d.slices(_GRID).unbatch().take(5)),
    case("unbatch-skip", lambda d: d.slices(_GRID).unbatch().skip(5)),
    case("unbatch-shard", lambda d: d.slices(_GRID).unbatch().shard(5, 2)),
    case("unbatch-repeat", lambda d: d.slices(_GRID).unbatch().repeat(2).take(15)),
    case(
        "unbatch-mixed-sizes",
        lambda d: d.generator(
            lambda: iter([([1, 2], [1, 2]), ([1], [1, 2])]),
            output_signature=(d.spec((None,)), d.spec((None,))),
        ).unbatch(),
    ),
)

SHARD = (
    *(case(f"shard-10-{n}-{i}", lambda d, n=n, i=i: d.range(10).shard(n, i)) for n in (1, 3, 4) for i in range(n)),
    *(case(f"shard-2-5-{i}", lambda d, i=i: d.range(2).shard(5, i)) for i in range(5)),
    case("shard-empty", lambda d: d.range(0).shard(3, 1)),
    case("shard-shard", lambda d: d.range(20).shard(3, 1).shard(2, 1)),
    case("shard-skip", lambda d: d.range(20).skip(3).shard(4, 2)),
    case("shard-take", lambda d: d.range(20).shard(3, 2).take(2)),
    case("shard-batch", lambda d: d.range(20).shard(3, 2).batch(4)),
    case("shard-keyword", lambda d: d.range(5).shard(num_shards=2, index=1, name="s")),
    case("shard-bools", lambda d: d.range(5).shard(True, False), "bool-counts"),
    case("shard-rows", lambda d: d.slices((_GRID, [b"a", b"b", b"c"])).shard(2, 1)),
)

CONCATENATE = (
    case("concatenate", lambda d: d.range(3).concatenate(d.range(10, 12))),
    case("concatenate-keyword", lambda d: d.range(3).concatenate(dataset=d.range(1), name="c")),
    case("concatenate-empty-right", lambda d: d.range(3).concatenate(d.range(0))),
    case("concatenate-empty-left", lambda d: d.range(0).concatenate(d.range(3))),
    case("concatenate-self", lambda d: (lambda a: a.concatenate(a))(d.range(3))),
    case("concatenate-three", lambda d: d.range(2).concatenate(d.range(2, 4)).concatenate(d.range(4, 6))),
    case("concatenate-batch-across", lambda d: d.range(3).concatenate(d.range(3)).batch(4)),
    case("concatenate-take", lambda d: d.range(3).concatenate(d.range(5)).take(4)),
    case("concatenate-skip", lambda d: d.range(3).concatenate(d.range(5)).skip(4)),
    case("concatenate-shard", lambda d: d.range(3).concatenate(d.range(5)).shard(2, 1)),
    case("concatenate-repeat", lambda d: d.range(2).concatenate(d.range(3)).repeat(2)),
    case("concatenate-other-size", lambda d: d.range(4).batch(2, True).concatenate(d.range(6).batch(3, True))),
    case("concatenate-other-static", lambda d: d.range(4).batch(2, True).concatenate(d.range(4).batch(3))),
    case("concatenate-other-rank", lambda d: d.range(4).batch(2, True).concatenate(d.range(3))),
    case(
        "concatenate-dicts",
        lambda d: d.slices({"x": np.arange(2)}).concatenate(d.slices({"x": np.arange(3)})),
    ),
    case(
        "concatenate-dict-order",
        lambda d: d.slices({"b": np.arange(2), "a": np.arange(2.0)}).concatenate(
            d.slices({"a": np.arange(1.0), "b": np.arange(1)})
        ),
    ),
    case(
        "concatenate-namedtuples",
        lambda d: d.slices(Point(np.arange(2), np.arange(2))).concatenate(d.tensors(Point(np.int64(7), np.int64(8)))),
    ),
    case("concatenate-str-to-bytes", lambda d: d.slices([b"a"]).concatenate(d.slices(["b"])), "text-apart"),
    case("concatenate-bytes", lambda d: d.slices([b"a"]).concatenate(d.slices([b"bcd", b""]))),
)

ZIP = (
    case("zip-arguments", lambda d: d.zip(d.range(3), d.range(5))),
    case("zip-tuple", lambda d: d.zip((d.range(5), d.range(3)))),
    case("zip-keyword", lambda d: d.zip(datasets=(d.range(3), d.range(2)))),
    case("zip-dict", lambda d: d.zip({"b": d.range(3), "a": d.range(5)})),
    case("zip-namedtuple", lambda d: d.zip(Point(d.range(3), d.range(3)))),
    case("zip-nested", lambda d: d.zip((d.range(3), {"x": d.range(3), "y": (d.range(2), d.range(9))}))),
    case("zip-of-zip", lambda d: d.zip(d.zip(d.range(3), d.range(4)), d.range(3))),
    case(
        "zip-of-structures",
        lambda d: d.zip(d.slices({"x": _GRID}), d.slices(Point(np.arange(3), np.arange(3)))),
    ),
    case("zip-one", lambda d: d.zip(d.range(3))),
    case("zip-one-tuple", lambda d: d.zip((d.range(3),))),
    case("zip-three", lambda d: d.zip(d.range(3), d.range(1, 4), d.range(2, 5))),
    case("zip-empty", lambda d: d.zip(d.range(0), d.range(3))),
    case("zip-infinite-and-finite", lambda d: d.zip(d.range(3), d.counter())),
    case("zip-infinite", lambda d: d.zip(d.range(3).repeat(), d.counter())),
    case("zip-empty-and-infinite", lambda d: d.zip(d.range(0), d.counter())),
    case("zip-batches", lambda d: d.zip(d.range(5).batch(2), d.range(6).batch(3))),
    case("zip-batch", lambda d: d.zip(d.range(5), d.range(6)).batch(2)),
    case("zip-take", lambda d: d.zip(d.range(5), d.range(6)).take(2)),
    case("zip-skip", lambda d: d.zip(d.range(5), d.range(6)).skip(2)),
    case("zip-shard", lambda d: d.zip(d.range(5), d.range(6)).shard(2, 1)),
    case("zip-repeat", lambda d: d.zip(d.range(2), d.range(3)).repeat(2)),
    case("zip-self", lambda d: (lambda a: d.zip(a, a.skip(1)))(d.range(4))),
)

ENUMERATE = (
    case("enumerate", lambda d: d.range(3, 6).enumerate()),
    case("enumerate-start", lambda d: d.range(3).enumerate(5)),
    case("enumerate-negative-start", lambda d: d.range(3).enumerate(start=-2)),
    case("enumerate-numpy-start", lambda d: d.range(3).enumerate(start=np.int32(1), name="e")),
    case("enumerate-large-start", lambda d: d.range(3).enumerate(2**62)),
    case("enumerate-empty", lambda d: d.range(0).enumerate()),
    case("enumerate-tuple", lambda d: d.slices((np.arange(3), np.arange(3.0))).enumerate()),
    case("enumerate-dict", lambda d: d.slices({"a": np.arange(3)}).enumerate(1)),
    case("enumerate-enumerate", lambda d: d.range(3).enumerate().enumerate(7)),
    case("enumerate-skip", lambda d: d.range(5).enumerate().skip(2)),
    case("enumerate-after-skip", lambda d: d.range(5).skip(2).enumerate()),
    case("enumerate-shard", lambda d: d.range(5).enumerate().shard(2, 1)),
    case("enumerate-repeat", lambda d: d.range(2).enumerate().repeat(2)),
    case("enumerate-after-repeat", lambda d: d.range(2).repeat(2).enumerate()),
    case("enumerate-batch", lambda d: d.range(5).enumerate().batch(2)),
)

PLAIN = (
    case("prefetch", lambda d: d.range(5).prefetch(2)),
    case("prefetch-zero", lambda d: d.range(5).prefetch(0)),
    case("prefetch-autotune", lambda d: d.range(5).prefetch(d.AUTOTUNE)),
    case("prefetch-keyword", lambda d: d.range(5).prefetch(buffer_size=1, name="p")),
    case("prefetch-none", lambda d: d.range(5).prefetch(None)),
    case("prefetch-between", lambda d: d.range(3).prefetch(1).repeat(2).prefetch(3).take(4)),
    case("prefetch-infinite", lambda d: d.counter().prefetch(2).batch(3).prefetch(1)),
    case("options", lambda d: d.range(3).with_options(d.Options())),
    case("options-between", lambda d: d.range(3).with_options(d.Options()).batch(2)),
    case("shuffle-one", lambda d: d.range(5).shuffle(1)),
    case("shuffle-empty", lambda d: d.range(0).shuffle(3)),
    case("shuffle-one-element", lambda d: d.slices({"a": _GRID[:1]}).shuffle(10, seed=1)),
    case("shuffle-one-of-structures", lambda d: d.slices((_GRID, [b"a", b"b", b"c"])).shuffle(buffer_size=1)),
)

CASES = (*TAKE_SKIP, *CACHE, *REPEAT, *BATCH, *UNBATCH, *SHARD, *CONCATENATE, *ZIP, *ENUMERATE, *PLAIN)
