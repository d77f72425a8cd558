"""Lengths that are not known: what is said to whoever asks, and that following it helps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forebay as fb

Dataset, Records, Lines = fb.Dataset, fb.TFRecordDataset, fb.TextLineDataset
Build = Callable[..., Dataset[Any]]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = Dataset.range(6).map(lambda x: {"x": x})
    rows.write_tfrecord("a.tfrecord")
    rows.to_webdataset("a.tar")
    rows.to_parquet("a.parquet")
    Path("a.csv").write_text("x\n1\n2\n")
    Path("a.jsonl").write_text('{"x": 1}\n')


COUNTED: dict[str, tuple[Build, dict[str, Any], dict[str, Any]]] = {
    "with index=True": (lambda **how: Records("a.tfrecord", **how).map(len).batch(2).prefetch(1), {}, {"index": True}),
    "TextLineDataset at .* tells it ahead with index=True": (lambda **how: Lines("a.csv", **how), {}, {"index": True}),
    "from_webdataset at .*with index=True": (
        lambda **how: Dataset.from_webdataset("a.tar", **how).skip(1).cache().shuffle(2), {}, {"index": True},
    ),
    "from_parquet at .*with index=True": (
        lambda **how: Dataset.from_parquet("a.parquet", **how), {"index": False}, {"index": True},
    ),
    "TFRecordDataset at .* without num_parallel_reads": (
        lambda **how: Records("a.tfrecord", index=True, **how), {"num_parallel_reads": 2}, {},
    ),
    "TFRecordDataset at .* without num_parallel_reads, with index=True": (
        lambda **how: Records("a.tfrecord", **how), {"num_parallel_reads": fb.AUTOTUNE}, {"index": True},
    ),
    "from_parquet at .* without num_parallel_reads": (
        lambda **how: Dataset.from_parquet("a.parquet", **how), {"num_parallel_reads": 2}, {},
    ),
    "FixedLengthRecordDataset at .* without num_parallel_reads": (
        lambda **how: fb.FixedLengthRecordDataset("a.csv", 2, **how), {"num_parallel_reads": 2}, {},
    ),
    "TFRecordDataset at .* with a list of paths": (
        lambda filenames: Records(filenames, index=True),
        {"filenames": Dataset.from_tensor_slices(["a.tfrecord"])}, {"filenames": ["a.tfrecord"]},
    ),
    "TFRecordDataset .* with index=True; TextLineDataset .* with index=True": (
        lambda **how: Dataset.zip((Records("a.tfrecord", **how), Lines("a.csv", **how))), {}, {"index": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("hint", COUNTED)
def test_what_is_advised_helps(hint: str) -> None:
    build, without, advised = COUNTED[hint]
    with pytest.raises(fb.LengthError, match=f"only iterating over it can tell; .*{hint}$"):
        len(build(**without))
    assert len(build(**advised)) == sum(1 for _ in build(**without))


UNCOUNTED: dict[str, Build] = {
    "filter": lambda: Dataset.range(5).filter(bool),
    "filtered records": lambda: Records("a.tfrecord").filter(bool),
    "one of two": lambda: Dataset.zip((Records("a.tfrecord"), Lines("a.csv").take_while(bool))),
    "skipping": lambda: Records("a.tfrecord").map(len, on_error="skip"),
    "flat_map": lambda: Dataset.range(2).flat_map(lambda i: Records("a.tfrecord")),
    "interleave": lambda: Dataset.list_files("a.tf*").interleave(Records),
    "csv": lambda: Dataset.from_csv("a.csv"),
    "csv in turns": lambda: Dataset.from_csv("a.csv", num_parallel_reads=2),
    "json": lambda: Dataset.from_json("a.jsonl"),
    "filters": lambda: Dataset.from_parquet("a.parquet", filters=[("x", ">", 3)]),
    "skipping tables": lambda: Dataset.from_parquet("a.parquet", num_parallel_reads=2).ignore_errors(),
    "compressed": lambda: Records("a.tfrecord", "GZIP"),
    "compressed in turns": lambda: Lines("a.csv", "GZIP", num_parallel_reads=2),
    "a compressed archive": lambda: Dataset.from_webdataset("a.tgz"),
    "compressed archives in turns": lambda: Dataset.from_webdataset(["a.tgz"], num_parallel_reads=2),
}


@pytest.mark.parametrize("name", UNCOUNTED)
def test_nothing_is_advised_where_nothing_helps(name: str) -> None:
    with pytest.raises(fb.LengthError, match=r"only iterating over it can tell$"):
        len(UNCOUNTED[name]())
