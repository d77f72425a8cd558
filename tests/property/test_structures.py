"""Any structure of any leaves goes in and comes out as it was."""

from __future__ import annotations

import copy
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import forebay as fb
from conformance.compare import assert_same, assert_same_elements, leaves
from forebay.block import flatten

Pair = namedtuple("Pair", ["left", "right"])
Single = namedtuple("Single", ["only"])


@dataclass
class Record:
    first: Any
    second: Any


@dataclass(frozen=True, slots=True)
class Slotted:
    value: Any


ODD_TEXT = st.text(st.sampled_from("a\0\n é🎏\U0010ffff"), max_size=5)
ODD_BYTES = st.binary(max_size=5)
DTYPES = st.sampled_from(["?", "i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "M8[s]", "m8[ns]"])
OPTIONS = st.builds(fb.Options, optimize=st.booleans(), block_bytes=st.sampled_from([1, 30, 1 << 20]))


def structures(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Leaves in dicts, tuples, named tuples and dataclasses, a few levels deep."""
    return st.recursive(
        leaf,
        lambda part: st.one_of(
            st.lists(part, min_size=1, max_size=3).map(tuple),
            st.dictionaries(st.text("abc", max_size=2), part, min_size=1, max_size=3),
            st.builds(Pair, part, part),
            st.builds(Single, part),
            st.builds(Record, part, part),
            st.builds(Slotted, part),
        ),
        max_leaves=5,
    )


def arrays(rows: int | None = None) -> st.SearchStrategy[np.ndarray]:
    inner = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)
    shapes = inner if rows is None else inner.map(lambda shape: (rows, *shape))
    return DTYPES.flatmap(lambda dtype: hnp.arrays(np.dtype(dtype), shapes))


def _holds_data(structure: Any) -> bool:
    return any(leaf is not None for leaf in leaves(structure))


def _as_handed_out(leaf: Any) -> Any:
    """An array without axes is a scalar."""
    return leaf[()] if isinstance(leaf, np.ndarray) else leaf


def _rebuild(structure: Any, function: Any) -> Any:
    if isinstance(structure, dict):
        return {key: _rebuild(part, function) for key, part in structure.items()}
    if isinstance(structure, tuple):
        parts = [_rebuild(part, function) for part in structure]
        return tuple(parts) if type(structure) is tuple else type(structure)(*parts)
    if isinstance(structure, Record):
        return Record(_rebuild(structure.first, function), _rebuild(structure.second, function))
    if isinstance(structure, Slotted):
        return Slotted(_rebuild(structure.value, function))
    return function(structure)


@given(structures(st.one_of(arrays(), ODD_TEXT, ODD_BYTES, st.none())).filter(_holds_data), OPTIONS)
def test_from_tensors(structure: Any, options: fb.Options) -> None:
    expected = _rebuild(structure, lambda leaf: copy.deepcopy(_as_handed_out(leaf)))
    if all(leaf is None for leaf in flatten(structure)[0]):
        with pytest.raises(fb.PlanError):
            fb.Dataset.from_tensors(structure)
        return
    dataset = fb.Dataset.from_tensors(structure).with_options(options)
    assert_same_elements(list(dataset), [expected])
    assert_same_elements(
        list(dataset.repeat(2).map(lambda *args: args if type(structure) is tuple else args[0])),
        [expected] * 2,
    )


@given(st.data(), st.integers(0, 7), OPTIONS)
def test_from_tensor_slices(data: st.DataObject, rows: int, options: fb.Options) -> None:
    column = arrays(rows)
    if rows:
        text = st.lists(ODD_TEXT, min_size=rows, max_size=rows)
        column = st.one_of(column, text, st.lists(ODD_BYTES, min_size=rows, max_size=rows))
    structure = data.draw(structures(column))
    expected = [_rebuild(structure, lambda leaf, i=i: copy.deepcopy(leaf[i])) for i in range(rows)]
    dataset = fb.Dataset.from_tensor_slices(structure).with_options(options)
    assert_same_elements(list(dataset), expected)
    assert dataset.cardinality() == rows
    if rows:
        assert_same_elements(list(dataset.skip(rows - 1)), expected[rows - 1 :])
        assert_same_elements(list(dataset.batch(2).unbatch()), expected)
        assert_same_elements(sorted_like(list(dataset.shuffle(seed=1)), expected), expected)


def sorted_like(elements: list[Any], expected: list[Any]) -> list[Any]:
    """The elements in the order of the expected ones, or as they are if they are not the same ones."""
    keys = [_key(e) for e in elements]
    if sorted(keys) != sorted(map(_key, expected)):
        return elements
    taken = list(elements)
    return [taken.pop(list(map(_key, taken)).index(_key(e))) for e in expected]


def _key(element: Any) -> str:
    return repr(
        [(leaf.dtype, leaf.shape, leaf.tobytes()) if hasattr(leaf, "dtype") else leaf for leaf in leaves(element)]
    )


RAGGED_DTYPES = st.sampled_from(["?", "u1", "i4", "i8", "f4", "f8"])


@given(st.data(), st.integers(1, 3), st.sampled_from([1, 30, 1 << 20]))
def test_ragged_rows(data: st.DataObject, axes: int, block_bytes: int) -> None:
    """Rows of one dtype and any shapes: through a function, a generator, a filter, a shuffle and back."""
    dtype = data.draw(RAGGED_DTYPES)
    shape = st.tuples(*[st.integers(0, 3)] * axes)
    rows = data.draw(st.lists(shape.flatmap(lambda s: hnp.arrays(dtype, s)), max_size=9))
    options = fb.Options(block_bytes=block_bytes)
    expected = copy.deepcopy(rows)

    from_generator = fb.Dataset.from_generator(lambda: iter(rows)).with_options(options)
    assert_same_elements(list(from_generator), expected)
    mapped = fb.Dataset.range(len(rows)).map(lambda i: rows[i]).with_options(options)
    assert_same_elements(list(mapped), expected)
    assert_same_elements(list(mapped.filter(lambda row: row.size != 1)), [row for row in expected if row.size != 1])
    flat = [part.copy() for row in expected for part in row]
    assert_same_elements(list(mapped.unbatch()), flat)
    assert_same_elements(sorted_like(list(from_generator.shuffle(4, seed=2)), expected), expected)
    assert_same_elements(rows, expected, "the user's own rows:")


@given(st.lists(ODD_TEXT, max_size=12), st.integers(1, 5), OPTIONS)
def test_text(texts: list[str], size: int, options: fb.Options) -> None:
    _check_strings(texts, size, options)


@given(st.lists(ODD_BYTES, max_size=12), st.integers(1, 5), OPTIONS)
def test_bytes(texts: list[bytes], size: int, options: fb.Options) -> None:
    _check_strings(texts, size, options)


def _check_strings(texts: list[Any], size: int, options: fb.Options) -> None:
    dataset = fb.Dataset.range(len(texts)).map(lambda i: texts[i]).with_options(options)
    assert_same_elements(list(dataset), texts)
    batches = list(dataset.batch(size))
    for k, batch in enumerate(batches):
        assert_same(batch, np.array([*texts[k * size : (k + 1) * size], None], object)[:-1])
    assert_same_elements(list(dataset.batch(size).unbatch()), texts)
    assert_same_elements(
        list(dataset.map(lambda text: {"t": text, "n": len(text)})),
        [{"t": text, "n": np.int64(len(text))} for text in texts],
    )
    if texts:
        assert_same_elements(list(fb.Dataset.from_tensor_slices(texts).with_options(options)), texts)
