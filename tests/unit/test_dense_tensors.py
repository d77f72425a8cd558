"""Sparse and ragged values as arrays, beside TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from forebay import io
from unit.lazy_tensorflow import tf

KINDS: dict[str, tuple[Any, Any, Any]] = {
    "int64": (np.int64, 3, -1),
    "float32": (np.float32, 0.5, 0.25),
    "bytes": (bytes, b"v", b"none"),
}


def theirs(values: Any, default: Any) -> Any:
    """Their value as an array."""
    if isinstance(values, io.SparseTensor):
        return tf.sparse.to_dense(tf.SparseTensor(*values), default).numpy()
    levels = []
    while isinstance(values, io.RaggedTensor):
        levels.append(values.row_splits)
        values = values.values
    return tf.RaggedTensor.from_nested_row_splits(values, levels).to_tensor(default).numpy()


def same(made: Any, expected: Any) -> None:
    assert made.shape == expected.shape
    assert made.dtype == expected.dtype
    assert made.tolist() == expected.tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.sampled_from(sorted(KINDS)), st.booleans())
def test_features_of_any_length(lengths: list[int], kind: str, given_default: bool) -> None:
    dtype, value, other = KINDS[kind]
    default = other if given_default else None
    records = [io.serialize_example({"x": [value] * length} if length else {}) for length in lengths]
    sparse = io.parse_example(records, {"x": io.VarLenFeature(dtype)})["x"]
    same(sparse.to_dense(default), theirs(sparse, default))
    ragged = io.parse_example(records, {"x": io.RaggedFeature(dtype)})["x"]
    same(ragged.to_tensor(default), theirs(ragged, default))
    assert ragged.to_tensor(default).tolist() == sparse.to_dense(default).tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=4), st.sampled_from([np.int32, np.int64]))
def test_rows_of_rows(rows: list[list[int]], splits: Any) -> None:
    outer = np.cumsum([0, *map(len, rows)]).astype(splits)
    lengths = [length for row in rows for length in row]
    inner = np.cumsum([0, *lengths]).astype(splits)
    ragged = io.RaggedTensor(io.RaggedTensor(np.arange(sum(lengths)), inner), outer)
    same(ragged.to_tensor(7), theirs(ragged, 7))


def test_values_that_are_arrays() -> None:
    ragged = io.RaggedTensor(np.arange(6).reshape(3, 2), np.array([0, 2, 3]))
    assert ragged.to_tensor().tolist() == [[[0, 1], [2, 3]], [[4, 5], [0, 0]]]


@pytest.mark.parametrize(("values", "default"), [([1, 2], 0.5), ([1, 2], b""), ([0.5, 1.5], "x"), ([b"a", b"b"], 0)])
def test_defaults_of_another_kind(values: list[Any], default: Any) -> None:
    array = np.array(values, object if isinstance(values[0], bytes) else None)
    with pytest.raises(fb.PlanError, match=r"to_tensor.*give such a one"):
        io.RaggedTensor(array, np.array([0, 2])).to_tensor(default)
    with pytest.raises(fb.PlanError, match=r"to_dense.*give such a one"):
        io.SparseTensor(np.array([[0], [1]]), array, np.array([2])).to_dense(default)
