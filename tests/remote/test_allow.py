"""The list of places that files may be read from and written to."""

from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, Options
from forebay.allow import allowed
from remote import servers
from remote.conftest import BUCKET, Store
from remote.test_reading import tfrecord

LIST = ("s3://lake", "https://data.example.org", "http://127.0.0.1:80", "file")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://lake/a", True),
        ("s3a://lake/a", True),
        ("s3://lake", True),
        ("s3://lake2/a", False),
        ("s3://Lake/a", False),
        ("gs://lake/a", False),
        ("https://data.example.org/x", True),
        ("https://DATA.example.org:8443/x", True),
        ("https://user@data.example.org/x", True),
        ("http://data.example.org/x", False),
        ("https://data.example.org.evil.net/x", False),
        ("https://data.example.org@evil.net/x", False),
        ("https://evil.net\\@data.example.org/x", False),
        ("https://evil.net?data.example.org/x", False),
        ("https://evil.net#@data.example.org/", False),
        ("http://127.0.0.1:80/x", True),
        ("http://127.0.0.1:81/x", False),
        ("http://127.0.0.1/x", False),
        ("/data/x", True),
        ("x", True),
        ("file:///data/x", True),
        ("memory://x", False),
        ("simplecache::s3://lake/a", True),
        ("simplecache::s3://other/a", False),
        ("zip://member::https://data.example.org/x.zip", True),
        ("zip://member::https://evil.net/x.zip", False),
        ("zip://member::simplecache::s3://other/x.zip", False),
        ("s3://other/a::file:///x", False),
        ("reference://::s3://lake/refs.json", False),
        ("zip://member::x.zip", True),
        ("zip://member::data:;base64,AAAA", False),
    ],
)
def test_what_a_list_allows(path: str, expected: bool) -> None:
    assert allowed(path, LIST) is expected


def test_local_files_are_a_place_too() -> None:
    assert not allowed("/etc/passwd", ("s3://lake",))


@pytest.mark.parametrize("entry", ["", "s3://", "s3://lake/folder", "https://user@host", "no protocol", 3, None])
def test_entries_are_checked_when_they_are_given(entry: Any) -> None:
    with pytest.raises(fb.PlanError, match=r"RemoteOptions\.allow"):
        fb.RemoteOptions(allow=(entry,))
    with pytest.raises(fb.PlanError, match=r"RemoteOptions\.allow must be a tuple"):
        fb.RemoteOptions(allow="s3")  # type: ignore[arg-type]


def only(*places: str) -> Options:
    return Options(remote=fb.RemoteOptions(allow=places, retries=0))


def test_files_of_the_plan_are_refused_on_the_line_that_says_so() -> None:
    dataset = fb.TFRecordDataset(["s3://lake/a", "s3://other/b"])
    with pytest.raises(fb.PlanError, match=r"TFRecordDataset at .*: s3://other/b is not allowed: .* holds s3://lake"):
        dataset.with_options(only("s3://lake"))
    later = Dataset.range(1).map(lambda x: b"").with_options(only("s3://lake")).concatenate(dataset)
    with pytest.raises(fb.PlanError, match="s3://other/b is not allowed"):
        iter(later)


def test_files_that_come_while_it_runs_are_refused_then(store: Store, tmp_path: Path) -> None:
    store.put("rows", tfrecord([b"row"]))
    (tmp_path / "local").write_bytes(tfrecord([b"local"]))
    good, bad = store.url("s3", "rows"), str(tmp_path / "local")
    names = Dataset.from_tensor_slices([good, bad])
    for dataset in (
        fb.TFRecordDataset(names),
        fb.TFRecordDataset(names, num_parallel_reads=2),
        fb.TFRecordDataset(names, index=True),
        fb.TFRecordDataset(names, on_error="skip"),
        names.map(fb.io.read_file),
        names.map(fb.io.read_file, num_parallel_calls=2, executor="thread"),
        names.map(fb.io.read_file, num_parallel_calls=1, executor="process"),
        names.map(fb.io.read_file).prefetch(2),
    ):
        assert len(list(dataset)) == 2
        with pytest.raises(fb.RemoteError, match="local: is not allowed"):
            list(dataset.with_options(only("s3://lake")))


def test_reads_of_the_line_that_makes_a_dataset(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    (tmp_path / "a.csv").write_text("x\n1\n")
    allow = fb.RemoteOptions(allow=("s3://lake",))
    for make in (
        lambda: Dataset.from_npy(str(tmp_path / "a.npy")),
        lambda: Dataset.list_files(str(tmp_path / "*"), shuffle=False),
        lambda: Dataset.from_csv(str(tmp_path / "a.csv")),
        lambda: Dataset.from_images(str(tmp_path)),
        lambda: Dataset.from_images("memory://images"),
        lambda: Dataset.list_files("gs://other/*", shuffle=False),
        lambda: fb.io.TFRecordWriter(str(tmp_path / "new")),
    ):
        with fb.io.remote_options(allow), pytest.raises(fb.RemoteError, match="is not allowed"):
            make()


def test_writers(tmp_path: Path) -> None:
    dataset = Dataset.range(3).map(lambda x: {"x": x}).with_options(only("s3://lake"))
    for write in (
        lambda: dataset.write_tfrecord(str(tmp_path / "a")),
        lambda: dataset.to_parquet(str(tmp_path / "b")),
        lambda: dataset.to_parquet("memory://b"),
    ):
        with pytest.raises(fb.RemoteError, match="is not allowed"):
            write()
    assert list(tmp_path.iterdir()) == []


def test_an_index_is_not_made_of_what_may_not_be_read() -> None:
    fsspec.filesystem("memory").pipe_file("/indexed", tfrecord([b"row"]))
    names = Dataset.from_tensor_slices(["memory://indexed"])
    with pytest.raises(fb.RemoteError, match="is not allowed"):
        list(fb.TFRecordDataset(names, index=True).with_options(only("file")))


def test_a_server_that_leads_on_to_another_place(store: Store) -> None:
    rows = [b"row %d" % i for i in range(100)]
    store.put("rows", tfrecord(rows))
    here = f"http://127.0.0.1:{store.proxy.port}"
    elsewhere = f"http://localhost:{store.proxy.port}/{BUCKET}/rows"
    dataset = fb.TFRecordDataset(store.url("http", "rows"))
    store.proxy.everything = True
    store.proxy.script = [servers.redirect(elsewhere)]
    assert list(dataset) == rows
    store.proxy.script = [servers.redirect(elsewhere)]
    with pytest.raises(fb.RemoteError, match=f"leads on to {elsewhere}, which is not allowed"):
        list(dataset.with_options(only(here)))
    store.proxy.script = [servers.redirect(f"{here}/{BUCKET}/rows")]
    assert list(dataset.with_options(only(here))) == rows
    store.proxy.script = [servers.redirect(elsewhere)]
    assert list(dataset.with_options(only(here, "http://localhost"))) == rows
