"""Parquet files, and Arrow IPC files and streams."""

from collections.abc import Callable
from typing import Any

import forebay as fb
from forebay.formats.format import Facts, Files, Format, Reading, Writer, Writing
from forebay.formats.head import Head
from forebay.sinks.tables import CODECS
from forebay.storage.table_files import open_table

_STREAM = b"\xff\xff\xff\xff"
_LONGEST_SCHEMA = 1 << 24


def _is_arrow(head: Head) -> bool:
    """The file format, or a stream: a mark, and the length of a schema that there is room for."""
    if head.compression is not None:
        return False
    if head.data[:6] == b"ARROW1":
        return True
    length = int.from_bytes(head.data[4:8], "little")
    return head.data[:4] == _STREAM and 0 < length <= min(head.size, _LONGEST_SCHEMA) and length % 8 == 0


def _opening(format: str) -> "Callable[[Files, Reading], fb.Dataset[Any]]":
    reader: Any = fb.Dataset.from_parquet if format == "parquet" else fb.Dataset.from_arrow
    # In order: by number, the statistics of a footer are looked at first, and what is wrong with those can end the
    # process inside of Arrow.
    return lambda files, reading: reader(files.paths, index=False, **reading.faults)


def _facts(format: str, groups: str) -> Callable[[Files], Facts]:
    def facts(files: Files) -> Facts:
        rows: int | None = 0
        count = 0
        details: dict[str, str] = {}
        for path in files.paths:
            table = open_table(path, format)
            try:
                if table.group_rows is None:
                    rows = None
                    details["kind"] = "stream"
                elif rows is not None:
                    rows += sum(table.group_rows)
                    count += len(table.group_rows)
                    details[groups] = f"{count:,}"
                if path == files.paths[0]:
                    details |= table.details()
            finally:
                table.close()
        return Facts(rows, details)

    return facts


def _write(method: str) -> "Callable[[fb.Dataset[Any], Writing], None]":
    def write(dataset: "fb.Dataset[Any]", writing: Writing) -> None:
        given: dict[str, Any] = {} if writing.compression is None else {"compression": writing.compression}
        getattr(dataset, method)(writing.path, rows_per_file=writing.rows_per_file, progress=False, **given)

    return write


def _arrow_by_number(files: Files) -> str:
    return "yes" if files.head.data[:6] == b"ARROW1" else "no, a stream is read from the start on"


PARQUET = Format(
    name="parquet",
    title="Parquet",
    endings=(".parquet", ".pq"),
    begins=lambda head: head.compression is None and head.data[:4] == b"PAR1",
    open=_opening("parquet"),
    code=lambda files: files.call("fb.Dataset.from_parquet"),
    by_number=lambda files: "yes",
    facts=_facts("parquet", "row groups"),
    write=Writer(_write("to_parquet"), codecs=CODECS["parquet"], table=True),
)

ARROW = Format(
    name="arrow",
    title="Arrow IPC",
    endings=(".arrow", ".feather", ".ipc", ".arrows"),
    begins=_is_arrow,
    open=_opening("arrow"),
    code=lambda files: files.call("fb.Dataset.from_arrow"),
    by_number=_arrow_by_number,
    facts=_facts("arrow", "record batches"),
    write=Writer(_write("to_arrow"), codecs=CODECS["arrow"], table=True),
)
