"""Writing to a store: what appears, when, and what is refused."""

from typing import Any

import pytest

import forebay as fb
from forebay import Dataset
from remote.conftest import BUCKET, Store
from unit.support import python

ROWS = Dataset.range(1000).map(lambda x: {"x": x, "name": f"row {x}"})


def test_what_is_written_can_be_read(store: Store) -> None:
    url = f"s3://{BUCKET}/written"
    ROWS.write_tfrecord(f"{url}/a", shards=2)
    assert len(list(fb.TFRecordDataset([f"{url}/a-0000{i}-of-00002" for i in range(2)]))) == 1000
    ROWS.to_parquet(f"{url}/b-{{shard}}.parquet", shards=2)
    assert list(Dataset.from_parquet([f"{url}/b-{i}.parquet" for i in range(2)])) == list(ROWS)
    ROWS.to_arrow(f"{url}/c.arrow")
    assert list(Dataset.from_arrow(f"{url}/c.arrow")) == list(ROWS)
    ROWS.map(lambda row: {"txt": row["name"]}).to_webdataset(f"{url}/d.tar")
    assert len(list(Dataset.from_webdataset(f"{url}/d.tar"))) == 1000
    with fb.io.TFRecordWriter(f"{url}/e", "GZIP") as writer:
        writer.write(b"x" * 1000)
    assert list(fb.TFRecordDataset(f"{url}/e", "GZIP")) == [b"x" * 1000]


def test_an_error_leaves_nothing_behind(store: Store) -> None:
    def fail(row: Any) -> Any:
        if row["x"] == 900:
            raise ValueError("no more")
        # Enough for more than one part.
        return {"x": b"%d" % row["x"] * 10_000}

    before = store.names()
    for write in (
        lambda ds: ds.write_tfrecord(f"s3://{BUCKET}/failed", shards=2),
        lambda ds: ds.to_parquet(f"s3://{BUCKET}/failed-{{shard}}", rows_per_file=300, compression=None),
    ):
        with pytest.raises(fb.FunctionError, match="no more"):
            write(ROWS.map(fail))
        assert store.names() == before


def test_what_can_only_be_read(store: Store) -> None:
    with pytest.raises(fb.PlanError, match="only read: write to a local path"):
        ROWS.write_tfrecord(store.url("http", "new"))


def test_folders_of_forebays_own_are_local() -> None:
    url = f"s3://{BUCKET}/folder"
    for call in (ROWS.save, ROWS.cache, ROWS.snapshot, Dataset.load):
        with pytest.raises(fb.PlanError, match="give a local path"):
            call(url)


def test_file_urls_are_local(tmp_path: Any) -> None:
    ROWS.save(f"file://{tmp_path}/saved")
    assert (tmp_path / "saved").is_dir()
    assert len(Dataset.load(f"file://{tmp_path}/saved")) == 1000


def test_a_missing_library_is_named() -> None:
    code = """
import sys
import forebay as fb
for library in ("s3fs", "gcsfs", "aiohttp"):
    sys.modules[library] = None
for url in ("s3://nowhere/x", "gs://nowhere/x", "simplecache::https://nowhere/x"):
    try:
        fb.io.read_file(url)
    except fb.FileError as error:
        print(str(error).partition("pip install ")[2])
"""
    assert python(code) == "'forebay[s3]'\n'forebay[gcs]'\n'forebay[http]'\n"
