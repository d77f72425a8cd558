"""Every format from a store, and contents that are exact whatever happens on the way."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import forebay as fb
from forebay import Dataset, Options
from remote import servers
from remote.conftest import HASTY, Store

PROTOCOLS = ["s3", "http"]
FAULTS = [
    servers.status(500),
    servers.status(503),
    servers.status(429),
    servers.cut,
    servers.reset,
    servers.short,
    servers.slow,
    servers.stall,
    servers.stall_half_way,
]


def tfrecord(rows: list[bytes]) -> bytes:
    with fb.io.TFRecordWriter("memory://remote-tests/x") as writer:
        for row in rows:
            writer.write(row)
    return fb.io.read_file("memory://remote-tests/x")


def parquet(rows: list[bytes]) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"row": rows}), file, row_group_size=7)
    return file.getvalue()


def npy(rows: list[bytes]) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([list(row[:8]) for row in rows]))
    return file.getvalue()


def archive(rows: list[bytes], folder: Any) -> bytes:
    path = str(folder / "a.tar")
    Dataset.from_tensor_slices(rows).map(lambda row: {"bin": row}).to_webdataset(path)
    return fb.io.read_file(path)


ROWS = [bytes([i]) * (600 + 37 * i) for i in range(40)]

FORMATS: dict[str, tuple[Callable[[Any], bytes], Callable[[str], Dataset[Any]]]] = {
    "tfrecord": (lambda folder: tfrecord(ROWS), fb.TFRecordDataset),
    "indexed": (lambda folder: tfrecord(ROWS), lambda url: fb.TFRecordDataset(url, index=True).shuffle(seed=3)),
    "text": (lambda folder: b"\n".join(row.hex().encode() for row in ROWS), fb.TextLineDataset),
    "lines": (
        lambda folder: b"\n".join(row.hex().encode() for row in ROWS),
        lambda url: fb.TextLineDataset(url, index=True).shuffle(seed=3),
    ),
    "parquet": (lambda folder: parquet(ROWS), Dataset.from_parquet),
    "npy": (lambda folder: npy(ROWS), lambda url: Dataset.from_npy(url).shuffle(seed=1)),
    "webdataset": (lambda folder: archive(ROWS, folder), Dataset.from_webdataset),
    "read_file": (
        lambda folder: b"".join(ROWS),
        lambda url: Dataset.from_tensor_slices([url]).map(fb.io.read_file),
    ),
}


def plain(elements: Any) -> list[Any]:
    return [np.asarray(each).tolist() if isinstance(each, np.ndarray) else each for each in elements]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_the_same_as_from_a_disk(store: Store, tmp_path: Any, protocol: str, form: str) -> None:
    make, read = FORMATS[form]
    data = make(tmp_path)
    (tmp_path / "local").write_bytes(data)
    store.put(form, data)
    hasty = Options(remote=HASTY, block_bytes=4096)
    local = plain(read(str(tmp_path / "local")).with_options(hasty))
    assert plain(read(store.url(protocol, form)).with_options(hasty)) == local
    store.proxy.clean()
    with fb.io.remote_options(HASTY):
        dataset = read(store.url(protocol, form)).with_options(hasty)
        store.proxy.script = list(FAULTS)
        assert plain(dataset) == local
        assert plain(dataset.skip(1).with_options(hasty)) == local[1:]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_missing_is_asked_for_again(store: Store, protocol: str, fault: Any) -> None:
    data = np.random.default_rng(1).bytes(100_000)
    store.put("object", data)
    store.proxy.script = [fault, fault]
    with fb.io.remote_options(HASTY):
        assert fb.io.read_file(store.url(protocol, "object")) == data
    assert fault is servers.slow or len(store.proxy.ranges) >= 3
    if fault in (servers.cut, servers.short):
        # A reset may come before bytes that were sent earlier are read, and what came before a stall is kept too.
        assert store.proxy.ranges[:3] == [(0, 100_000), (50_000, 100_000), (75_000, 100_000)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("prefetch", [0, 2])
def test_resuming_in_the_middle(store: Store, protocol: str, prefetch: int) -> None:
    rows = [b"%d" % i * 50 for i in range(3000)]
    store.put("many", tfrecord(rows))
    dataset: Dataset[Any] = fb.TFRecordDataset(store.url(protocol, "many"))
    if prefetch:
        dataset = dataset.prefetch(prefetch)
    dataset = dataset.with_options(Options(remote=HASTY, block_bytes=8192))
    with iter(dataset) as it:
        assert [next(it) for _ in range(1234)] == rows[:1234]
        state = it.state_dict()
    store.proxy.clean()
    store.proxy.script = [servers.cut, servers.status(500)]
    with iter(dataset) as it:
        it.load_state_dict(state)
        assert list(it) == rows[1234:]
        # Nothing before that was read again but the piece that a new iterator may have begun with.
        assert sum(first < 50_000 for first, _ in store.proxy.ranges) <= 4


def test_on_workers(store: Store) -> None:
    for i in range(6):
        store.put(f"part-{i}", b"%d" % i * 5000)
    urls = [store.url("s3", f"part-{i}") for i in range(6)]
    for executor in ("thread", "process"):
        store.proxy.clean()
        store.proxy.script = [servers.cut, servers.status(503), servers.short]
        dataset = Dataset.from_tensor_slices(urls).map(fb.io.read_file, num_parallel_calls=2, executor=executor)
        found = list(dataset.with_options(Options(remote=HASTY)))
        assert found == [b"%d" % i * 5000 for i in range(6)]


def test_listing(store: Store) -> None:
    for name in ("a.txt", "b.txt", "c.bin"):
        store.put(f"list/{name}", name.encode())
    found = Dataset.list_files(store.url("s3", "list/*.txt"), shuffle=False)
    assert list(fb.TextLineDataset(found)) == [b"a.txt", b"b.txt"]


def test_chains_of_file_systems(store: Store, tmp_path: Any) -> None:
    data = np.random.default_rng(5).bytes(50_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("member", data)
    store.put("a.zip", (tmp_path / "a.zip").read_bytes())
    store.put("plain", data)
    store.proxy.script = [servers.status(503), servers.cut]
    with fb.io.remote_options(fb.RemoteOptions(allow=("s3://lake",), backoff=0.001)):
        assert fb.io.read_file(f"zip://member::{store.url('s3', 'a.zip')}") == data
        assert fb.io.read_file(f"simplecache::{store.url('s3', 'plain')}") == data
        with pytest.raises(fb.RemoteError, match="is not allowed"):
            fb.io.read_file(f"zip://member::{tmp_path}/a.zip")


def test_empty_and_missing_objects(store: Store) -> None:
    store.put("empty", b"")
    for protocol in PROTOCOLS:
        assert fb.io.read_file(store.url(protocol, "empty")) == b""
        with pytest.raises(fb.FileError, match="none: there is no such file"):
            fb.io.read_file(store.url(protocol, "none"))


def test_a_small_file_from_a_server_without_ranges(store: Store) -> None:
    rows = [b"%d" % i * 50 for i in range(500)]
    data = tfrecord(rows)
    store.put("object", data)
    store.proxy.always = servers.whole(data)
    dataset = fb.TFRecordDataset(store.url("http", "object")).with_options(Options(block_bytes=4096))
    assert list(dataset) == rows


def test_a_server_whose_heads_say_that_there_is_nothing(store: Store) -> None:
    rows = [b"%d" % i * 50 for i in range(500)]
    for name, held in (("object", rows), ("empty", [])):
        store.put(name, tfrecord(held))
        store.proxy.everything, store.proxy.script = True, [servers.no_length]
        assert list(fb.TFRecordDataset(store.url("http", name))) == held
        assert not store.proxy.script


def test_a_large_file_from_a_server_without_ranges(store: Store) -> None:
    data = bytes(5 << 20)
    store.put("object", data)
    store.proxy.always = servers.whole(data)
    with pytest.raises(fb.FileError, match=r"ignores ranges.*simplecache::http"):
        next(iter(fb.FixedLengthRecordDataset(store.url("http", "object"), 1 << 16)))
