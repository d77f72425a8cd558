"""Arguments that cannot be meant: both libraries must refuse them, and when building, not when running."""

from typing import Any

import numpy as np

from differential.cases.case import Point, case

# Fractions, None and text are refused wherever a count is asked for; `repeat` and `prefetch` know None.
_NO_COUNT: dict[str, Any] = {"fraction": 2.5, "whole-float": 2.0, "text": "2", "none": None}

_COUNTED = {
    "range": lambda d, n: d.range(n),
    "take": lambda d, n: d.range(5).take(n),
    "skip": lambda d, n: d.range(5).skip(n),
    "repeat": lambda d, n: d.range(5).repeat(n),
    "batch": lambda d, n: d.range(5).batch(n),
    "shard": lambda d, n: d.range(5).shard(n, 0),
    "shard-index": lambda d, n: d.range(5).shard(3, n),
    "enumerate": lambda d, n: d.range(5).enumerate(n),
    "prefetch": lambda d, n: d.range(5).prefetch(n),
    "shuffle": lambda d, n: d.range(5).shuffle(n),
    "counter": lambda d, n: d.counter(n),
    "counter-step": lambda d, n: d.counter(0, n),
}

# None has a meaning here: for ever, tuned, and in Forebay everything.
_KNOWS_NONE = {"repeat", "prefetch", "shuffle"}

COUNTS = (
    *(
        case(f"{operator}-{kind}", lambda d, build=build, n=n: build(d, n))
        for operator, build in _COUNTED.items()
        for kind, n in _NO_COUNT.items()
        if not (n is None and operator in _KNOWS_NONE)
    ),
    case("range-no-arguments", lambda d: d.range(), python_error=True),
    case("range-four-arguments", lambda d: d.range(1, 2, 3, 4), python_error=True),
    case("range-step-zero", lambda d: d.range(2, 5, 0)),
    case("range-text-type", lambda d: d.range(3, output_type=d.string), "checked-when-built"),
    case("range-bool-type", lambda d: d.range(3, output_type=np.bool_), "checked-when-built"),
    case("batch-zero", lambda d: d.range(5).batch(0)),
    case("batch-negative", lambda d: d.range(5).batch(-1)),
    case("batch-drop-number", lambda d: d.range(5).batch(2, drop_remainder=1)),
    case("batch-drop-text", lambda d: d.range(5).batch(2, drop_remainder="yes")),
    case("shuffle-zero", lambda d: d.range(5).shuffle(0)),
    case("shuffle-negative", lambda d: d.range(5).shuffle(-1)),
    case("shuffle-text-seed", lambda d: d.range(5).shuffle(3, seed="a")),
    case("shuffle-fraction-seed", lambda d: d.range(5).shuffle(3, seed=1.5)),
    case("random-text-seed", lambda d: d.random(seed="a")),
    case("prefetch-negative", lambda d: d.range(5).prefetch(-2)),
    case("shard-zero", lambda d: d.range(5).shard(0, 0)),
    case("shard-negative", lambda d: d.range(5).shard(-2, 0)),
    case("shard-hint", lambda d: d.range(5).shard(-1, 0), "checked-when-built"),
    case("shard-index-is-count", lambda d: d.range(5).shard(2, 2)),
    case("shard-index-beyond", lambda d: d.range(5).shard(2, 5)),
    case("shard-index-negative", lambda d: d.range(5).shard(2, -1)),
)

INPUT = (
    case("slices-number", lambda d: d.slices(3)),
    case("slices-numpy-scalar", lambda d: d.slices(np.int64(3))),
    case("slices-one-str", lambda d: d.slices("abc")),
    case("slices-one-bytes", lambda d: d.slices(b"abc")),
    case("slices-none", lambda d: d.slices(None)),
    case("slices-empty-tuple", lambda d: d.slices(())),
    case("slices-empty-dict", lambda d: d.slices({})),
    case("slices-set", lambda d: d.slices({1, 2})),
    case("slices-iterator", lambda d: d.slices(iter([1, 2]))),
    case("slices-list-of-dicts", lambda d: d.slices([{"a": 1}, {"a": 2}])),
    case("slices-text-beside-numbers", lambda d: d.slices([("a", 1), ("b", 2)])),
    case("slices-dataset", lambda d: d.slices(d.range(3))),
    case("slices-generator-object", lambda d: d.slices(x for x in (1, 2))),
    case("slices-unequal-tuple", lambda d: d.slices((np.arange(2), np.arange(3)))),
    case("slices-unequal-dict", lambda d: d.slices({"a": np.arange(2), "b": np.arange(3)})),
    case("slices-scalar-beside-array", lambda d: d.slices((np.arange(2), 3))),
    case("slices-int-beyond-int64", lambda d: d.slices([2**70])),
    case("tensors-ragged-list", lambda d: d.tensors([[1, 2], [3]])),
    case("tensors-int-beyond-int64", lambda d: d.tensors(2**70)),
    case("tensors-empty-tuple", lambda d: d.tensors(())),
    case("tensors-empty-dict", lambda d: d.tensors({})),
    case("tensors-none", lambda d: d.tensors(None)),
    case("generator-not-callable", lambda d: d.generator([1, 2], output_signature=d.spec())),
    case("generator-object", lambda d: d.generator((x for x in (1, 2)), output_signature=d.spec())),
    case(
        "generator-types-and-signature",
        lambda d: d.generator(lambda: [1], np.int64, output_signature=d.spec()),
    ),
)

COMBINED = (
    case("zip-nothing", lambda d: d.zip()),
    case("zip-empty-tuple", lambda d: d.zip(())),
    case("zip-empty-dict", lambda d: d.zip({})),
    case("zip-list", lambda d: d.zip([d.range(3), d.range(3)])),
    case("zip-number", lambda d: d.zip(3)),
    case("zip-number-inside", lambda d: d.zip((d.range(3), 4))),
    case("zip-arguments-and-keyword", lambda d: d.zip(d.range(3), datasets=(d.range(3),))),
    case("concatenate-number", lambda d: d.range(3).concatenate(3)),
    case("concatenate-list", lambda d: d.range(3).concatenate([1, 2])),
    case("concatenate-dtype", lambda d: d.range(3).concatenate(d.range(2, output_type=np.int32))),
    case("concatenate-bytes-to-numbers", lambda d: d.slices([b"a"]).concatenate(d.range(3))),
    case("concatenate-tuple-to-scalar", lambda d: d.range(3).concatenate(d.zip(d.range(3), d.range(3)))),
    case("concatenate-one-tuple-to-scalar", lambda d: d.range(3).concatenate(d.zip((d.range(3),)))),
    case("concatenate-dict-keys", lambda d: d.tensors({"a": b"x"}).concatenate(d.tensors({"b": b"x"}))),
    case("concatenate-dict-dtype", lambda d: d.tensors({"a": b"x"}).concatenate(d.tensors({"a": np.int8(1)}))),
    case(
        "concatenate-longer-tuple",
        lambda d: d.tensors((b"x", b"y")).concatenate(d.tensors((b"x", b"y", b"z"))),
    ),
    case(
        "concatenate-namedtuple-to-tuple",
        lambda d: d.tensors(Point(b"x", b"y")).concatenate(d.tensors((b"x", b"y"))),
    ),
    case("unbatch-scalars", lambda d: d.range(10).unbatch()),
    case("unbatch-bytes-scalars", lambda d: d.slices([b"ab"]).unbatch()),
    case("unbatch-scalar-beside-row", lambda d: d.slices((np.zeros((3, 2)), np.arange(3))).unbatch()),
    case("unbatch-unequal-widths", lambda d: d.slices((np.zeros((3, 2)), np.zeros((3, 3)))).unbatch()),
    case("options-none", lambda d: d.range(3).with_options(None)),
    case("options-number", lambda d: d.range(3).with_options(3)),
    case("getitem", lambda d: d.range(3)[0], python_error=True),
)

_NO_FUNCTION = {
    "map": lambda d, f: d.range(3).map(f),
    "filter": lambda d, f: d.range(3).filter(f),
    "take-while": lambda d, f: d.range(3).take_while(f),
    "flat-map": lambda d, f: d.range(3).flat_map(f),
    "reduce": lambda d, f: d.range(3).reduce(np.int64(0), f),
    "apply": lambda d, f: d.range(3).apply(f),
}

# What a predicate may not return. Truth is not guessed: a number is more likely a slip than an answer.
_NO_BOOL: dict[str, Any] = {
    "number": lambda x: x,
    "python-int": lambda x: 1,
    "none": lambda x: None,
    "text": lambda x: "a",
    "list": lambda x: [True],
    "tuple": lambda x: (True,),
    "array": lambda x: np.array([True]),
}

FUNCTIONS = (
    *(case(f"{name}-of-number", lambda d, build=build: build(d, 3)) for name, build in _NO_FUNCTION.items()),
    *(case(f"{name}-of-none", lambda d, build=build: build(d, None)) for name, build in _NO_FUNCTION.items()),
    *(
        case(
            f"{name}-predicate-{kind}",
            lambda d, build=_NO_FUNCTION[name], f=f: build(d, f),
            "checked-when-run",
        )
        for name in ("filter", "take-while")
        for kind, f in _NO_BOOL.items()
    ),
    case("apply-to-number", lambda d: d.range(3).apply(lambda ds: 3)),
    case("apply-to-none", lambda d: d.range(3).apply(lambda ds: None)),
    case("map-too-few-arguments", lambda d: d.range(3).map(lambda: 1)),
    case("map-too-many-arguments", lambda d: d.range(3).map(lambda x, y: 1)),
    case("map-tuple-one-argument", lambda d: d.zip(d.range(3), d.range(3)).map(lambda x: x)),
    case(
        "map-namedtuple-two-arguments",
        lambda d: d.slices(Point(np.arange(3), np.arange(3))).map(lambda a, b: a),
    ),
    case(
        "filter-too-few-arguments",
        lambda d: d.zip(d.range(3), d.range(3)).filter(lambda x: True),
    ),
    case("flat-map-to-element", lambda d: d.range(3).flat_map(lambda x: x), "checked-when-run"),
    case("flat-map-to-list", lambda d: d.range(3).flat_map(lambda x: [x, x]), "checked-when-run"),
    case("flat-map-to-none", lambda d: d.range(3).flat_map(lambda x: None), "checked-when-run"),
    case(
        "reduce-three-arguments",
        lambda d: d.zip(d.range(3), d.range(3)).reduce(np.int64(0), lambda s, a, b: s),
    ),
)

CASES = (*COUNTS, *INPUT, *COMBINED, *FUNCTIONS)
