"""W5: a cache of small elements, three epochs. tf.data keeps every row as a tensor of its own, in memory and on disk.

torch has no cache; Grain has one for batches on demand only. What users write there instead is a list.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.checks import BATCH, counted
from bench.pipeline import Open, contender
from bench.spec import MB, ROWS_PER_SECOND, TimesFaster, ValueBelow, Workload

ROWS = 1_000_000
EPOCHS = 3


def _epochs(make: Any, folder: Path | None) -> Open:
    """Three epochs of a new dataset, the first of which fills the cache; its files are deleted before."""

    def run() -> Iterator[Any]:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        dataset = make("" if folder is None else str(folder / "cache"))
        for _ in range(EPOCHS):
            yield from dataset.as_numpy_iterator()

    return run


def _folder(files: bool) -> Path | None:
    if not files:
        return None
    folder = Path(tempfile.mkdtemp(prefix="forebay-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def forebay(_: None, rows: int, files: bool) -> Open:
    import forebay as fb

    return _epochs(lambda path: fb.Dataset.range(rows // EPOCHS).cache(path).batch(BATCH), _folder(files))


def tf_data(_: None, rows: int, files: bool) -> Open:
    import tensorflow as tf

    return _epochs(lambda path: tf.data.Dataset.range(rows // EPOCHS).cache(path).batch(BATCH), _folder(files))


def numpy_loop(_: None, rows: int) -> Open:
    import numpy as np

    def run() -> Iterable[Any]:
        values = np.arange(rows // EPOCHS)
        for _ in range(EPOCHS):
            for at in range(0, len(values), BATCH):
                yield values[at : at + BATCH].copy()

    return run


def workload(name: str, files: bool, limit: int) -> Workload:
    timed = partial(contender, check=counted(EPOCHS))
    where = "path" if files else ""
    return Workload(
        name=name,
        title=f"range(1M).cache({where}).batch(32), {EPOCHS} epochs, the first of which fills it",
        unit=ROWS_PER_SECOND,
        rows=EPOCHS * ROWS,
        quick_rows=EPOCHS * 50_000,
        parameters={"batch": BATCH, "epochs": EPOCHS},
        contenders=(
            timed("forebay", "forebay", partial(forebay, files=files)),
            timed("tf.data", "tensorflow", partial(tf_data, files=files)),
            timed("NumPy loop", "numpy", numpy_loop, reference=True, note="no pipeline: an array, sliced and copied"),
        ),
        targets=(
            TimesFaster("forebay", 15, "tensorflow", usual="tf.data"),
            ValueBelow("forebay", limit, "MB", "memory", fact="growth_bytes", scale=MB),
        ),
        notes="Every measured run begins with an empty cache.",
    )


WORKLOADS = (workload("w5", False, 32), workload("w5b", True, 48))
