"""TFRecord files for the workloads that read them, written once for every contender."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bench.pipeline import WrongData

SHARDS = 10
BATCH = 256
FLOATS = 64


def folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="forebay-bench-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def floats_of(ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (ids[:, None] * 0.5 + np.arange(FLOATS)).astype(np.float32)


def examples(rows: int, compression: str | None = None) -> list[str]:
    """Examples of an int64, 64 floats and a short string, in ten files."""
    import forebay as fb

    def element(ids: Any) -> Any:
        return {"id": ids, "x": floats_of(ids), "name": np.array([f"row {i}" for i in ids.tolist()], object)}

    where = folder()
    fb.Dataset.range(rows).map(element, batched=True).write_tfrecord(where / "part", SHARDS, compression)
    return sorted(map(str, where.iterdir()))


def large(rows: int, size: int = 100_000) -> list[str]:
    """Records of random bytes, in four files."""
    import forebay as fb

    chance = np.random.default_rng(1)
    parts = [chance.bytes(size) for _ in range(16)]
    where = folder()
    fb.Dataset.range(rows).map(lambda i: parts[int(i) % len(parts)]).write_tfrecord(where / "part", 4)
    return sorted(map(str, where.iterdir()))


def parsed(files: list[str], rows: int, batches: Iterable[Any]) -> None:
    """Every element is there once, with its own values."""
    seen = np.zeros(rows, bool)
    for batch in batches:
        ids = np.asarray(batch["id"])
        if not np.array_equal(np.asarray(batch["x"]), floats_of(ids)):
            raise WrongData("floats that belong to other elements")
        if [bytes(name) for name in batch["name"]] != [b"row %d" % i for i in ids.tolist()]:
            raise WrongData("names that belong to other elements")
        if seen[ids].any():
            raise WrongData("an element came twice")
        seen[ids] = True
    if not seen.all():
        raise WrongData(f"{int(seen.sum()):,} elements, expected {rows:,}")


def forebay_features() -> dict[str, Any]:
    import forebay as fb

    io = fb.io
    return {
        "id": io.FixedLenFeature([], np.int64),
        "x": io.FixedLenFeature([FLOATS], np.float32),
        "name": io.FixedLenFeature([], bytes),
    }


def tf_features() -> dict[str, Any]:
    import tensorflow as tf

    return {
        "id": tf.io.FixedLenFeature([], tf.int64),
        "x": tf.io.FixedLenFeature([FLOATS], tf.float32),
        "name": tf.io.FixedLenFeature([], tf.string),
    }
