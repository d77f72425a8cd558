"""What is known about a dataset without its elements: element_spec, cardinality, length, repr."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from forebay import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, DataError, Dataset, FunctionError, PlanError, TensorSpec
from unit.support import SETTINGS

INT = TensorSpec((), np.int64)
FLOAT = TensorSpec((), np.float64)
TEXT = TensorSpec((), str)


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Example:
    image: Any
    label: Any


def stream(*values: Any) -> Dataset[Any]:
    return Dataset.from_generator(lambda: iter(values))


def never(*_: Any) -> Any:
    raise AssertionError("nothing has to run for this")


SPECS: list[tuple[Callable[[], Dataset[Any]], Any]] = [
    (lambda: Dataset.range(3), INT),
    (lambda: Dataset.range(3, output_type=np.float16), TensorSpec((), np.float16)),
    (lambda: Dataset.counter(dtype=np.uint8), TensorSpec((), np.uint8)),
    (lambda: Dataset.random(), INT),
    (lambda: Dataset.from_tensor_slices(np.zeros((3, 2, 1), np.float32)), TensorSpec((2, 1), np.float32)),
    (lambda: Dataset.from_tensor_slices([[1], [1, 2]]), TensorSpec((None,), np.int64)),
    (lambda: Dataset.from_tensor_slices([np.zeros((1, 2)), np.zeros((3, 2))]), TensorSpec((None, 2), np.float64)),
    (lambda: Dataset.from_tensor_slices({"a": [1], "b": ("x", ["t"])[1]}), {"a": INT, "b": TEXT}),
    (lambda: Dataset.from_tensor_slices([b"a"]), TensorSpec((), bytes)),
    (lambda: Dataset.from_tensor_slices([["a", "b"]]), TensorSpec((2,), str)),
    (lambda: Dataset.from_tensor_slices(Point([1], [2.5])), Point(INT, FLOAT)),
    (lambda: Dataset.from_tensor_slices(Example(np.zeros((1, 4)), [1])), Example(TensorSpec((4,), float), INT)),
    (lambda: Dataset.from_tensors((1, [2.5, 3])), (INT, TensorSpec((2,), np.float64))),
    (lambda: Dataset.from_tensor_slices(np.zeros(2, ">i4")), TensorSpec((), np.int32)),
    (lambda: Dataset.range(3).batch(2), TensorSpec((None,), np.int64)),
    (lambda: Dataset.range(3).batch(2, drop_remainder=True), TensorSpec((2,), np.int64)),
    (lambda: Dataset.range(3).batch(2, True).batch(1), TensorSpec((None, 2), np.int64)),
    (lambda: Dataset.range(4).batch(2).unbatch(), INT),
    (lambda: Dataset.range(3).take(1).skip(1).shard(2, 0).repeat().prefetch(1).shuffle(3), INT),
    (lambda: Dataset.range(3).enumerate(), (INT, INT)),
    (
        lambda: Dataset.zip({"a": Dataset.range(3), "b": (Dataset.range(2).batch(2),)}),
        {"a": INT, "b": (TensorSpec((None,), np.int64),)},
    ),
    (
        lambda: Dataset.from_tensor_slices(np.zeros((2, 3))).concatenate(Dataset.from_tensor_slices(np.zeros((2, 4)))),
        TensorSpec((None,), np.float64),
    ),
    (
        lambda: Dataset.from_tensors(np.zeros(2)).concatenate(Dataset.from_tensors(np.zeros((2, 2)))),
        TensorSpec(None, np.float64),
    ),
    (lambda: Dataset.range(3).filter(never), INT),
    (lambda: Dataset.range(3).take_while(never), INT),
    (lambda: Dataset.from_generator(never, output_signature=(INT, {"t": TEXT})), (INT, {"t": TEXT})),
    (
        lambda: Dataset.from_generator(never, output_types=(np.int32, str)),
        (TensorSpec(None, np.int32), TensorSpec(None, str)),
    ),
    (lambda: Dataset.from_generator(never, np.int32, (None, 2)), TensorSpec((None, 2), np.int32)),
    # Known by looking at the first element only.
    (lambda: stream((1, "a"), (2, "b")), (INT, TEXT)),
    (lambda: Dataset.range(3).map(lambda x: {"x": x, "half": x / 2}), {"x": INT, "half": FLOAT}),
    (lambda: Dataset.range(3).map(lambda x: np.zeros(x + 1)), TensorSpec((1,), np.float64)),
    (lambda: Dataset.range(3).map(lambda x: [x, x]).batch(2), TensorSpec((None, 2), np.int64)),
    (lambda: Dataset.range(1, 3).flat_map(lambda x: Dataset.from_tensors((x, "a"))), (INT, TEXT)),
    (lambda: Dataset.range(3).map(lambda x: Point(x, object())), Point(INT, TensorSpec((), object))),
    (lambda: Dataset.range(5).map(abs).shuffle(2).map(str), TEXT),
]


@pytest.mark.parametrize(("build", "expected"), SPECS, ids=[str(i) for i in range(len(SPECS))])
def test_element_spec(build: Callable[[], Dataset[Any]], expected: Any) -> None:
    for options in SETTINGS[:1] + SETTINGS[-1:]:
        spec = build().with_options(options).element_spec
        assert type(spec) is type(expected)
        assert spec == expected


def test_none_has_a_spec_of_its_own() -> None:
    spec = Dataset.range(4).map(lambda x: (x, None)).element_spec
    assert spec[0] == INT
    assert repr(spec[1]) == "NoneSpec()"
    batched = Dataset.range(4).map(lambda x: (x, None)).batch(2, True)
    assert repr(batched.element_spec) == "(TensorSpec(shape=(2,), dtype=int64), NoneSpec())"
    assert all(second is None for _, second in batched)


def test_looking_at_the_first_element_leaves_no_trace() -> None:
    calls: list[int] = []
    dataset = Dataset.range(5).map(lambda x: calls.append(int(x)) or x).shuffle(2, seed=1)
    expected = list(Dataset.range(5).map(abs).shuffle(2, seed=1))
    assert dataset.element_spec == INT
    assert len(calls) <= 5
    # The first iteration is still epoch 0.
    assert list(dataset) == expected


def test_a_spec_that_only_a_failing_function_knows() -> None:
    with pytest.raises(FunctionError, match=r"map at test_spec.py:\d+, element 0: never raised") as caught:
        _ = Dataset.range(3).map(never).element_spec
    assert isinstance(caught.value.__cause__, AssertionError)
    with pytest.raises(DataError, match="no elements"):
        _ = stream().element_spec


# TensorSpec


def test_a_spec_is_a_value() -> None:
    assert TensorSpec([2, None], "float32") == TensorSpec((2, None), np.float32)
    assert hash(TensorSpec([2, None], "float32")) == hash(TensorSpec((2, None), np.float32))
    assert TensorSpec((), ">i4") == TensorSpec((), "<i4")
    assert TensorSpec((), "S5") == TensorSpec((), bytes)
    assert TensorSpec((), "U5") == TensorSpec((), str)
    assert TensorSpec() == TensorSpec((), np.float64)
    with pytest.raises(AttributeError):
        TensorSpec().shape = (1,)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (TensorSpec((None, 3), np.float32), "TensorSpec(shape=(None, 3), dtype=float32)"),
        (TensorSpec(None, bytes), "TensorSpec(shape=None, dtype=bytes)"),
        (TensorSpec((), str), "TensorSpec(shape=(), dtype=str)"),
        (TensorSpec((), object), "TensorSpec(shape=(), dtype=object)"),
        (TensorSpec((), "M8[s]"), "TensorSpec(shape=(), dtype=datetime64[s])"),
    ],
)
def test_specs_as_text(spec: TensorSpec, text: str) -> None:
    assert repr(spec) == text


def test_what_a_spec_accepts() -> None:
    spec = TensorSpec((None, 3), np.float32)
    assert spec.accepts((0, 3), np.dtype("f4"))
    assert spec.accepts((7, 3), np.dtype(">f4"))
    assert not spec.accepts((7, 4), np.dtype("f4"))
    assert not spec.accepts((3,), np.dtype("f4"))
    assert not spec.accepts((7, 3), np.dtype("f8"))
    assert TensorSpec(None, np.int8).accepts((1, 2, 3), np.dtype("i1"))
    assert TensorSpec((2,), str).accepts((2,), np.dtype("U7"))


# Cardinality and length

ENDLESS, UNSURE = INFINITE_CARDINALITY, UNKNOWN_CARDINALITY

COUNTS: list[tuple[Callable[[], Dataset[Any]], int]] = [
    (lambda: Dataset.range(10), 10),
    (lambda: Dataset.range(0), 0),
    (lambda: Dataset.range(5, 5), 0),
    (lambda: Dataset.range(10, 0), 0),
    (lambda: Dataset.range(10, 0, -3), 4),
    (lambda: Dataset.range(0, 10, 3), 4),
    (lambda: Dataset.range(2**62), 2**62),
    (lambda: Dataset.from_tensors(np.zeros(5)), 1),
    (lambda: Dataset.from_tensor_slices(np.zeros((5, 2))), 5),
    (lambda: stream(1, 2), UNSURE),
    (lambda: Dataset.counter(), ENDLESS),
    (lambda: Dataset.random(), ENDLESS),
    (lambda: Dataset.range(10).map(never), 10),
    (lambda: Dataset.range(10).batch(3), 4),
    (lambda: Dataset.range(10).batch(3, True), 3),
    (lambda: Dataset.counter().batch(3), ENDLESS),
    (lambda: stream().batch(3), UNSURE),
    (lambda: Dataset.range(10).batch(3).take(2), 2),
    (lambda: Dataset.range(10).take(3), 3),
    (lambda: Dataset.range(10).take(30), 10),
    (lambda: Dataset.range(10).take(-1), 10),
    (lambda: Dataset.range(10).take(0), 0),
    (lambda: Dataset.counter().take(3), 3),
    (lambda: Dataset.counter().take(-1), ENDLESS),
    (lambda: stream().take(3), UNSURE),
    (lambda: Dataset.range(10).skip(3), 7),
    (lambda: Dataset.range(10).skip(30), 0),
    (lambda: Dataset.range(10).skip(-1), 0),
    (lambda: Dataset.counter().skip(3), ENDLESS),
    (lambda: stream().skip(3), UNSURE),
    (lambda: Dataset.range(10).shard(3, 0), 4),
    (lambda: Dataset.range(10).shard(3, 2), 3),
    (lambda: Dataset.counter().shard(3, 2), ENDLESS),
    (lambda: Dataset.range(10).repeat(3), 30),
    (lambda: Dataset.range(10).repeat(0), 0),
    (lambda: Dataset.range(10).repeat(), ENDLESS),
    (lambda: Dataset.range(10).repeat(-1), ENDLESS),
    (lambda: Dataset.range(0).repeat(), 0),
    (lambda: stream(1).repeat(2), UNSURE),
    (lambda: Dataset.counter().repeat(2), ENDLESS),
    (lambda: Dataset.range(10).concatenate(Dataset.range(5)), 15),
    (lambda: Dataset.range(10).concatenate(Dataset.counter()), ENDLESS),
    (lambda: Dataset.range(10).concatenate(stream(1)), UNSURE),
    (lambda: stream(1).concatenate(Dataset.counter()), ENDLESS),
    (lambda: Dataset.zip(Dataset.range(10), Dataset.range(4), Dataset.counter()), 4),
    (lambda: Dataset.zip(Dataset.counter(), Dataset.counter()), ENDLESS),
    (lambda: Dataset.zip(Dataset.range(10), stream(1)), UNSURE),
    (lambda: Dataset.range(10).enumerate(), 10),
    (lambda: Dataset.range(10).shuffle(3), 10),
    (lambda: Dataset.range(10).shuffle(), 10),
    (lambda: Dataset.counter().shuffle(3), ENDLESS),
    (lambda: Dataset.range(10).prefetch(3), 10),
    (lambda: Dataset.range(10).filter(never), UNSURE),
    (lambda: Dataset.range(10).take_while(never), UNSURE),
    (lambda: Dataset.range(10).flat_map(never), UNSURE),
    (lambda: Dataset.range(10).batch(5, True).unbatch(), 10),
    (lambda: Dataset.range(10).batch(4).unbatch(), UNSURE),
    (lambda: Dataset.from_tensor_slices(np.zeros((3, 4, 2))).unbatch(), 12),
]


@pytest.mark.parametrize(("build", "expected"), COUNTS, ids=[str(i) for i in range(len(COUNTS))])
def test_cardinality(build: Callable[[], Dataset[Any]], expected: int) -> None:
    dataset = build()
    count = dataset.cardinality()
    assert count == expected
    assert type(count) is int
    if expected >= 0:
        assert len(dataset) == expected
    else:
        with pytest.raises(TypeError):
            len(dataset)


def test_cardinality_is_the_number_of_elements() -> None:
    checked = 0
    for build, expected in COUNTS:
        if 0 <= expected < 1000 and "never" not in repr(build()):
            checked += 1
            for options in SETTINGS:
                assert sum(1 for _ in build().with_options(options)) == expected
    assert checked > 20


def test_a_dataset_is_true_whatever_its_length() -> None:
    assert Dataset.range(0)
    assert Dataset.counter()
    assert stream()


@pytest.mark.parametrize(
    ("dataset", "text"),
    [
        (Dataset.range(5), "<Dataset range(start=0, stop=5, step=1)>"),
        (Dataset.range(5).map(never), "<Dataset map(map_func=never)>"),
        (Dataset.range(5).batch(2), "<Dataset batch(batch_size=2, drop_remainder=False)>"),
        (Dataset.from_tensors(np.zeros(3)), "<Dataset from_tensors(leaf: float64[3])>"),
        (Dataset.from_tensor_slices(["a"]), "<Dataset from_tensor_slices(1 element; leaf: str[])>"),
    ],
)
def test_repr(dataset: Dataset[Any], text: str) -> None:
    assert repr(dataset) == text


def test_signatures_are_checked_when_built() -> None:
    with pytest.raises(PlanError):
        Dataset.from_generator(never, output_signature=[INT])


class Rank:
    """As tf.TensorShape."""

    def __init__(self, *sizes: int | None, known: bool = True) -> None:
        self.sizes = sizes
        self.rank = len(sizes) if known else None

    def __iter__(self) -> Iterator[int | None]:
        return iter(self.sizes)


def theirs(shape: Rank, dtype: Any) -> Any:
    return type("TensorSpec", (), {"shape": shape, "dtype": dtype})()


def test_signatures_may_be_those_of_tf_data() -> None:
    string = type("DType", (), {"name": "string", "as_numpy_dtype": object})()
    int32 = type("DType", (), {"name": "int32", "as_numpy_dtype": np.int32})()
    signature = {"a": theirs(Rank(None, 2), int32), "b": theirs(Rank(), string), "c": theirs(Rank(known=False), int32)}
    made = Dataset.from_generator(lambda: iter([{"a": [[1, 2]], "b": "x", "c": 3}]), output_signature=signature)
    assert made.element_spec == {
        "a": TensorSpec((None, 2), np.int32),
        "b": TensorSpec((), bytes),
        "c": TensorSpec(None, np.int32),
    }
    assert next(iter(made))["b"] == b"x"
    with pytest.raises(PlanError, match=r"is not a forebay.TensorSpec"):
        Dataset.from_generator(lambda: iter([]), output_signature=np.zeros(3))
