"""Conditions that rows of tables have to meet: ``filters``."""

import re
from typing import Any

import numpy as np

from forebay.block import Indices
from forebay.errors import FileError, PlanError
from forebay.storage.tables import TableForm, picked


def filter_condition(call: str, filters: Any) -> Any:
    """As an Arrow expression."""
    if filters is None:
        return None
    import pyarrow.dataset
    import pyarrow.parquet

    if isinstance(filters, pyarrow.dataset.Expression):
        return filters
    try:
        return pyarrow.parquet.filters_to_expression(filters)
    except Exception as error:
        raise PlanError(
            f"{call}(filters={filters!r}): give tuples as in [('x', '>', 3)], lists of them for alternatives, "
            f"or an expression as pyarrow.compute.field('x') > 3 makes it ({error})"
        ) from error


def check_filter(path: str, schema: Any, condition: Any) -> None:
    """FileError for a condition on columns that are not there, or of other types: known without a row."""
    _matching(path, schema.empty_table(), condition)


def filtered(path: str, batch: Any, condition: Any, threads: bool) -> Any:
    """The rows of a record batch that meet a condition, looked for on Arrow's threads or not."""
    import pyarrow
    import pyarrow.acero as acero

    # As Table.filter() does, which always has threads: see ArrowMemory.
    rows = acero.TableSourceNodeOptions(pyarrow.Table.from_batches([batch]))
    steps = [acero.Declaration("table_source", rows), acero.Declaration("filter", acero.FilterNodeOptions(condition))]
    try:
        kept = acero.Declaration.from_sequence(steps).to_table(use_threads=threads).combine_chunks().to_batches()
    except pyarrow.ArrowNotImplementedError:
        return picked(batch, _matching(path, batch, condition))
    except Exception as error:
        raise _no_filter(path, batch.schema, condition, error) from error
    return kept[0] if kept else batch.slice(0, 0)


def _matching(path: str, batch: Any, condition: Any) -> Indices:
    """The numbers of the rows that meet a condition, for batches with columns of which Arrow cannot filter rows."""
    import pyarrow

    text, columns = str(condition), {}
    for name in batch.schema.names:
        if name in text:
            column = batch.column(name)
            view = pyarrow.types.is_string_view(column.type)
            columns[name] = column.cast(pyarrow.large_string()) if view else column
    number = "row"
    while number in text:
        number += "_"
    columns[number] = pyarrow.array(np.arange(batch.num_rows))
    try:
        found = pyarrow.table(columns).filter(condition).column(number)
    except Exception as error:
        raise _no_filter(path, batch.schema, condition, error) from error
    rows: Indices = found.to_numpy()
    return rows


def _no_filter(path: str, schema: Any, condition: Any, error: Exception) -> FileError:
    absent = re.match(r"No match for FieldRef\.Name\((.*?)\) in ", str(error))
    if absent is not None:
        there = ", ".join(map(repr, schema.names))
        return FileError(path, f"has no column {absent[1]!r}, which filters names; there are {there}")
    return FileError(path, f"the filter {condition} cannot be applied: {error}")


def filter_columns(schema: Any, condition: Any, form: TableForm) -> tuple[str, ...]:
    """The columns of elements, and those that a filter looks at."""
    if condition is None:
        return form.names
    text = str(condition)
    # Arrow has no public way to ask an expression for its fields; one column too many does no harm.
    more = tuple(name for name in schema.names if name in text and name not in form.names)
    return (*form.names, *more)
