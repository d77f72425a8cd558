"""Elements that do not fit: which operator, which line, which element, which leaf, and what it should have been."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import DataError, Dataset, TensorSpec
from unit.support import SETTINGS, until_error

FILE = Path(__file__).name
BAD = 7

every_setting = pytest.mark.parametrize("options", SETTINGS, ids=lambda o: f"{o.optimize}-{o.block_bytes}")


NUMBER, VECTOR = TensorSpec((), np.int32), TensorSpec((2,), np.float32)


@pytest.mark.parametrize(
    ("signature", "bad", "text"),
    [
        (NUMBER, (1, 2), r"has shape \(2,\), output_signature says \(\)"),
        (NUMBER, "a", "does not convert to int32"),
        (VECTOR, [1, 2, 3], r"the value has shape \(3,\), output_signature says \(2,\)"),
        ({"a": NUMBER}, {"b": 1}, r"gave the structure \{'b': \*\}, output_signature says \{'a': \*\}"),
        ((NUMBER, {"v": VECTOR}), (1, {"v": [1]}), r"leaf \[1\]\['v'\] has shape \(1,\), output_signature says \(2,\)"),
        (TensorSpec((), str), b"x", "is not str"),
        (TensorSpec((), bytes), 5, "is not bytes"),
    ],
)
def test_elements_that_break_the_signature(signature: Any, bad: Any, text: str) -> None:
    dataset = Dataset.from_generator(lambda: iter([bad]), output_signature=signature)
    with pytest.raises(DataError, match=f"from_generator at {FILE}:.*, element 0: .*{text}"):
        list(dataset)


# Elements that do not fit together


def at(index: Any, then: Any, otherwise: Any) -> Any:
    return then if index == BAD else otherwise


ONE = "; make all of them one dtype, as np.{0}(x) or x.astype(np.{0}) does"

MISFITS: list[tuple[str, Callable[[], Dataset[Any]]]] = [
    (
        "map at {}, element 7: the value is a tuple, where earlier elements have a leaf",
        lambda: Dataset.range(20).map(lambda i: at(i, (1, 2), 5)),
    ),
    (
        "map at {}, element 7: has the structure {{'b': *}}, earlier {{'a': *}}",
        lambda: Dataset.range(20).map(lambda i: at(i, {"b": 1}, {"a": 1})),
    ),
    (
        "map at {}, element 7: the value is float64, earlier int64" + ONE.format("float64"),
        lambda: Dataset.range(20).map(lambda i: at(i, 1.5, 5)),
    ),
    (
        "map at {}, element 7: leaf ['a'][1] is str, earlier bytes; encode() or decode() one of them",
        lambda: Dataset.range(20).map(lambda i: {"a": (i, at(i, "x", b"x"))}),
    ),
    (
        "map at {}, element 7: the value is float32, earlier int64" + ONE.format("float64"),
        lambda: Dataset.range(20).map(lambda i: at(i, np.float32(1), None if i % 2 else 1)),
    ),
    (
        "map at {}, element 7: the value is float64, earlier int64" + ONE.format("float64"),
        lambda: Dataset.range(20).map(lambda i: at(i, 1.5, 5)).map(lambda x: x),
    ),
    (
        "map at {}, element 7: leaf ['a'] is float64, earlier int64" + ONE.format("float64"),
        lambda: Dataset.range(20).map(lambda i: {"a": at(i, 1.5, 5)}).map(lambda d: d),
    ),
    (
        "map at {}, element 7: has the structure (*,), earlier {{'a': *}}",
        lambda: Dataset.range(20).map(lambda i: at(i, (1,), {"a": 5})).map(lambda d: d),
    ),
    (
        "map at {}, element 7: the value is 1180591620717411303424, which does not fit into int64",
        lambda: Dataset.range(20).map(lambda i: at(i, 2**70, 5)),
    ),
    (
        "from_generator at {}, element 7: the value is float64, earlier int64" + ONE.format("float64"),
        lambda: Dataset.from_generator(lambda: (at(i, 1.5, i) for i in range(20))),
    ),
    (
        "from_generator at {}, element 7: the value is a tuple, where earlier elements have a leaf",
        lambda: Dataset.from_generator(lambda: (at(i, (1,), i) for i in range(20))),
    ),
    (
        "filter at {}, element 7: <lambda> returned 5, a predicate must return True or False",
        lambda: Dataset.range(20).filter(lambda i: at(i, 5, True)),
    ),
    (
        "take_while at {}, element 7: <lambda> returned None, a predicate must return True or False",
        lambda: Dataset.range(20).take_while(lambda i: at(i, None, True)),
    ),
    (
        "flat_map at {}, element 7: <lambda> returned an int, it must return a Dataset",
        lambda: Dataset.range(20).flat_map(lambda i: at(i, 5, Dataset.range(1))),
    ),
    (
        "flat_map at {}, element 7: the inner dataset's element: the value is int32, earlier int64"
        + ONE.format("int64"),
        lambda: Dataset.range(20).flat_map(lambda i: Dataset.range(1, output_type=at(i, np.int32, np.int64))),
    ),
]


@pytest.mark.parametrize(("message", "build"), MISFITS, ids=[str(i) for i in range(len(MISFITS))])
@every_setting
def test_an_element_that_does_not_fit_is_named(
    message: str, build: Callable[[], Dataset[Any]], options: fb.Options
) -> None:
    elements, error = until_error(build().with_options(options))
    assert len(elements) == BAD
    assert type(error) is DataError
    assert str(error) == message.format(f"{FILE}:{build.__code__.co_firstlineno}")
    assert error.__cause__ is None


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda c: c[:-1], "the result has {} rows, the function was given {}"),
        (lambda c: 5, "the result is a scalar; a batched function must return whole columns"),
        (lambda c: None, "the result is None; a batched function must return whole columns"),
        (lambda c: (c, c[:0]), "leaf [1] has 0 rows, the function was given {}"),
    ],
)
@every_setting
def test_a_batched_function_must_return_whole_columns(
    result: Callable[[Any], Any], text: str, options: fb.Options
) -> None:
    with pytest.raises(DataError, match=f"map at {FILE}:.*, element 0: ") as caught:
        list(Dataset.range(5).map(result, batched=True).with_options(options))
    # The rows are tried one by one before the error is told, so that is what the function was given last.
    assert text.format(0, 1) in str(caught.value) or text.format(1) in str(caught.value)


@pytest.mark.parametrize(
    "result", [lambda c: c, lambda c: (c > 1, c > 2), lambda c: (), lambda c: {}, lambda c: [[True]] * len(c)]
)
def test_a_batched_predicate_must_return_one_column_of_booleans(result: Callable[[Any], Any]) -> None:
    with pytest.raises(DataError, match=f"filter at {FILE}:.*, element 0: <lambda> returned .*True or False"):
        list(Dataset.range(5).filter(result, batched=True))


# Batches


def shapes(*sizes: int) -> Dataset[Any]:
    return Dataset.range(len(sizes)).map(lambda i: {"x": (i, np.zeros(sizes[i]))})


@every_setting
def test_a_batch_of_unequal_shapes_names_leaf_element_and_both_shapes(options: fb.Options) -> None:
    build: Callable[[], Dataset[Any]] = lambda: shapes(2, 2, 3, 3, 4, 4, 5, 1, 2).batch(2)  # noqa: E731
    elements, error = until_error(build().with_options(options))
    assert [x["x"][1].shape for x in elements] == [(2, 2), (2, 3), (2, 4)]
    assert type(error) is DataError
    assert str(error) == (
        f"batch at {FILE}:{build.__code__.co_firstlineno}, element 7: leaf ['x'][1] has shape (1,), the batch began "
        "with shape (5,); only equal elements form a batch: make them equal with map()"
    )


@every_setting
def test_a_shuffled_batch_names_the_element_as_it_was_before_the_shuffle(options: fb.Options) -> None:
    for seed in range(4):
        dataset = Dataset.from_tensor_slices([[1], [1], [1, 2], [1, 2], [1], [1, 2, 3], [4], [4]]).batch(2)
        elements, error = until_error(dataset.shuffle(seed=seed).with_options(options))
        assert len(elements) < 4
        assert f"batch at {FILE}:" in str(error)
        assert "element 5: the value has shape (3,), the batch began with shape (1,)" in str(error)


@pytest.mark.parametrize(
    ("values", "index", "text"),
    [
        ([1, 2, 3, None, 5], 3, "the value is None in some elements of the batch and a value in others"),
        ([None, None, None, 1], 3, "the value is None in some elements of the batch and a value in others"),
        ([np.zeros(2), np.zeros((2, 2))], 1, "has shape (2, 2), the batch began with shape (2,)"),
        ([np.zeros(2), np.float64(1)], 1, "has shape (), the batch began with shape (2,)"),
        ([["a", "b"], ["a"]], 1, "has shape (1,), the batch began with shape (2,)"),
    ],
)
@every_setting
def test_batches_that_cannot_be_stacked(values: list[Any], index: int, text: str, options: fb.Options) -> None:
    dataset = Dataset.from_generator(lambda: iter(values)).batch(2)
    elements, error = until_error(dataset.with_options(options))
    assert len(elements) == index // 2
    assert type(error) is DataError
    assert f", element {index}: " in str(error)
    assert text in str(error)


# Unbatch


@every_setting
def test_unbatch_names_leaves_of_unequal_length(options: fb.Options) -> None:
    dataset = Dataset.range(9).map(lambda i: (np.zeros(2), np.zeros(3 if i == BAD else 2))).unbatch()
    elements, error = until_error(dataset.with_options(options))
    assert len(elements) == 2 * BAD
    assert type(error) is DataError
    assert f"element {BAD}: leaf [1] has 3 rows, leaf [0] has 2: they must agree" in str(error)


@every_setting
def test_unbatch_names_a_scalar(options: fb.Options) -> None:
    dataset = Dataset.range(9).map(lambda i: 1.0 if i == BAD else np.zeros(2)).unbatch()
    elements, error = until_error(dataset.with_options(options))
    assert len(elements) == 2 * BAD
    assert type(error) is DataError
    assert f"unbatch at {FILE}:" in str(error)
    assert f"element {BAD}: the value is a scalar" in str(error)
