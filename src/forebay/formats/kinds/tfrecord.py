"""TFRecord files, plain and compressed, and the Examples in them."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

import forebay as fb
from forebay._native import find_header
from forebay.block import Block
from forebay.block.strings import Strings
from forebay.errors import DataError, FileError
from forebay.formats.examples import ExampleSchema
from forebay.formats.format import (
    ColumnReport,
    Elements,
    Facts,
    Files,
    Format,
    Reading,
    Watcher,
    Writer,
    Writing,
    unless_compressed,
)
from forebay.formats.head import Head
from forebay.formats.shown import shown
from forebay.io.example import ExampleParser
from forebay.io.sequence_example import parse_single_sequence_example
from forebay.sources.tfrecord import CHECKED
from forebay.storage.files import open_file
from forebay.storage.row_index import load_index

SCHEMA_RECORDS = 1000
"""So many records tell what features there are."""
_ENDINGS = (".tfrecord", ".tfrecords", ".tfrec", ".record")
_HEADER = 12
_KEPT = 64


def _begins(head: Head) -> bool:
    """A length that matches its checksum: at the start, or further on if the name says what it is."""
    data = np.frombuffer(head.data, np.uint8)
    if len(data) < _HEADER:
        return False
    if find_header(data[:_HEADER], 0, 1 << 62) == 0:
        return True
    return head.name.endswith(_ENDINGS) and find_header(data, 0, 1 << 40) > 0


def _open(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    return fb.TFRecordDataset(files.paths, files.compression, **reading.faults)


def _facts(files: Files) -> Facts:
    """How many records there are, where an index beside every file tells."""
    rows = 0
    for path in files.paths:
        file = open_file(path)
        try:
            index = load_index(file, None) or load_index(file, CHECKED)
        finally:
            file.close()
        if index is None or files.compression is not None:
            return Facts()
        rows += len(index.starts)
    return Facts(rows, {"index": "there is one beside every file"})


class _Examples(Watcher):
    """The features of the first records."""

    def __init__(self) -> None:
        self._schema = ExampleSchema()
        self._first: list[bytes] = []

    def add(self, block: Block) -> None:
        """No more than tell what there is."""
        left = SCHEMA_RECORDS - self._schema.records
        column = block.columns[0]
        if left > 0 and isinstance(column, Strings):
            for record in column.slice(0, min(left, block.rows)).strings():
                if len(self._first) < _KEPT:
                    self._first.append(record)
                self._schema.add(record)

    def columns(self) -> list[ColumnReport] | None:
        """A feature each; those of feature lists have an axis for the steps."""
        schema = self._schema
        if not schema.found:
            return None
        found = []
        for name, seen in schema.context.items():
            shape = (() if seen.most == 1 else (seen.most,)) if seen.least == seen.most else (None,)
            found.append(ColumnReport(name, seen.dtype, shape, schema.present(seen), (seen.least, seen.most)))
        for name, seen in schema.lists.items():
            step = (() if seen.most == 1 else (seen.most,)) if seen.least >= seen.most else (None,)
            found.append(ColumnReport(name, seen.dtype, (None, *step), schema.present(seen), seen.steps))
        return found

    def elements(self) -> Elements | None:
        """Features in place of serialized bytes."""
        if not self._schema.found:
            return None
        parse = parser_of(self._schema)
        elements: Elements = []
        for record in self._first:
            try:
                elements.append({name: shown(value) for name, value in parse(record).items()})
            except DataError as error:
                elements.append({"": f"{shown(record)}: {error}"})
        return elements

    def details(self) -> dict[str, str]:
        """What records are."""
        schema = self._schema
        if not schema.records:
            return {}
        if not schema.found:
            return {"records": "bytes that are no tf.train.Example"}
        what = "tf.train.SequenceExample" if schema.sequences else "tf.train.Example"
        others = f"; {schema.others} of them are something else" if schema.others else ""
        mixed = [name for name, seen in (schema.context | schema.lists).items() if len(seen.kinds) > 1]
        said = {"records": f"{what}, by the first {schema.records:,}{others}"}
        if mixed:
            said["not parsed"] = f"{', '.join(mixed)}: values are of different kinds in different records"
        return said

    def code(self) -> str | None:
        """The parser."""
        return self._schema.code("ds") if self._schema.found else None


def parser_of(schema: ExampleSchema) -> Any:
    """What makes a flat dict of a record."""
    context, lists = schema.context_features(), schema.sequence_features()
    if not lists:
        return ExampleParser(context)

    def parse(record: bytes) -> dict[str, Any]:
        whole, steps = parse_single_sequence_example(record, context or None, lists)
        twice = sorted(whole.keys() & steps.keys())
        if twice:
            raise DataError(f"feature {twice[0]!r} is there twice: of the whole, and of the steps")
        return whole | steps

    return parse


def schema_of(records: Iterable[bytes]) -> ExampleSchema:
    """The features of the first records."""
    schema = ExampleSchema()
    for record in islice(records, SCHEMA_RECORDS):
        schema.add(record)
    return schema


def _convert(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    """Examples as dicts of their features; other records as they are."""
    records = _open(files, reading)
    if reading.features is not None:
        parse: Any = ExampleParser(reading.features)
    else:
        with iter(records) as first:
            schema = schema_of(first)
        if not schema.found:
            return records
        mixed = [name for name, seen in (schema.context | schema.lists).items() if len(seen.kinds) > 1]
        if mixed:
            raise FileError(
                files.paths[0],
                f"feature {mixed[0]!r} holds {(schema.context | schema.lists)[mixed[0]].dtype} in different records: "
                "name the features to convert (--features)",
            )
        parse = parser_of(schema)
    return records.map(parse, on_error=reading.on_error, max_errors=reading.max_errors)


def _write(dataset: "fb.Dataset[Any]", writing: Writing) -> None:
    # A name that is not for several files is meant as it is.
    path = writing.path if writing.shards else writing.path.replace("{", "{{").replace("}", "}}")
    dataset.write_tfrecord(path, writing.shards or 1, writing.compression, progress=False)


FORMAT = Format(
    name="tfrecord",
    title="TFRecord",
    endings=_ENDINGS,
    begins=_begins,
    open=_open,
    code=lambda files: files.call("fb.TFRecordDataset", *files.compressed()),
    by_number=unless_compressed("index=True"),
    facts=_facts,
    watch=_Examples,
    write=Writer(_write, codecs=("GZIP", "ZLIB"), flat=True, deals=True),
    convert=_convert,
)
