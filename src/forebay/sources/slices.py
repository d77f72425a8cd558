"""Arrays in memory or mapped from disk: ``from_tensor_slices`` and ``from_tensors``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from forebay.block import (
    Block,
    Column,
    Indices,
    RowError,
    Structure,
    column_from_array,
    column_from_rows,
    flatten,
    with_dtype,
)
from forebay.block.dense import Dense
from forebay.block.objects import Objects
from forebay.errors import PlanError
from forebay.lazy import cached_property
from forebay.plan.fingerprint import digest
from forebay.plan.mapping import memory_map
from forebay.plan.node import Build, Node
from forebay.plan.text import brief_parts, exact
from forebay.run import Access, Operator, ReadRows, Setup
from forebay.sources.mapped import MappedRows
from forebay.sources.misuse import as_column_data, check_not_mixed, misfit_in


class _Columns(Access):
    """Rows of columns that the user owns."""

    def __init__(self, node: "Slices") -> None:
        super().__init__(node.length)
        self._structure = node.structure
        self._sources = list(zip(node.columns, node.files))

    def read(self, start: int, stop: int, epoch: int) -> Block:
        """Views, except of mapped files."""
        columns = [
            column.slice(start, stop) if file is None else file.read(start, stop) for column, file in self._sources
        ]
        return Block(self._structure, columns, stop - start)

    def gather(self, indices: Indices, epoch: int) -> Block:
        """Copies of the rows."""
        columns = [column.take(indices) if file is None else file.gather(indices) for column, file in self._sources]
        return Block(self._structure, columns, len(indices))


@dataclass(frozen=True, eq=False, kw_only=True)
class Slices(Node):
    """Columns as a dataset. `whole` says that they hold a single element, as ``from_tensors`` makes it."""

    structure: Structure
    columns: tuple[Column, ...] = field(repr=False)
    length: int
    whole: bool = False

    kind = "from_tensor_slices"

    @cached_property
    def files(self) -> tuple[MappedRows | None, ...]:
        """The mapped file behind each column, where there is one."""
        return tuple(MappedRows.behind(column) for column in self.columns)

    def cardinality(self) -> int:
        """The length of the arrays."""
        return self.length

    def spec(self, *inputs: Any) -> Any:
        """What the columns say."""
        return self.structure.unflatten([column.spec for column in self.columns])

    def access(self) -> Access:
        """By number."""
        return _Columns(self)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read by number."""
        return ReadRows(self.site, self.access(), setup)

    def describe(self) -> str:
        """Elements and leaves, not the data."""
        return self._text(brief_parts(self._leaves()))

    def signature(self) -> str:
        """Elements, leaves, and a digest of the data."""
        leaves = self._leaves()
        content = (c.buffers() if file is None else file.sample() for c, file in zip(self.columns, self.files))
        return f"{self._text(exact(brief_parts(leaves), ', '.join(leaves)))}#{digest(tuple(content))}"

    def _text(self, leaves: str) -> str:
        if self.whole:
            return f"from_tensors({leaves})"
        return f"from_tensor_slices({self.length} element{'s' * (self.length != 1)}; {leaves})"

    def _leaves(self) -> list[str]:
        return [
            f"{path or 'leaf'}: {column.spec.dtype.name}{list(column.spec.shape or ())}"
            for path, column in zip(self.structure.paths(), self.columns)
        ]


def slices_of(tensors: Any, label: str | None, where: str) -> Slices:
    """The node of ``from_tensor_slices``."""
    leaves, structure = _flat("from_tensor_slices", tensors)
    columns = [
        None if leaf is None else _sliced("from_tensor_slices", path, leaf)
        for path, leaf in zip(structure.leaf_names(), leaves)
    ]
    lengths = {path: len(column) for path, column in zip(structure.leaf_names(), columns) if column is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{path}: {length}" for path, length in lengths.items())
        raise PlanError(f"from_tensor_slices(): all leaves must have the same length, got {listed}")
    length = next(iter(lengths.values()))
    # A leaf that is None is None in every element.
    filled = tuple(Objects(np.full(length, None)) if column is None else column.shared() for column in columns)
    return Slices(structure=structure, columns=filled, length=length, label=label, where=where)


def single_element(tensors: Any, label: str | None, where: str) -> Slices:
    """The node of ``from_tensors``."""
    leaves, structure = _flat("from_tensors", tensors)
    columns = [
        _column("from_tensors", path, partial(column_from_rows, [leaf]))
        for path, leaf in zip(structure.leaf_names(), leaves)
    ]
    return Slices(
        structure=structure,
        columns=tuple(column.shared() for column in columns),
        length=1,
        whole=True,
        label=label,
        where=where,
    )


def _flat(call: str, tensors: Any) -> tuple[list[Any], Structure]:
    leaves, structure = flatten(_tables_as_dicts(tensors))
    if all(leaf is None for leaf in leaves):
        raise PlanError(f"{call}({tensors!r}): there is no data in it")
    return leaves, structure


def _sliced(call: str, path: str, leaf: Any) -> Column:
    data = as_column_data(call, path, leaf)
    if memory_map(data) is not None and data.ndim and data.nbytes:
        # Text and other byte orders are converted when they are read, so that nothing is loaded here.
        return Dense(data.view(np.ndarray), owned=False)
    column = _column(call, path, partial(column_from_array, data, owned=False), data)
    check_not_mixed(call, path, data, column)
    return with_dtype(column)


def _column(call: str, path: str, make: Callable[[], Column], rows: Any = None) -> Column:
    try:
        return make()
    except RowError as error:
        raise PlanError(f"{call}(): {path} {error.text}{misfit_in(rows, error.row)}") from None
    except ValueError as error:
        raise PlanError(f"{call}(): {path} does not form an array: {error}") from error


def _tables_as_dicts(tensors: Any) -> Any:
    """pandas tables as dicts of columns, without importing pandas."""
    if type(tensors).__module__.partition(".")[0] == "pandas":
        if hasattr(tensors, "columns"):
            return {column: tensors[column].to_numpy() for column in tensors.columns}
        if hasattr(tensors, "to_numpy"):
            return tensors.to_numpy()
    return tensors
