"""Samples of WebDataset archives, one by one: a picture of 20 KB, a class and a caption, as bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.pipeline import Open, WrongData, contender
from bench.spec import ROWS_PER_SECOND, TimesFaster, Workload

ROWS = 20_000
SHARDS = 4


def archives(rows: int) -> list[str]:
    """The names of the files."""
    import io
    import tarfile

    folder = Path(tempfile.mkdtemp(prefix="forebay-bench-"))
    rng = np.random.default_rng(0)
    for shard in range(SHARDS):
        with tarfile.open(folder / f"{shard}.tar", "w") as archive:
            for row in range(shard * rows // SHARDS, (shard + 1) * rows // SHARDS):
                for ending, content in (("jpg", rng.bytes(20_000)), ("cls", b"%d" % row), ("txt", b"a caption")):
                    info = tarfile.TarInfo(f"{row:08d}.{ending}")
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
    return sorted(map(str, folder.iterdir()))


def check(_: Any, rows: int, samples: Iterable[Any]) -> None:
    for row, ([sample]) in enumerate(samples):
        if int(sample["cls"]) != row or len(sample["jpg"]) != 20_000:
            raise WrongData(f"sample {row} is not what it was")


def _one_by_one(samples: Iterable[Any]) -> Iterator[Any]:
    for sample in samples:
        yield (sample,)


def forebay(files: list[str], rows: int) -> Open:
    import forebay as fb

    dataset = fb.Dataset.from_webdataset(files)
    return lambda: _one_by_one(dataset)


def webdataset(files: list[str], rows: int) -> Open:
    import webdataset

    return lambda: _one_by_one(webdataset.WebDataset(files, shardshuffle=False))


WORKLOADS = (
    Workload(
        name="tars",
        title="from_webdataset(): samples of a picture, a class and a caption",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=2_000,
        parameters={"shards": SHARDS, "picture": 20_000},
        contenders=(
            contender("forebay", "forebay", forebay, data=archives, check=check),
            contender("webdataset", "webdataset", webdataset, data=archives, check=check),
        ),
        targets=(TimesFaster("forebay", 2, "webdataset", "webdataset"),),
    ),
)
