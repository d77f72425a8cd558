"""tf.train.Example against TensorFlow: what is parsed, what is refused, and what is written."""

import functools
import io as stdio
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from forebay.io.columns import column_form
from unit.lazy_tensorflow import tf

io = fb.io

FEATURES = {
    "i": io.FixedLenFeature([], np.int64),
    "i3": io.FixedLenFeature([3], np.int64, [7, 8, 9]),
    "f": io.FixedLenFeature([2], np.float32),
    "s": io.FixedLenFeature([], bytes, b"default"),
    "s2": io.FixedLenFeature([2, 1], bytes, [[b""], [b"x"]]),
    "v": io.VarLenFeature(np.int64),
    "vf": io.VarLenFeature(np.float32),
    "vs": io.VarLenFeature(bytes),
    "q": io.FixedLenSequenceFeature([2], np.float32, allow_missing=True, default_value=0.5),
    "r": io.RaggedFeature(np.int64),
}


def theirs(feature: Any) -> Any:
    """The same feature in TensorFlow's words."""
    dtype = {np.int64: tf.int64, np.float32: tf.float32, bytes: tf.string}[feature.dtype]
    if isinstance(feature, io.FixedLenFeature):
        return tf.io.FixedLenFeature(feature.shape, dtype, feature.default_value)
    if isinstance(feature, io.FixedLenSequenceFeature):
        return tf.io.FixedLenSequenceFeature(feature.shape, dtype, feature.allow_missing, feature.default_value)
    kind = tf.io.VarLenFeature if isinstance(feature, io.VarLenFeature) else tf.io.RaggedFeature
    return kind(dtype)


@functools.cache
def parsers() -> tuple[Any, Any]:
    """TensorFlow's parser of one record, and of several."""
    features = {name: theirs(feature) for name, feature in FEATURES.items()}
    one = lambda record: tf.io.parse_single_example(record, features)  # noqa: E731 - a pair of them
    several = lambda records: tf.io.parse_example(records, features)  # noqa: E731
    return (
        tf.function(one, input_signature=[tf.TensorSpec([], tf.string)]),
        tf.function(several, input_signature=[tf.TensorSpec([None], tf.string)]),
    )


def parse_one(record: bytes) -> Any:
    return parsers()[0](record)


def parse_many(records: list[bytes]) -> Any:
    return parsers()[1](records)


def plain(value: Any) -> Any:
    """A result of either library as lists."""
    if isinstance(value, (tf.SparseTensor, io.SparseTensor)):
        return [plain(value.indices), plain(value.values), plain(value.dense_shape)]
    if isinstance(value, (tf.RaggedTensor, io.RaggedTensor)):
        return [plain(value.values), plain(value.row_splits)]
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    return [array.shape, "bytes" if array.dtype.kind in "SO" else str(array.dtype), array.tolist()]


def outcome(parse: Any, argument: Any) -> Any:
    try:
        return {name: plain(value) for name, value in parse(argument).items()}
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError, fb.DataError):
        # TensorFlow's message quotes the record, which Python then fails to read as text.
        return "refused"


def without_indices(result: Any) -> Any:
    """Of one record, a VarLenFeature is its values here, and a SparseTensor there."""
    if result == "refused":
        return result
    return {name: value[1] if name in ("v", "vf", "vs") else value for name, value in result.items()}


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def entry(key: bytes, feature: bytes) -> bytes:
    return field(1, field(1, key) + field(2, feature))


def ints(*values: int) -> bytes:
    return field(3, field(1, bytes(values)))


GOOD = entry(b"i", ints(1)) + entry(b"f", field(2, field(1, b"\0" * 8)))
UNKNOWN = bytes([0x28, 5])
CRAFTED = {
    "plain": field(1, GOOD),
    "nothing": b"",
    "unknown field of the example": field(1, GOOD) + UNKNOWN,
    "unknown field of the features": field(1, GOOD + UNKNOWN),
    "unknown field of an entry": field(1, GOOD + field(1, field(1, b"v") + field(2, ints(1)) + UNKNOWN)),
    "unknown field of a feature": field(1, GOOD + entry(b"v", ints(1) + UNKNOWN)),
    "unknown field first": field(1, GOOD + entry(b"v", UNKNOWN + ints(1))),
    "unknown field of a list": field(1, GOOD + entry(b"v", field(3, field(1, b"\1") + UNKNOWN))),
    "unpacked ints": field(1, GOOD + entry(b"v", field(3, b"\x08\2\x08\3"))),
    "unpacked floats": field(1, GOOD + entry(b"vf", field(2, b"\x0d\0\0\0\0\x0d\0\0\x80\x3f"))),
    "packed twice": field(1, GOOD + entry(b"v", field(3, field(1, b"\1") + field(1, b"\2")))),
    "packed, then not": field(1, GOOD + entry(b"v", field(3, field(1, b"\1") + b"\x08\2"))),
    "not packed, then packed": field(1, GOOD + entry(b"v", field(3, b"\x08\2" + field(1, b"\1")))),
    "the last value wins": field(1, GOOD + entry(b"i", ints(9))),
    "the last list wins": field(1, GOOD + entry(b"v", ints(1, 2)) + entry(b"v", ints(3))),
    "the last is empty": field(1, GOOD + entry(b"i", b"")),
    "only the last one's type counts": field(1, entry(b"i", field(1, field(1, b"x"))) + GOOD),
    "the last has another type": field(1, GOOD + entry(b"i", field(1, field(1, b"x")))),
    "examples behind one another": field(1, GOOD) + field(1, entry(b"i", ints(5))),
    "no key": field(1, GOOD + field(1, field(2, ints(1)))),
    "no value": field(1, GOOD + field(1, field(1, b"v"))),
    "value before key": field(1, GOOD + field(1, field(2, ints(4)) + field(1, b"v"))),
    "two lists": field(1, GOOD + entry(b"v", ints(1) + ints(2))),
    "a feature without a list": field(1, GOOD + entry(b"s", b"")),
    "a list without values": field(1, GOOD + entry(b"s", field(1, b""))),
    "not a multiple": field(1, GOOD + entry(b"q", field(2, field(1, b"\0" * 12)))),
    "wrong type": field(1, GOOD + entry(b"v", field(2, field(1, b"\0" * 4)))),
    "wrong count": field(1, GOOD + entry(b"i3", ints(1, 2))),
    "missing": field(1, entry(b"i", ints(1))),
    "cut short": field(1, GOOD)[:-1],
    "a varint without end": field(1, GOOD + entry(b"v", field(3, field(1, b"\xff" * 11)))),
    "garbage": b"\xff\xfe garbage",
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_records_are_parsed_and_refused_as_by_tensorflow(name: str) -> None:
    record = CRAFTED[name]
    one = outcome(lambda given: io.parse_single_example(given, FEATURES), record)
    assert one == without_indices(outcome(parse_one, record))
    several = outcome(lambda given: io.parse_example(given, FEATURES), [record, CRAFTED["plain"]])
    assert several == outcome(parse_many, [record, CRAFTED["plain"]])


def made_up(chance: random.Random) -> bytes:
    """An Example that mostly fits the features."""
    example = tf.train.Example()
    feature = example.features.feature

    def often(share: float = 0.85) -> bool:
        return chance.random() < share

    def numbers(count: int) -> list[int]:
        return [chance.choice([0, 1, -1, 300, -(2**63), 2**63 - 1]) for _ in range(count)]

    feature["i"].int64_list.value.extend(numbers(1 if often(0.95) else 2))
    feature["f"].float_list.value.extend([1.5, -2.0] if often(0.95) else [1.0])
    if often():
        feature["i3"].int64_list.value.extend(numbers(3 if often(0.95) else 4))
    if often():
        feature["s"].bytes_list.value.extend([b"abc"] if often() else [b""])
    if often(0.5):
        feature["s2"].bytes_list.value.extend([b"one", b"\0two\xff"])
    for name in ("v", "r"):
        if often():
            feature[name].int64_list.value.extend(numbers(chance.randrange(4)))
    if often():
        feature["vf"].float_list.value.extend([0.5] * chance.randrange(4))
    if often():
        feature["vs"].bytes_list.value.extend(b"q" * k for k in range(chance.randrange(4)))
    if often():
        feature["q"].float_list.value.extend([1.0, 2.0] * chance.randrange(3))
    if often(0.3):
        feature["other"].int64_list.value.extend(numbers(2))
    return example.SerializeToString()


@pytest.mark.parametrize("seed", range(60))
def test_examples_are_parsed_as_by_tensorflow(seed: int) -> None:
    chance = random.Random(seed)
    records = [made_up(chance) for _ in range(chance.randrange(1, 5))]
    several = outcome(lambda given: io.parse_example(given, FEATURES), np.array(records, object))
    assert several == outcome(parse_many, records)
    for record in records:
        one = outcome(lambda given: io.parse_single_example(given, FEATURES), record)
        assert one == without_indices(outcome(parse_one, record))


def test_rows_and_columns_agree_on_whatever_is_thrown_at_them() -> None:
    chance = random.Random(5)
    refused = 0
    for _ in range(500):
        damaged = bytearray(made_up(chance))
        for _ in range(chance.randrange(4)):
            place = chance.randrange(len(damaged))
            damaged[place : place + chance.randrange(2)] = bytes([chance.randrange(256)] * chance.randrange(3))
        record = bytes(damaged)
        row = outcome(lambda given: io.parse_single_example(given, FEATURES), record)
        made, error = io.ExampleParser(FEATURES).on_block(
            fb.Dataset.from_tensor_slices([record]).plan.access().read(0, 1, 0)
        )
        refused += row == "refused"
        column = "refused" if error is not None else outcome(lambda block: next(block.elements()), made)
        assert column == row
    assert 50 < refused < 450


class TestErrors:
    FEATURES = {"x": io.FixedLenFeature([2], np.int64)}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"x": [1.5, 2.5]}, "feature 'x' holds float32, wanted is int64"),
            ({"x": [1]}, r"feature 'x' has 1 values, the shape \(2,\) needs 2"),
            ({"y": 1}, r"feature 'x' \(int64\) is missing, and has no default"),
        ],
    )
    def test_they_name_the_feature(self, given: dict[str, Any], message: str) -> None:
        record = io.serialize_example(given)
        with pytest.raises(fb.DataError, match=message):
            io.parse_single_example(record, self.FEATURES)
        good = io.serialize_example({"x": [1, 2]})
        with pytest.raises(fb.DataError, match=f"record 1: {message}"):
            io.parse_example([good, record], self.FEATURES)

    def test_in_a_map_rows_before_it_come_out_and_the_element_is_named(self) -> None:
        records = [io.serialize_example({"x": [i, i]}) for i in range(50)]
        records[30] = b"\xff"
        dataset = fb.Dataset.from_tensor_slices(records).map(lambda r: fb.io.parse_single_example(r, self.FEATURES))
        for optimize in (True, False):
            it = iter(dataset.with_options(fb.Options(optimize=optimize)))
            assert [int(next(it)["x"][0]) for _ in range(30)] == list(range(30))
            with pytest.raises(fb.FunctionError, match="element 30: <lambda> raised DataError: is not the serialized"):
                next(it)
        batches = fb.Dataset.from_tensor_slices(records).batch(7).map(lambda r: fb.io.parse_example(r, self.FEATURES))
        for optimize in (True, False):
            it = iter(batches.with_options(fb.Options(optimize=optimize)))
            assert len([next(it) for _ in range(4)]) == 4
            with pytest.raises(fb.FunctionError, match="element 4: <lambda> raised DataError: record 2: is not"):
                next(it)

    def test_features_are_checked_when_made(self) -> None:
        for wrong, message in [
            (lambda: io.FixedLenFeature([], np.int32), "an Example holds np.float32, np.int64 or bytes"),
            (lambda: io.FixedLenFeature([None], np.int64), "all sizes must be known"),
            (lambda: io.FixedLenFeature([3], np.int64, [1, 2]), "it has 2 values, the shape"),
            (lambda: io.FixedLenFeature([], np.int64, 1.5), "it must be int64"),
            (lambda: io.FixedLenFeature([], bytes, 1), "it must be bytes"),
            (lambda: io.ExampleParser({}), "must be a dict that is not empty"),
            (lambda: io.ExampleParser({"x": np.int64}), "it must be one of fb.io.FixedLenFeature"),
            (lambda: io.ExampleParser({"x": io.FixedLenSequenceFeature([], np.int64)}), "allow_missing=True"),
        ]:
            with pytest.raises(fb.PlanError, match=message):
                wrong()

    def test_what_is_no_record(self) -> None:
        with pytest.raises(fb.DataError, match="a serialized record is bytes, not str"):
            io.parse_single_example("text", self.FEATURES)
        with pytest.raises(fb.DataError, match="have one axis, not 2"):
            io.parse_example(np.array([[b"x"]], object), self.FEATURES)

    def test_tensorflow_dtypes_will_do(self) -> None:
        feature = io.FixedLenFeature([], tf.int64)
        assert io.parse_single_example(io.serialize_example({"x": 3}), {"x": feature}) == {"x": 3}
        assert io.FixedLenFeature([], tf.string, "text").missing() == [b"text"]


class TestColumnForm:
    """Which functions are known to be a parser, and which are not."""

    def test_known(self) -> None:
        captured = FEATURES

        def named(record: Any) -> Any:
            return io.parse_single_example(record, captured)

        for function in (
            lambda r: fb.io.parse_single_example(r, FEATURES),
            lambda r: io.parse_single_example(r, features=captured),
            lambda r: io.parse_single_example(serialized=r, features=FEATURES, name="x"),
            lambda r: io.parse_example(r, FEATURES),
            lambda r: io.parse_single_example(r, PARSER),
            named,
            functools.partial(io.parse_single_example, features=FEATURES),
            functools.partial(io.parse_example, features=FEATURES, name=None),
            io.ExampleParser(FEATURES),
        ):
            assert column_form(function) is not None

    def test_not_certain(self) -> None:
        for function in (
            lambda r: io.parse_single_example(r[1:], FEATURES),
            lambda r: io.parse_single_example(r, dict(FEATURES)),
            lambda r: io.parse_single_example(r, r),
            lambda r: io.parse_single_example(r, FEATURES)["i"],
            lambda r: (io.parse_single_example(r, FEATURES),),
            lambda r: io.parse_single_example(b"", FEATURES),
            lambda r: print(r) or io.parse_single_example(r, FEATURES),
            lambda r: HOLDER.parse_single_example(r, FEATURES),
            lambda r: io.serialize_example(r),
            lambda r, s=FEATURES: io.parse_single_example(r, s),
            lambda *r: io.parse_single_example(*r, FEATURES),
            lambda r: io.parse_single_example(r, unbound),
            lambda r: io.parse_single_example(r, {}),
            functools.partial(io.parse_single_example, b"x"),
            functools.partial(int, base=3),
            len,
        ):
            assert column_form(function) is None
        if not FEATURES:
            unbound = FEATURES  # Makes it a captured variable that has no value.

    def test_it_is_shown_and_changes_nothing(self) -> None:
        records = [made_up(random.Random(seed)) for seed in (3, 4, 7)]
        records = [r for r in records if outcome(lambda g: io.parse_single_example(g, FEATURES), r) != "refused"] * 40
        dataset = fb.Dataset.from_tensor_slices(records)
        for parsed in (
            dataset.map(lambda r: io.parse_single_example(r, FEATURES)),
            dataset.batch(7).map(lambda r: io.parse_example(r, FEATURES)),
            dataset.batch(7).map(lambda r: io.parse_example(r, DENSE)),
        ):
            text = stdio.StringIO()
            parsed.explain(text)
            assert "form='columns'" in text.getvalue()
            by_rows = list(parsed.with_options(fb.Options(optimize=False)))
            assert [{n: plain(v) for n, v in row.items()} for row in parsed] == [
                {n: plain(v) for n, v in row.items()} for row in by_rows
            ]

    def test_a_parser_can_be_sent_to_workers(self) -> None:
        parser = pickle.loads(pickle.dumps(PARSER))
        assert parser.features == FEATURES
        records = [CRAFTED["plain"]] * 20
        dataset = fb.Dataset.from_tensor_slices(records).map(parser, num_parallel_calls=2, executor="process")
        assert [int(row["i"]) for row in dataset] == [1] * 20


PARSER = io.ExampleParser(FEATURES)
HOLDER = type("Holder", (), {"parse_single_example": staticmethod(io.parse_single_example)})
DENSE = {name: FEATURES[name] for name in ("i", "i3", "f", "s", "s2")}

VALUES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5),
    st.lists(st.binary(max_size=9), min_size=1, max_size=5),
)


@settings(max_examples=30, deadline=None)
@given(features=st.dictionaries(st.text(max_size=8), VALUES, max_size=6))
def test_what_is_written_is_read_by_tensorflow(features: dict[str, list[Any]]) -> None:
    found = tf.train.Example.FromString(io.serialize_example(features)).features.feature
    lists = {int: "int64_list", float: "float_list", bytes: "bytes_list"}
    assert {name: list(getattr(found[name], lists[type(v[0])]).value) for name, v in features.items()} == features


def test_what_can_be_written() -> None:
    record = io.serialize_example(
        {
            "bool": True,
            "uint8": np.uint8([1, 2]),
            "uint64": np.uint64(2**40),
            "half": np.float16(0.5),
            "grid": np.ones((2, 2)),
            "text": "ü",
            "texts": ["a", b"b\0"],
            "none": None,
            "empty": [],
        }
    )
    found = dict(tf.train.Example.FromString(record).features.feature.items())
    assert [found["bool"].int64_list.value[0], *found["uint8"].int64_list.value] == [1, 1, 2]
    assert found["uint64"].int64_list.value[0] == 2**40
    assert [*found["half"].float_list.value, *found["grid"].float_list.value] == [0.5, 1, 1, 1, 1]
    assert [*found["text"].bytes_list.value, *found["texts"].bytes_list.value] == ["ü".encode(), b"a", b"b\0"]
    assert found["none"].WhichOneof("kind") is None
    assert found["empty"].WhichOneof("kind") is None
    for wrong, message in [
        ({"x": 2**64}, "holds numbers and bytes|does not fit"),
        ({"x": np.uint64(2**63)}, "does not fit into int64"),
        ({"x": "\ud800"}, "cannot be written as UTF-8: surrogates not allowed"),
        ({"x": 1j}, "holds numbers and bytes"),
        ({"x": [object()]}, "holds numbers and bytes"),
        ({3: 1}, "3 is not the name"),
        ([1], "must be a dict"),
    ]:
        with pytest.raises(fb.DataError, match=message):
            io.serialize_example(wrong)
