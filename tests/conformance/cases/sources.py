"""Sources that hold their data."""

from __future__ import annotations

import numpy as np

from conformance.case import Case
from conformance.cases.common import Dataset, i64, range_, rows, scalars, slices
from conformance.data import ARRAYS, BYTES, LONG_BYTES, MAPPED, STRINGS, Frozen, Point, Sample, memmap


def _frame():
    import pandas as pd

    return pd.DataFrame(
        {"id": np.arange(8), "score": np.linspace(0, 1, 8, dtype=np.float32), "name": list("abcdefgh")},
        # An index that is not 0..n shows whether rows are taken by position.
        index=np.arange(8)[::-1] * 10,
    )


def _frame_rows(keys):
    frame = _frame()
    columns = {"id": frame["id"].to_numpy(), "score": frame["score"].to_numpy(), "name": list("abcdefgh")}
    return [{key: columns[key][i] for key in keys} for i in range(8)]


def _nested():
    return {
        "pair": (ARRAYS["small"], ARRAYS["float32"]),
        "point": Point(ARRAYS["matrix"], {"deep": ARRAYS["bools"]}),
    }


def _nested_rows():
    return [
        {
            "pair": (ARRAYS["small"][i], ARRAYS["float32"][i]),
            "point": Point(ARRAYS["matrix"][i].copy(), {"deep": ARRAYS["bools"][i]}),
        }
        for i in range(12)
    ]


def _array_case(name: str) -> Case:
    # Byte order is how an array is stored; elements have the machine's own.
    native = ARRAYS[name].dtype.newbyteorder("=")
    return Case(f"slices.array.{name}", lambda: slices(ARRAYS[name]), lambda: rows(ARRAYS[name].astype(native)))


CASES = [
    Case("range.stop", lambda: range_(17), scalars(range(17))),
    Case("range.start_stop", lambda: range_(3, 20), scalars(range(3, 20))),
    Case("range.step", lambda: range_(-5, 40, 7), scalars(range(-5, 40, 7))),
    Case("range.down", lambda: range_(10, -10, -3), scalars(range(10, -10, -3))),
    Case("range.empty", lambda: range_(5, 5), []),
    Case("range.wrong_way", lambda: range_(5, 9, -1), []),
    Case("range.int32", lambda: range_(6, output_type=np.int32), scalars(range(6), np.int32)),
    Case("range.float32", lambda: range_(2, 9, 2, output_type=np.float32), scalars(range(2, 9, 2), np.float32)),
    Case("range.several_blocks", lambda: range_(130), scalars(range(130))),
    Case("range.huge", lambda: range_(10**15, 10**18), scalars(range(10**15, 10**15 + 30)), limit=30),
    Case("from_tensors.scalar", lambda: Dataset.from_tensors(7), scalars([7])),
    Case("from_tensors.float", lambda: Dataset.from_tensors(0.5), scalars([0.5], np.float64)),
    Case("from_tensors.list", lambda: Dataset.from_tensors([1, 2, 3]), [i64([1, 2, 3])]),
    Case("from_tensors.string", lambda: Dataset.from_tensors("one\0two"), ["one\0two"]),
    Case("from_tensors.bytes", lambda: Dataset.from_tensors(b"\0one\0"), [b"\0one\0"]),
    Case(
        "from_tensors.structure",
        lambda: Dataset.from_tensors({"a": (ARRAYS["matrix"], 1), "b": Sample(ARRAYS["cube"], "label")}),
        lambda: [{"a": (ARRAYS["matrix"].copy(), np.int64(1)), "b": Sample(ARRAYS["cube"].copy(), "label")}],
    ),
    Case(
        "from_tensors.repeated",
        lambda: Dataset.from_tensors((ARRAYS["small"], ARRAYS["small"])).repeat(4),
        lambda: [(ARRAYS["small"].copy(), ARRAYS["small"].copy())] * 4,
    ),
    Case("from_tensors.none", lambda: Dataset.from_tensors((1, None)), [(np.int64(1), None)]),
    *(_array_case(name) for name in ARRAYS if name != "long"),
    Case(
        "slices.tuple",
        lambda: slices((ARRAYS["matrix"], ARRAYS["small"])),
        lambda: list(zip(rows(ARRAYS["matrix"]), ARRAYS["small"], strict=True)),
    ),
    Case(
        "slices.dict",
        lambda: slices({"b": ARRAYS["bools"], "a": ARRAYS["half"]}),
        lambda: [{"b": b, "a": a} for b, a in zip(ARRAYS["bools"], ARRAYS["half"], strict=True)],
    ),
    Case("slices.nested", lambda: slices(_nested()), _nested_rows),
    Case(
        "slices.same_array_twice",
        lambda: slices((ARRAYS["matrix"], ARRAYS["matrix"])),
        lambda: [(row, row.copy()) for row in rows(ARRAYS["matrix"])],
    ),
    Case(
        "slices.namedtuple",
        lambda: slices(Point(ARRAYS["small"], ARRAYS["bytes_"])),
        lambda: [Point(x, y) for x, y in zip(ARRAYS["small"], ARRAYS["bytes_"], strict=True)],
    ),
    Case(
        "slices.dataclass",
        lambda: slices(Sample(ARRAYS["matrix"], Frozen(ARRAYS["small"], ARRAYS["half"]))),
        lambda: [Sample(ARRAYS["matrix"][i].copy(), Frozen(ARRAYS["small"][i], ARRAYS["half"][i])) for i in range(12)],
    ),
    Case("slices.list", lambda: slices([4, 5, 6]), scalars([4, 5, 6])),
    Case("slices.list_of_floats", lambda: slices([0.5, 2.0]), scalars([0.5, 2.0], np.float64)),
    Case("slices.list_of_bools", lambda: slices([True, False]), scalars([True, False], bool)),
    Case(
        "slices.list_of_lists",
        lambda: slices([[1, 2], [3, 4], [5, 6]]),
        [i64([1, 2]), i64([3, 4]), i64([5, 6])],
    ),
    Case(
        "slices.list_beside_array",
        lambda: slices(([1, 2, 3], {"s": ["x", "y", "z"]})),
        [(np.int64(i), {"s": s}) for i, s in zip([1, 2, 3], "xyz", strict=True)],
    ),
    Case("slices.strings", lambda: slices(STRINGS), STRINGS),
    Case("slices.bytes", lambda: slices(BYTES), BYTES),
    Case("slices.long_bytes", lambda: slices({"b": LONG_BYTES}), [{"b": each} for each in LONG_BYTES]),
    Case("slices.string_array", lambda: slices(np.array(["ab", "c", ""])), ["ab", "c", ""]),
    Case("slices.bytes_array", lambda: slices(np.array([b"ab", b"c", b""])), [b"ab", b"c", b""]),
    Case("slices.object_array", lambda: slices(np.array(["ab", "c\0", ""], object)), ["ab", "c\0", ""]),
    Case("slices.memmap", lambda: slices({"m": memmap()}), lambda: [{"m": row} for row in rows(MAPPED)]),
    Case("slices.memmap_alone", lambda: slices(memmap()), lambda: rows(MAPPED)),
    Case("slices.pandas_frame", lambda: slices(_frame()), lambda: _frame_rows(["id", "score", "name"])),
    Case("slices.pandas_dict", lambda: slices(dict(_frame())), lambda: _frame_rows(["id", "score", "name"])),
    Case(
        "slices.pandas_series",
        lambda: slices(_frame()["score"]),
        lambda: [r["score"] for r in _frame_rows(["score"])],
    ),
    Case("slices.many_rows", lambda: slices(ARRAYS["long"]).skip(870), lambda: rows(ARRAYS["long"][870:])),
    Case("counter", lambda: Dataset.counter(), scalars(range(30)), limit=30),
    Case("counter.start_step", lambda: Dataset.counter(5, -2), scalars(range(5, -35, -2)), limit=20),
    Case("counter.dtype", lambda: Dataset.counter(1, 1, np.int32), scalars(range(1, 21), np.int32), limit=20),
    Case("counter.take", lambda: Dataset.counter(10).take(9), scalars(range(10, 19))),
]
