"""CSV files: what separates their fields, and whether they begin with names."""

import csv
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import forebay as fb
from forebay.errors import FileError
from forebay.formats.format import Facts, Files, Format, Reading
from forebay.formats.head import Head

_DELIMITERS = ",\t;|"
_LINES = 50
# Types are found out from as many records as that.
_INFERENCE = 10_000
# What stands for whole numbers that are missing while they are read. Nobody writes that one.
_MISSING = np.iinfo(np.int64).min


@dataclass(frozen=True)
class _Dialect:
    delimiter: str
    names: tuple[str, ...]
    header: bool

    def arguments(self) -> dict[str, Any]:
        """Those that ``from_csv`` has to be told."""
        given: dict[str, Any] = {}
        if not self.header:
            given |= {"column_names": list(self.names), "header": False}
        if self.delimiter != ",":
            given["field_delim"] = self.delimiter
        return given


def _table(head: Head) -> tuple[str, list[list[str]]] | None:
    """The delimiter and the first records, if all of them have as many fields, and more than one."""
    # The last line may be the first of a field of several.
    lines = head.lines[:_LINES]
    for delimiter in _DELIMITERS:
        try:
            records = [record for record in csv.reader(lines, delimiter=delimiter, strict=True) if record]
        except csv.Error:
            continue
        if records and len({len(record) for record in records}) == 1 and len(records[0]) > 1:
            return delimiter, records
    return None


def _begins(head: Head) -> bool:
    if head.text is None or head.name.endswith((".txt", ".text", ".log", ".md")):
        return False
    if head.name.endswith((".csv", ".tsv")):
        return True
    found = _table(head)
    return found is not None and len(found[1]) > 1


def _dialect(head: Head) -> _Dialect:
    found = _table(head)
    if head.cut:
        raise FileError(
            head.path,
            f"its first line is longer than {len(head.data):,} bytes, too long to tell what separates its fields; "
            "fb.Dataset.from_csv reads it, if it is told that",
        )
    if found is None:
        delimiter = "\t" if head.name.endswith(".tsv") else ","
        records = _first(head.lines[:1], delimiter)
    else:
        delimiter, records = found
    first = records[0]
    header = bool(first) and not any(map(_number, first)) and all(first) and len(set(first)) == len(first)
    return _Dialect(delimiter, tuple(first) if header else tuple(f"c{i}" for i in range(len(first))), header)


def _first(lines: list[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=delimiter)) or [[""]]
    except csv.Error:
        # A field that is too long for Python's reader.
        return [line.split(delimiter) for line in lines]


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _open(files: Files, reading: Reading, defaults: "dict[str, Any] | None" = None) -> "fb.Dataset[Any]":
    return fb.Dataset.from_csv(
        files.paths,
        column_defaults=defaults,
        compression_type=files.compression,
        num_rows_for_inference=_INFERENCE,
        **_dialect(files.head).arguments(),
        **reading.faults,
    )


def _convert(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    """Fields that are empty are missing, and not 0."""
    types = {name: spec.dtype for name, spec in _open(files, reading).element_spec.items()}
    whole = {name: dtype for name, dtype in types.items() if dtype.kind == "i"}
    unknown = {name: dtype.type(np.nan) for name, dtype in types.items() if dtype.kind == "f"}
    rows = _open(files, reading, unknown | dict.fromkeys(whole, np.int64(_MISSING)))
    return rows.map(partial(_with_missing, whole, reading), batched=True) if whole else rows


def _with_missing(whole: dict[str, "np.dtype[Any]"], reading: Reading, columns: dict[str, Any]) -> dict[str, Any]:
    for name, dtype in whole.items():
        missing = columns[name] == _MISSING
        values = np.where(missing, 0, columns[name]).astype(dtype)
        if missing.any() and reading.nulls:
            values = np.array([None if gap else value for gap, value in zip(missing, values)], object)
        elif missing.any():
            reading.zeros.add(name)
        columns[name] = values
    return columns


def _code(files: Files) -> str:
    given = [f"{name}={value!r}" for name, value in _dialect(files.head).arguments().items()]
    return files.call("fb.Dataset.from_csv", *given, *files.compressed())


def _facts(files: Files) -> Facts:
    dialect = _dialect(files.head)
    return Facts(None, {"delimiter": repr(dialect.delimiter), "header": "yes" if dialect.header else "no"})


FORMAT = Format(
    name="csv",
    title="CSV",
    endings=(".csv", ".tsv"),
    begins=_begins,
    open=_open,
    convert=_convert,
    text=True,
    code=_code,
    by_number=lambda files: "no, where a record begins depends on the quotes before it; save() once, then load()",
    facts=_facts,
)
