"""Sources that read files."""

import atexit
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import forebay as fb
from differential.cases.case import case
from differential.sides import Side

_folder = tempfile.TemporaryDirectory(prefix="forebay-differential-")
atexit.register(_folder.cleanup)


@cache
def records(compression: str = "") -> list[str]:
    """Four TFRecord files, one of them empty."""
    where = Path(tempfile.mkdtemp(dir=_folder.name))
    for file, rows in enumerate((5, 0, 2, 9)):
        with fb.io.TFRecordWriter(where / str(file), compression) as writer:
            for row in range(rows):
                writer.write(b"%d:%d" % (file, row) * row)
    return [str(where / str(file)) for file in range(4)]


@cache
def examples() -> str:
    path = str(Path(_folder.name) / "examples")
    with fb.io.TFRecordWriter(path) as writer:
        for i in range(11):
            writer.write(fb.io.serialize_example({"x": i, "f": [0.5, i], "s": f"row {i}"}))
    return path


def _features(d: Side) -> dict[str, Any]:
    return {
        "f": d.io.FixedLenFeature([2], np.float32),
        "s": d.io.FixedLenFeature([], d.string),
        "x": d.io.FixedLenFeature([1], np.int64),
    }


def _parsed(d: Side, batch: int | None) -> Any:
    features = _features(d)
    dataset = d.TFRecordDataset(examples())
    if batch is None:
        return dataset.map(lambda record: d.io.parse_single_example(record, features))
    return dataset.batch(batch).map(lambda records: d.io.parse_example(records, features))


CASES = (
    case("tfrecord-one-file", lambda d: d.TFRecordDataset(records()[3])),
    case("tfrecord-files", lambda d: d.TFRecordDataset(records())),
    case("tfrecord-gzip", lambda d: d.TFRecordDataset(records("GZIP"), "GZIP")),
    case("tfrecord-zlib", lambda d: d.TFRecordDataset(records("ZLIB"), compression_type="ZLIB")),
    case("tfrecord-buffer-size", lambda d: d.TFRecordDataset(records(), None, 100)),
    case("tfrecord-no-buffer", lambda d: d.TFRecordDataset(records(), buffer_size=0)),
    case("tfrecord-dataset-of-names", lambda d: d.TFRecordDataset(d.slices(records()))),
    *(
        case(f"tfrecord-parallel-{n}", lambda d, n=n: d.TFRecordDataset(records(), num_parallel_reads=n))
        for n in (1, 2, 3, 7)
    ),
    case("tfrecord-interleave", lambda d: d.slices(records()).interleave(d.TFRecordDataset, cycle_length=2)),
    case("tfrecord-batches", lambda d: d.TFRecordDataset(records()).batch(4)),
    case("parse-single-example", lambda d: _parsed(d, None)),
    case("parse-single-example-batched", lambda d: _parsed(d, None).batch(4)),
    case("parse-example", lambda d: _parsed(d, 4), "spec-of-first"),
    case("tfrecord-missing-file", lambda d: d.TFRecordDataset(records()[0] + "-missing")),
    case("tfrecord-not-compressed", lambda d: d.TFRecordDataset(records()[0], "GZIP")),
)
