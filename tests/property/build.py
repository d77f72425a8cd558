"""A chain as a Forebay dataset, and Forebay's elements as the model's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import forebay as fb
from property import model
from property.chains import Chain, Form
from property.model import Step


def dataset_of(chain: Chain, depth: int | None = None) -> fb.Dataset[Any]:
    """The dataset that the first `depth` steps of the chain make."""
    dataset = _source(chain)
    for k, step in enumerate(chain.steps[:depth]):
        dataset = _add_step(dataset, step, chain.forms[k])
    return dataset


def _source(chain: Chain) -> fb.Dataset[Any]:
    if chain.kind == "range":
        values = chain.source
        step = values[1] - values[0] if len(values) > 1 else 1
        start = values[0] if values else 0
        return fb.Dataset.range(start, start + step * len(values), step)
    if chain.kind == "slices":
        return fb.Dataset.from_tensor_slices(_columns(chain.forms[0], chain.source))
    rows = [to_numpy(row) for row in chain.source]
    return fb.Dataset.from_generator(lambda: iter(rows))


def _columns(form: Form, rows: Sequence[Any]) -> Any:
    if isinstance(form, dict):
        return {key: _columns(part, [row[key] for row in rows]) for key, part in form.items()}
    if isinstance(form, tuple):
        return tuple(_columns(part, [row[i] for row in rows]) for i, part in enumerate(form))
    return list(rows)


def _add_step(dataset: fb.Dataset[Any], step: Step, form: Form) -> fb.Dataset[Any]:
    name, args = step.name, step.args
    if name == "map":
        return dataset.map(_elementwise(model.FUNCTIONS[args[0]], form))
    if name == "map_batched":
        return dataset.map(lambda column: column + 1, batched=True)
    if name in ("filter", "take_while"):
        return getattr(dataset, name)(_elementwise(lambda row: model.keeps(row, *args), form, plain=True))
    if name == "filter_batched":
        return dataset.filter(lambda column: column % args[0] != args[1], batched=True)
    if name == "flat_map":
        return dataset.flat_map(_elementwise(lambda row: _inner(model.total(row), args[0]), form, plain=True))
    if name == "repeat_for_ever":
        return dataset.repeat()
    if name == "concatenate_head":
        return dataset.concatenate(dataset.take(args[0]))
    if name == "zip_with_tail":
        return fb.Dataset.zip(dataset, dataset.skip(args[0]))
    return getattr(dataset, name)(*args)


def _inner(n: int, most: int) -> fb.Dataset[Any]:
    return fb.Dataset.range(n, n + n % (most + 1))


def _elementwise(function: Callable[[Any], Any], form: Form, plain: bool = False) -> Callable[..., Any]:
    """The model's function as Forebay calls it: tuples come as separate arguments."""
    unpacked = type(form) is tuple

    def call(*args: Any) -> Any:
        result = function(to_plain(args if unpacked else args[0]))
        return result if plain else to_numpy(result)

    return call


def to_numpy(value: Any) -> Any:
    """The model's element as Forebay would hand it out. Nested lists become arrays of one dtype."""
    return model.over_leaves(_leaf_to_numpy, value)


def _leaf_to_numpy(leaf: Any) -> Any:
    if isinstance(leaf, str):
        return leaf
    if not isinstance(leaf, list):
        return np.int64(leaf)
    array = np.array(leaf, object)
    has_text = any(isinstance(item, str) for item in array.ravel())
    return array if has_text else array.astype(np.int64)


def to_plain(value: Any) -> Any:
    """Forebay's element as the model has it; any type or dtype that should not be there is an error."""
    if type(value) is dict:
        return {key: to_plain(part) for key, part in value.items()}
    if type(value) is tuple:
        return tuple(to_plain(part) for part in value)
    if type(value) is str:
        return value
    if type(value) is np.int64:
        return int(value)
    assert type(value) is np.ndarray, f"{type(value)} {value!r}"
    assert value.dtype in (np.int64, object), value.dtype
    assert value.dtype != object or all(type(item) is str for item in value.ravel()), value
    return value.tolist()
