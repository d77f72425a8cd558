"""JSON lines, and plain lines of text."""

import json
from typing import Any

import forebay as fb
from forebay.formats.format import Files, Format, Reading, unless_compressed
from forebay.formats.head import Head

_INFERENCE = 10_000
_JSON = (".jsonl", ".ndjson", ".json")


def _object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _begins_json(head: Head) -> bool:
    """A line that is an object. One that is damaged does not matter if the name says what it is."""
    lines = [line for line in head.lines if line.strip()]
    if not lines or head.text is None:
        return False
    if head.name.endswith((".jsonl", ".ndjson")):
        return head.text.lstrip()[0] == "{" or any(map(_object, lines))
    return _object(lines[0])


def _open_json(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    return fb.Dataset.from_json(
        files.paths, compression_type=files.compression, num_rows_for_inference=_INFERENCE, **reading.faults
    )


def _open_lines(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    return fb.TextLineDataset(files.paths, files.compression, **reading.faults)


def _document(head: Head) -> bool:
    return head.text is not None and head.name.endswith(".json") and head.text.lstrip()[:1] in "[{"


JSON_LINES = Format(
    name="json",
    title="JSON lines",
    endings=_JSON,
    begins=_begins_json,
    open=_open_json,
    code=lambda files: files.call("fb.Dataset.from_json", *files.compressed()),
    by_number=lambda files: "no; save() once, then load()",
)

JSON_DOCUMENT = Format(
    name="json-document",
    title="a JSON document",
    begins=_document,
    advice="it is one value, not an object on every line; write it as JSON lines to read its parts as rows",
)

LINES = Format(
    name="text",
    title="lines of text",
    endings=(".txt", ".text", ".log", ".md"),
    begins=lambda head: head.text is not None,
    open=_open_lines,
    text=True,
    code=lambda files: files.call("fb.TextLineDataset", *files.compressed()),
    by_number=unless_compressed("index=True"),
)
