"""Sources: every argument form, every kind of input, empty ones among them."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from differential.cases.case import Point, case


def yields(*elements: Any) -> Callable[[], Any]:
    """A generator function that yields these."""
    return lambda: iter(elements)


_FRAME = pd.DataFrame({"b": [1, 2], "a": [3.0, 4.0]})
_GRID = np.arange(12).reshape(3, 4)

RANGE = (
    case("range-stop", lambda d: d.range(10)),
    case("range-start-stop", lambda d: d.range(3, 9)),
    case("range-step", lambda d: d.range(2, 10, 3)),
    case("range-down", lambda d: d.range(10, 2, -3)),
    case("range-across-zero", lambda d: d.range(-5, 5, 3)),
    case("range-across-zero-down", lambda d: d.range(5, -5, -3)),
    case("range-step-beyond-stop", lambda d: d.range(0, 10, 100)),
    case("range-empty", lambda d: d.range(0)),
    case("range-negative-stop", lambda d: d.range(-3)),
    case("range-empty-start-is-stop", lambda d: d.range(3, 3)),
    case("range-empty-wrong-way", lambda d: d.range(2, 5, -1)),
    case("range-empty-backwards", lambda d: d.range(5, 2)),
    case("range-numpy-arguments", lambda d: d.range(np.int32(1), np.int64(7), np.int16(2))),
    case("range-bool-argument", lambda d: d.range(True), "bool-counts"),
    case("range-name", lambda d: d.range(3, name="numbers")),
    *(
        case(f"range-{np.dtype(t).name}", lambda d, t=t: d.range(1, 6, 2, output_type=t))
        for t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
    ),
    case("range-float16", lambda d: d.range(5, output_type=np.float16)),
    case("range-float32", lambda d: d.range(5, output_type=np.float32)),
    case("range-float64", lambda d: d.range(5, output_type=np.float64)),
    case("range-uint8-wraps", lambda d: d.range(300, output_type=np.uint8).skip(254)),
    case("range-huge", lambda d: d.range(2**40 - 3, 2**40)),
)

TENSORS = (
    case("tensors-int", lambda d: d.tensors(1), "python-numbers"),
    case("tensors-float", lambda d: d.tensors(1.5), "python-numbers"),
    case("tensors-nan", lambda d: d.tensors(float("nan")), "python-numbers"),
    case("tensors-large-int", lambda d: d.tensors(2**40)),
    case("tensors-complex", lambda d: d.tensors(1 + 2j)),
    case("tensors-bool", lambda d: d.tensors(True)),
    case("tensors-bytes", lambda d: d.tensors(b"abc")),
    case("tensors-str", lambda d: d.tensors("abc"), "text"),
    case("tensors-array", lambda d: d.tensors(_GRID)),
    case("tensors-zero-dimensional-array", lambda d: d.tensors(np.array(5))),
    case("tensors-numpy-scalar", lambda d: d.tensors(np.float16(1.5))),
    case("tensors-list", lambda d: d.tensors([1, 2]), "python-numbers"),
    case("tensors-nested-list", lambda d: d.tensors([[1.5], [2.5]]), "python-numbers"),
    case("tensors-list-of-tuples", lambda d: d.tensors([(1, 2), (3, 4)]), "python-numbers"),
    case("tensors-empty-list", lambda d: d.tensors([]), "python-numbers"),
    case("tensors-list-of-bytes", lambda d: d.tensors([b"a\x00", b"\x00", b""])),
    case("tensors-array-of-bytes", lambda d: d.tensors(np.array([b"a", b"bc"]))),
    case("tensors-array-of-str", lambda d: d.tensors(np.array(["a", "bc"])), "text"),
    case("tensors-tuple", lambda d: d.tensors((np.int8(1), b"x"))),
    case("tensors-one-tuple", lambda d: d.tensors((np.int8(1),))),
    case("tensors-dict-order", lambda d: d.tensors({"b": np.int8(1), "a": np.int8(2)})),
    case("tensors-int-keys", lambda d: d.tensors({3: np.int8(1), 1: np.int8(2)})),
    case("tensors-namedtuple", lambda d: d.tensors(Point(np.int8(1), np.float32(2)))),
    case("tensors-nested", lambda d: d.tensors({"a": {"b": (np.int8(1), _GRID)}, "c": Point(b"x", (_GRID,))})),
    case("tensors-none-leaf", lambda d: d.tensors((np.int8(1), None))),
    case("tensors-empty-tuple-inside", lambda d: d.tensors((np.int8(1), ()))),
    case("tensors-empty-dict-inside", lambda d: d.tensors((np.int8(1), {}))),
    case("tensors-keyword", lambda d: d.tensors(tensors=np.int8(3))),
)

SLICES = (
    case("slices-array", lambda d: d.slices(_GRID)),
    case("slices-vector", lambda d: d.slices(np.arange(3))),
    case("slices-3d", lambda d: d.slices(np.arange(24).reshape(2, 3, 4))),
    case("slices-list", lambda d: d.slices([1, 2, 3]), "python-numbers"),
    case("slices-floats", lambda d: d.slices([1.5, 2.5]), "python-numbers"),
    case("slices-int-and-float", lambda d: d.slices([1, 2.5]), "python-numbers"),
    case("slices-bools", lambda d: d.slices([True, False])),
    case("slices-range", lambda d: d.slices(range(3)), "python-numbers"),
    case("slices-large-ints", lambda d: d.slices([2**40, 1])),
    case("slices-nested-list", lambda d: d.slices([[1, 2], [3, 4]]), "python-numbers"),
    case("slices-list-of-tuples", lambda d: d.slices([(1, 2), (3, 4)]), "python-numbers"),
    case("slices-list-of-arrays", lambda d: d.slices([np.array([1, 2]), np.array([3, 4])])),
    case("slices-str", lambda d: d.slices(["a", "bc", "", "héllo"]), "text"),
    case("slices-str-nul", lambda d: d.slices(["a\x00", "\x00", "b"]), "text"),
    case("slices-str-matrix", lambda d: d.slices([["a", "b"], ["c", "d"]]), "text"),
    case("slices-str-array", lambda d: d.slices(np.array(["a", "bc"])), "text"),
    case("slices-str-object-array", lambda d: d.slices(np.array(["a", "bc"], dtype=object)), "text"),
    case("slices-bytes", lambda d: d.slices([b"a", b"\xff\x00", b"", b"c\x00"])),
    case("slices-bytes-array", lambda d: d.slices(np.array([b"a", b"bc"]))),
    case("slices-bytes-object-array", lambda d: d.slices(np.array([b"a\x00b", b"c\x00"], dtype=object))),
    case("slices-bytes-matrix", lambda d: d.slices(np.array([[b"a", b"b"], [b"c", b"d"]], dtype=object))),
    *(
        case(f"slices-{np.dtype(t).name}", lambda d, t=t: d.slices(np.array([0, 1, 2], t)))
        for t in (
            np.int8,
            np.uint8,
            np.int16,
            np.uint16,
            np.int32,
            np.uint32,
            np.uint64,
            np.float16,
            np.float32,
        )
    ),
    case("slices-complex64", lambda d: d.slices(np.array([1 + 2j, 0], np.complex64))),
    case("slices-complex128", lambda d: d.slices(np.array([1 + 2j, 0]))),
    case("slices-uint64-max", lambda d: d.slices(np.array([2**64 - 1], np.uint64))),
    case("slices-nan-and-inf", lambda d: d.slices(np.array([np.nan, np.inf, -0.0]))),
    case("slices-strided", lambda d: d.slices(_GRID[::-2, 1::2])),
    case("slices-fortran-order", lambda d: d.slices(np.asfortranarray(_GRID))),
    case("slices-empty-list", lambda d: d.slices([]), "python-numbers"),
    case("slices-empty-array", lambda d: d.slices(np.zeros((0,)))),
    case("slices-empty-rows", lambda d: d.slices(np.zeros((0, 3), np.int32))),
    case("slices-zero-width-rows", lambda d: d.slices(np.zeros((3, 0), np.int32))),
    case("slices-tuple", lambda d: d.slices((np.arange(3), np.arange(3.0)))),
    case("slices-one-tuple", lambda d: d.slices((np.arange(3),))),
    case("slices-nested-tuple", lambda d: d.slices((np.arange(2), (np.arange(2.0), _GRID[:2])))),
    case("slices-dict-order", lambda d: d.slices({"b": np.arange(2), "a": np.arange(2.0)})),
    case(
        "slices-nested-dict",
        lambda d: d.slices({"b": {"z": np.arange(2)}, "a": (np.arange(2.0), [b"x", b"y"])}),
    ),
    case("slices-ordered-dict", lambda d: d.slices(OrderedDict(b=np.arange(2), a=np.arange(2))), "plain-dicts"),
    case("slices-namedtuple", lambda d: d.slices(Point(np.arange(2), np.arange(2.0)))),
    case("slices-none-leaf", lambda d: d.slices((np.arange(2), None))),
    case("slices-none-in-dict", lambda d: d.slices({"a": np.arange(2), "b": None})),
    case("slices-series", lambda d: d.slices(_FRAME["a"])),
    case("slices-dict-of-series", lambda d: d.slices(dict(_FRAME))),
    case(
        "slices-frame",
        lambda d: d.slices(_FRAME),
        "frames",
        gives=[{"b": np.int64(1), "a": np.float64(3)}, {"b": np.int64(2), "a": np.float64(4)}],
    ),
    case("slices-dict-keys", lambda d: d.slices({b"a": 1, b"b": 2}.keys())),
    case("slices-list-of-text-tuples", lambda d: d.slices([(b"a", b"x"), (b"b", b"y")])),
    case("slices-keyword", lambda d: d.slices(tensors=np.arange(2))),
)

GENERATOR = (
    case("generator-scalars", lambda d: d.generator(yields(0, 1, 2), output_signature=d.spec())),
    case("generator-empty", lambda d: d.generator(yields(), output_signature=d.spec())),
    case("generator-returns-list", lambda d: d.generator(lambda: [1, 2], output_signature=d.spec())),
    case("generator-types", lambda d: d.generator(yields(1, 2), np.int64)),
    case("generator-types-shapes", lambda d: d.generator(yields(1, 2), np.int64, ())),
    case("generator-types-shapes-vector", lambda d: d.generator(yields([1.0], [2.0, 3.0]), np.float32, (None,))),
    case(
        "generator-types-shapes-tuple",
        lambda d: d.generator(yields(([1.0, 2.0], 1)), (np.float32, np.int32), ((None,), ())),
    ),
    case("generator-types-dict", lambda d: d.generator(yields({"a": 1}), {"a": np.int32})),
    case("generator-narrow", lambda d: d.generator(yields(0, 1), output_signature=d.spec((), np.int32))),
    case("generator-int-to-float", lambda d: d.generator(yields(0, 1), output_signature=d.spec((), np.float32))),
    case("generator-to-bool", lambda d: d.generator(yields(True, False), output_signature=d.spec((), np.bool_))),
    case(
        "generator-bytes",
        lambda d: d.generator(yields(b"a", b"", b"\x00"), output_signature=d.spec((), d.string)),
    ),
    case(
        "generator-bytes-vector",
        lambda d: d.generator(yields([b"a\x00", b""], [b"b"]), output_signature=d.spec((None,), d.string)),
    ),
    case("generator-list-to-vector", lambda d: d.generator(yields([1, 2]), output_signature=d.spec((2,)))),
    case("generator-tuple-to-vector", lambda d: d.generator(yields((1, 2)), output_signature=d.spec((2,)))),
    case(
        "generator-variable-length",
        lambda d: d.generator(yields([1], [1, 2], []), output_signature=d.spec((None,))),
    ),
    case(
        "generator-variable-rows",
        lambda d: d.generator(yields([[1, 2]], [[3, 4], [5, 6]]), output_signature=d.spec((None, 2), np.float32)),
    ),
    case("generator-any-rank", lambda d: d.generator(yields(1, [1, 2], [[3]]), output_signature=d.spec(None))),
    case(
        "generator-tuple",
        lambda d: d.generator(yields((1, b"a"), (2, b"b")), output_signature=(d.spec(), d.spec((), d.string))),
    ),
    case("generator-one-tuple", lambda d: d.generator(yields((1,), (2,)), output_signature=(d.spec(),))),
    case(
        "generator-dict",
        lambda d: d.generator(
            yields({"b": 1, "a": 2}, {"a": 4, "b": 3}),
            output_signature={"b": d.spec(), "a": d.spec((), np.float32)},
        ),
    ),
    case(
        "generator-namedtuple",
        lambda d: d.generator(yields(Point(1, 2)), output_signature=Point(d.spec(), d.spec())),
    ),
    case(
        "generator-args",
        lambda d: d.generator(lambda n: iter(range(n)), output_signature=d.spec(), args=(4,)),
    ),
    case(
        "generator-two-args",
        lambda d: d.generator(lambda a, b: iter([a, b]), output_signature=d.spec(), args=(np.int64(1), np.int64(2))),
    ),
    case("generator-restarts", lambda d: d.generator(yields(1, 2), output_signature=d.spec()).repeat(2)),
    case("generator-wrong-shape", lambda d: d.generator(yields([1, 2], [3]), output_signature=d.spec((2,)))),
    case("generator-wrong-rank", lambda d: d.generator(yields(1), output_signature=d.spec((2,)))),
    case("generator-none-for-int", lambda d: d.generator(yields(1, None), output_signature=d.spec())),
    case("generator-text-for-int", lambda d: d.generator(yields(1, b"a"), output_signature=d.spec())),
    case(
        "generator-short-tuple",
        lambda d: d.generator(yields((1, 2), (3,)), output_signature=(d.spec(), d.spec())),
    ),
    case(
        "generator-list-for-tuple",
        lambda d: d.generator(yields([1, 2]), output_signature=(d.spec(), d.spec())),
    ),
    case(
        "generator-tuple-for-namedtuple",
        lambda d: d.generator(yields((1, 2)), output_signature=Point(d.spec(), d.spec())),
    ),
    case(
        "generator-missing-key",
        lambda d: d.generator(yields({"a": 1}), output_signature={"a": d.spec(), "b": d.spec()}),
    ),
    case(
        "generator-extra-key",
        lambda d: d.generator(yields({"a": 1, "b": 2}), output_signature={"a": d.spec()}),
    ),
    case(
        "generator-raises",
        lambda d: d.generator(lambda: (1 // (2 - i) for i in range(4)), output_signature=d.spec()),
    ),
    case("generator-not-iterable", lambda d: d.generator(lambda: 3, output_signature=d.spec())),
    case(
        "generator-wrong-arity",
        lambda d: d.generator(lambda a, b: iter([a]), output_signature=d.spec(), args=(1,)),
    ),
    case(
        "generator-lossy-float",
        lambda d: d.generator(yields(1.5), output_signature=d.spec()),
    ),
    case(
        "generator-lossy-int",
        lambda d: d.generator(yields(300), output_signature=d.spec((), np.int8)),
        "overflow",
    ),
)

COUNTER = (
    case("counter", lambda d: d.counter()),
    case("counter-start-step", lambda d: d.counter(5, -2)),
    case("counter-step-zero", lambda d: d.counter(3, 0)),
    case("counter-int32", lambda d: d.counter(start=2, step=3, dtype=np.int32)),
    case("counter-float32", lambda d: d.counter(dtype=np.float32)),
    case("counter-uint8-wraps", lambda d: d.counter(dtype=np.uint8).skip(254)),
    case("counter-take", lambda d: d.counter(10, -1).take(3)),
    case("counter-batch", lambda d: d.counter().batch(4, drop_remainder=True).take(2)),
)

CASES = (*RANGE, *TENSORS, *SLICES, *GENERATOR, *COUNTER)
