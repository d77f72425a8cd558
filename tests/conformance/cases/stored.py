"""Saved datasets: everything that is read back from disk."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import Dataset, range_, rows, scalars, slices
from conformance.cases.laws import reordered
from conformance.data import ARRAYS, STRINGS, Point
from forebay.storage import writer

_folder = tempfile.TemporaryDirectory(prefix="forebay-conformance-")
atexit.register(_folder.cleanup)


@cache
def _saved(name: str) -> str:
    """The folder with a dataset of those below, written once per process."""
    path = str(Path(_folder.name) / name)
    build, how = _WRITTEN[name]
    with mock.patch.object(writer, "BATCH_BYTES", 500):
        # Batches of a few rows, so that reads go over several.
        build().save(path, **how)
    return path


def load(name: str, **how: Any) -> fb.Dataset[Any]:
    return Dataset.load(_saved(name), **how)


def _mixed(x: Any) -> Any:
    return {
        "tokens": np.arange(x % 5),
        "text": STRINGS[int(x) % len(STRINGS)],
        "ranks": np.full((2,) * (int(x) % 3 + 1), x),
        "box": np.full((int(x) % 2 + 1, 2), x, np.int16),
        "flag": x % 2 == 0,
    }


def _mixed_rows(*numbers: int) -> list[Any]:
    return [row | {"flag": np.bool_(row["flag"])} for row in map(_mixed, np.arange(*numbers))]


def _point(x: Any) -> Point:
    return Point(x, {"row": ARRAYS["matrix"][int(x)]})


_WRITTEN: dict[str, tuple[Callable[[], fb.Dataset[Any]], dict[str, Any]]] = {
    "range": (lambda: range_(130), {}),
    "matrix": (lambda: slices(ARRAYS["matrix"]), {}),
    "mixed": (lambda: range_(40).map(_mixed), {}),
    "compressed": (lambda: range_(40).map(_mixed), {"compression": "zstd"}),
    "points": (lambda: range_(12).map(_point), {}),
    "sharded": (lambda: range_(60), {"shard_func": lambda x: [5, 0, 2, 2, 2, 0][int(x) % 6]}),
    "empty": (lambda: slices(ARRAYS["no_rows"]), {}),
}


def _turns() -> list[Any]:
    shards = [[x for x in range(60) if [5, 0, 2, 2, 2, 0][x % 6] == shard] for shard in (0, 2, 5)]
    out = []
    for turn in range(max(map(len, shards))):
        out += [shard[turn] for shard in shards if turn < len(shard)]
    return scalars(out)


CASES = [
    Case("load.range", lambda: load("range"), scalars(range(130))),
    Case("load.tensors", lambda: load("matrix"), lambda: rows(ARRAYS["matrix"])),
    Case("load.every_kind", lambda: load("mixed"), lambda: _mixed_rows(40)),
    Case("load.compressed", lambda: load("compressed"), lambda: _mixed_rows(40)),
    Case("load.namedtuple", lambda: load("points"), lambda: [_point(x) for x in np.arange(12)]),
    Case("load.empty", lambda: load("empty"), []),
    Case("load.shards", lambda: load("sharded"), _turns),
    Case("load.shards_batched", lambda: load("sharded").skip(3).batch(7), lambda: _batched(_turns()[3:], 7)),
    Case(
        "load.skip_shard",
        lambda: load("mixed").skip(5).shard(3, 1),
        lambda: _mixed_rows(6, 40, 3),
    ),
    Case("load.shuffle", lambda: load("range").shuffle(seed=4), law=reordered(range(130)), reshuffles=True),
    Case(
        "load.reader_func",
        lambda: load("sharded", reader_func=lambda shards: shards.flat_map(lambda shard: shard)),
        lambda: scalars([x for shard in (0, 2, 5) for x in range(60) if [5, 0, 2, 2, 2, 0][x % 6] == shard]),
        unknown_length=True,
    ),
    Case(
        "load.reader_func_interleave",
        lambda: load("sharded", reader_func=lambda shards: shards.interleave(lambda shard: shard)),
        _turns,
        unknown_length=True,
    ),
    Case(
        "snapshot.first",
        lambda: range_(40).map(_mixed).snapshot(tempfile.mkdtemp(dir=_folder.name)),
        lambda: _mixed_rows(40),
    ),
    Case("snapshot.kept", lambda: _kept(), lambda: _mixed_rows(40)),
]


def _batched(values: list[Any], size: int) -> list[Any]:
    return [np.array(values[i : i + size]) for i in range(0, len(values), size)]


def _kept() -> fb.Dataset[Any]:
    dataset = range_(40).map(_mixed).snapshot(str(Path(_folder.name) / "snapshots"))
    for _ in dataset:
        pass
    return range_(40).map(_mixed).snapshot(str(Path(_folder.name) / "snapshots"))
