"""Digests with contents of tables of pandas, Polars and Arrow: names and categories count too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from forebay.plan.fingerprint import digest
from unit.support import python

MAKING: dict[str, Callable[[int], Any]] = {
    "a series' name": lambda k: pd.Series([1, 2], name=str(k)),
    "texts of a series": lambda k: pd.Series(["a", str(k)]),
    "categories": lambda k: pd.Series(pd.Categorical(["a"], categories=["a", str(k)])),
    "names of an index": lambda k: pd.DataFrame(
        {"a": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)], names=["a", str(k)])
    ),
    "columns of pandas": lambda k: pd.DataFrame({str(k): [1]}),
    "columns of polars": lambda k: pl.DataFrame({str(k): [1, 2]}),
    "rows of polars": lambda k: pl.DataFrame({"a": [1, k]}),
    "a polars series' name": lambda k: pl.Series(str(k), [1]),
    "columns of arrow": lambda k: pa.table({str(k): [1, 2]}),
    "rows of arrow": lambda k: pa.table({"a": [1, k], "b": ["x", None]}),
    "metadata of arrow": lambda k: pa.table({"a": [1]}).replace_schema_metadata({"k": str(k)}),
    "a batch of arrow": lambda k: pa.record_batch({"a": [1, k]}),
    "an array of arrow": lambda k: pa.array([1, k]),
    "a dictionary of arrow": lambda k: pa.array(["a", str(k)]).dictionary_encode(),
    "chunks of arrow": lambda k: pa.chunked_array([[1], [k]]),
}


@pytest.mark.parametrize("what", MAKING)
def test_all_that_is_in_them_counts(what: str) -> None:
    make = MAKING[what]
    assert digest(make(1), contents=True) == digest(make(1), contents=True) != digest(make(2), contents=True)


def test_keys_are_the_same_in_every_process() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
        "from forebay.plan.fingerprint import digest; from unit.test_fingerprint_tables import MAKING\n"
        "print([digest(make(1), True) for make in MAKING.values()])"
    )
    assert eval(python(code)) == [digest(make(1), contents=True) for make in MAKING.values()]
