"""A Parquet file to shuffled batches: float features, an embedding and a label."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bench.pipeline import Open, WrongData, contender
from bench.spec import ROWS_PER_SECOND, AtLeast, TimesFaster, Workload

ROWS = 200_000
BATCH = 256
FEATURES = 8


def parquet(rows: int) -> str:
    """The file, whose labels are the rows' numbers, so that a check can tell which row it was given."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"f{i}": rng.random(rows, np.float32) for i in range(FEATURES)}
    columns["embedding"] = pa.FixedSizeListArray.from_arrays(rng.random(rows * 32, np.float32), 32)
    columns["label"] = np.arange(rows)
    path = Path(tempfile.mkdtemp(prefix="forebay-bench-")) / "data.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=20_000)
    return str(path)


def check(_: Any, rows: int, batches: Iterable[Any]) -> None:
    labels = np.concatenate([np.asarray(batch["label"]) for batch in batches])
    if np.array_equal(labels, np.arange(rows)) or not np.array_equal(np.sort(labels), np.arange(rows)):
        raise WrongData("the rows are not all rows in another order")


def forebay(path: str, rows: int) -> Open:
    import forebay as fb

    dataset = fb.Dataset.from_parquet(path).shuffle().batch(BATCH)
    return lambda: iter(dataset)


def forebay_anew(path: str, rows: int) -> Open:
    import forebay as fb

    return lambda: iter(fb.Dataset.from_parquet(path).shuffle().batch(BATCH))


def huggingface(path: str, rows: int) -> Open:
    import datasets

    datasets.disable_progress_bars()
    cache = str(Path(path).parent / "cache")
    dataset = datasets.Dataset.from_parquet(path, cache_dir=cache).with_format("numpy")
    return lambda: dataset.shuffle().iter(batch_size=BATCH)


def torch_loader(path: str, rows: int) -> Open:
    import pyarrow.parquet as pq
    import torch
    from torch.utils.data import DataLoader, Dataset

    table = pq.read_table(path)
    columns = {
        name: torch.from_numpy(np.stack(column.to_numpy()) if name == "embedding" else column.to_numpy().copy())
        for name, column in zip(table.column_names, table.columns)
    }

    class Rows(Dataset[Any]):
        def __len__(self) -> int:
            return rows

        def __getitem__(self, i: int) -> dict[str, Any]:
            return {name: column[i] for name, column in columns.items()}

    loader = DataLoader(Rows(), batch_size=BATCH, shuffle=True)
    return lambda: iter(loader)


def _contender(name: str, library: str, build: Any, **more: Any) -> Any:
    # A batch is a dict; its label counts the rows.
    return contender(name, library, build, data=parquet, check=check, leaf="label", **more)  # type: ignore[arg-type]


WORKLOADS = (
    Workload(
        name="parquet",
        title="from_parquet().shuffle().batch(256)",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=20_000,
        parameters={"features": FEATURES, "embedding": 32, "batch": BATCH},
        contenders=(
            _contender("forebay", "forebay", forebay, note="row groups stay decoded from one epoch to the next"),
            _contender("forebay anew", "forebay", forebay_anew, note="decodes all row groups in every epoch"),
            _contender("datasets", "datasets", huggingface, rows=50_000, note="map-style, numpy format, shuffle()"),
            _contender("torch DataLoader", "torch", torch_loader, rows=20_000, note="columns in memory, shuffle=True"),
        ),
        targets=(
            TimesFaster("forebay", 5, "datasets", "datasets"),
            TimesFaster("forebay", 3, "torch", "torch DataLoader"),
            AtLeast("forebay anew", 5, "datasets"),
        ),
    ),
)
