"""Datasets of Hugging Face's library: ``from_huggingface``."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from forebay.errors import PlanError
from forebay.plan.node import Node
from forebay.sources.arrow_memory import ArrowRows, form_of
from forebay.sources.generator import Generator

# Its state leaves out what is in a buffer, so that going on from it would lose elements.
_INEXACT = "BufferShuffled"


def huggingface_source(dataset: Any, columns: Any, label: str | None, where: str) -> Node:
    """The node of a dataset of theirs, told apart by what it has: the library is not imported."""
    if hasattr(dataset, "data") and hasattr(dataset, "_indices") and hasattr(dataset.data, "table"):
        if getattr(dataset, "_format_type", None) == "custom":
            # Unlike other formats, which say what kind of array comes out, it may make something else of every row.
            raise PlanError(
                "from_huggingface(): the dataset has a transform (set_transform), which its table knows nothing of: "
                "map() the function here over dataset.with_format(None), or give the dataset to from_indexable()"
            )
        table, chosen = dataset.data.table, list(dataset.column_names)
        if columns is not None:
            chosen = list(columns)
        indices = None
        if dataset._indices is not None:
            indices = dataset._indices.column(0).combine_chunks()
            indices = (indices.chunk(0) if hasattr(indices, "chunk") else indices).to_numpy().astype(np.int64)
        return ArrowRows(
            table=table,
            form=form_of(table.schema.remove_metadata(), chosen),
            indices=indices,
            call="from_huggingface",
            label=label,
            where=where,
        )
    if hasattr(dataset, "_ex_iterable"):
        if columns is not None:
            dataset = dataset.select_columns(list(columns))
        if getattr(dataset, "features", None) is not None and hasattr(dataset, "decode"):
            # As they are stored, so that both kinds of datasets give the same elements.
            dataset = dataset.decode(False)
        return Generator(generator=Stream(dataset), label=label, where=where)
    if isinstance(dataset, dict):
        raise PlanError(f"from_huggingface(): it has several splits; give one of {sorted(dataset)}")
    raise PlanError(f"from_huggingface({type(dataset).__name__}): give a Dataset or an IterableDataset of theirs")


class Stream:
    """Iterators over an iterable dataset, each over a copy of its own: the place of one is kept in the dataset."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __call__(self) -> Iterator[Any]:
        """A new one."""
        dataset = copy.deepcopy(self._dataset)
        return _Stateful(dataset) if _exact(dataset) else map(_Typed(dataset), dataset)


class _Typed:
    """Their Python values as elements of the types that their features say, as those of a table are."""

    def __init__(self, dataset: Any) -> None:
        features = getattr(dataset, "features", None)
        self._schema = None if features is None else features.arrow_schema.remove_metadata()
        self._form = None if self._schema is None else form_of(self._schema, None)

    def __call__(self, row: Any) -> Any:
        if self._form is None:
            return row
        import pyarrow

        batch = pyarrow.RecordBatch.from_pylist([row], self._schema)
        return next(self._form.block(batch).private().elements())


class _Stateful:
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._typed = _Typed(dataset)
        self._iterator: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self._dataset)
        return self._typed(next(self._iterator))

    def state_dict(self) -> Any:
        """Theirs."""
        if self._iterator is None:
            self._iterator = iter(self._dataset)
        return self._dataset.state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Theirs."""
        self._iterator = None
        self._dataset.load_state_dict(state)


def _exact(dataset: Any) -> bool:
    """Whether its own state leads back to the very next element."""
    if not hasattr(dataset, "state_dict"):
        return False
    steps = [dataset._ex_iterable]
    while steps:
        step = steps.pop()
        if _INEXACT in type(step).__name__:
            return False
        inner = getattr(step, "ex_iterable", None)
        steps += [inner] if inner is not None else list(getattr(step, "ex_iterables", ()))
    return True
