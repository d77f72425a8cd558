"""Reads that do not succeed: when they end, what is said, and that nobody is kept waiting."""

import threading
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

import forebay as fb
from faults.support import assert_nothing_runs
from forebay import Dataset, Options
from forebay.remote_run import in_force
from remote import servers
from remote.conftest import Store
from remote.test_reading import PROTOCOLS, tfrecord

# So long at most until something that is bound to happen has happened.
DEADLINE = 60
BRIEF = fb.RemoteOptions(timeout=0.05, backoff=0.001, deadline=0.3, retries=100)
PATIENT = fb.RemoteOptions(timeout=300, deadline=300)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("fault", [servers.stall, servers.stall_half_way])
def test_a_server_that_never_answers(store: Store, protocol: str, fault: Any) -> None:
    store.put("object", tfrecord([b"x" * 100] * 100))
    store.proxy.always = fault
    url = store.url(protocol, "object")
    with pytest.raises(fb.RemoteError, match=r"byte [0-9,]+: could not be read, \d+ attempts in .* s .*deadline=0.3"):
        list(fb.TFRecordDataset(url).with_options(Options(remote=BRIEF)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_that_fails_too_often(store: Store, protocol: str) -> None:
    store.put("object", b"x" * 1000)
    store.proxy.always = servers.status(500)
    options = fb.RemoteOptions(retries=2, backoff=0.001)
    with fb.io.remote_options(options), pytest.raises(fb.RemoteError) as caught:
        fb.io.read_file(store.url(protocol, "object"))
    assert "3 attempts" in caught.value.reason
    assert "retries=2" in caught.value.reason
    assert caught.value.offset == 0
    assert len(store.proxy.ranges) == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("code", [400, 403])
def test_what_is_refused_is_not_asked_for_again(store: Store, protocol: str, code: int) -> None:
    store.put("object", b"x" * 1000)
    store.proxy.always = servers.status(code)
    with pytest.raises(fb.FileError):
        fb.io.read_file(store.url(protocol, "object"))
    assert len(store.proxy.ranges) == 1


def test_a_server_that_is_not_there(store: Store) -> None:
    url = "http://127.0.0.1:1/object"
    with fb.io.remote_options(BRIEF), pytest.raises(fb.RemoteError, match=f"{url}: could not be read"):
        fb.io.read_file(url)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_opening_has_a_deadline_too(store: Store, protocol: str) -> None:
    store.put("object", b"x" * 1000)
    store.proxy.always, store.proxy.everything = servers.stall, True
    with fb.io.remote_options(BRIEF), pytest.raises(fb.RemoteError, match="no answer"):
        fb.io.read_file(store.url(protocol, "object"))


def test_skipping_faults_does_not_skip_what_cannot_be_reached(store: Store) -> None:
    store.put("object", tfrecord([b"x" * 100] * 100))
    store.proxy.always = servers.status(503)
    options = Options(remote=fb.RemoteOptions(retries=1, backoff=0.001))
    url = store.url("s3", "object")
    for dataset in (
        fb.TFRecordDataset(url, on_error="skip"),
        Dataset.from_webdataset(url, on_error="skip", fields=["x"]),
    ):
        with pytest.raises(fb.RemoteError, match="2 attempts"):
            list(dataset.with_options(options))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_object_that_changes(store: Store, protocol: str) -> None:
    store.put("object", tfrecord([b"a" * 1000] * 1000))
    dataset = fb.TFRecordDataset(store.url(protocol, "object"))
    with iter(dataset.with_options(Options(block_bytes=8192, remote=fb.RemoteOptions(read_ahead=0)))) as it:
        assert next(it) == b"a" * 1000
        store.put("object", tfrecord([b"b" * 1000] * 1000))
        with pytest.raises(fb.RemoteError, match="has changed while it was being read"):
            list(it)


def test_an_object_that_changes_where_only_asking_tells(tmp_path: Any) -> None:
    import fsspec

    def write(data: bytes) -> None:
        fsspec.filesystem("memory").pipe_file("/changing", data)

    write(tfrecord([b"a" * 1000] * 1000))
    with iter(fb.TFRecordDataset("memory://changing").with_options(Options(block_bytes=8192))) as it:
        next(it)
        write(tfrecord([b"b" * 1000] * 1000))
        with pytest.raises(fb.RemoteError, match="has changed"):
            list(it)


def test_a_flipped_bit(store: Store) -> None:
    data = np.random.default_rng(2).bytes(300_000)
    store.put("object", data)
    url = store.url("s3", "object")
    store.proxy.script = [servers.flip]
    assert fb.io.read_file(url) == data
    store.proxy.always = servers.flip
    with pytest.raises(fb.RemoteError, match="checksum that its store has"):
        fb.io.read_file(url)


def test_a_flipped_bit_in_a_file_that_is_read_in_pieces(store: Store) -> None:
    rows = [b"%d" % i for i in range(20_000)]
    store.put("lines", b"\n".join(rows))
    dataset = fb.TextLineDataset(store.url("s3", "lines")).with_options(Options(block_bytes=8192))
    assert list(dataset) == rows
    store.proxy.clean()
    store.proxy.script = [None, None, servers.flip]
    with pytest.raises(fb.RemoteError, match="checksum that its store has"):
        list(dataset)
    store.proxy.clean()
    store.proxy.script = [None, None, servers.flip]
    assert list(dataset.with_options(Options(remote=fb.RemoteOptions(checksum=False)))) != rows


def test_an_interrupt_before_a_run_is_out_of_force(store: Store) -> None:
    """What is read afterwards is no business of a run that is over."""
    store.put("object", b"x" * 1000)
    options = Options(remote=fb.RemoteOptions(allow=("file",)))

    def read() -> bytes:
        it = iter(Dataset.range(3).with_options(options))
        in_force(it._setup.remote).__enter__()
        it.close()
        store.proxy.script = [servers.status(503)]
        data: bytes = fb.io.read_file(store.url("s3", "object"))
        return data

    assert copy_context().run(read) == b"x" * 1000


def in_the_middle(dataset: Dataset[Any], store: Store) -> None:
    """Close an iterator while a request of its own hangs, which would take minutes to be given up."""
    reading = threading.Event()

    def read() -> None:
        with iter(dataset) as it:
            reading.set()
            closers.append(it.close)
            with pytest.raises(fb.ForebayError):
                list(it)

    closers: list[Any] = []
    thread = threading.Thread(target=read)
    thread.start()
    assert reading.wait(DEADLINE)
    assert store.proxy.hangs.acquire(timeout=DEADLINE)
    closers[0]()
    thread.join(DEADLINE)
    assert not thread.is_alive()
    assert_nothing_runs()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_closing_in_the_middle_of_a_hung_request(store: Store, protocol: str) -> None:
    store.put("object", tfrecord([b"x" * 1000] * 1000))
    options = Options(remote=PATIENT, block_bytes=8192)
    store.proxy.script, store.proxy.always = [None, None], servers.stall
    dataset = fb.TFRecordDataset(store.url(protocol, "object")).prefetch(1000).with_options(options)
    with iter(dataset) as it:
        assert next(it) == b"x" * 1000
        assert store.proxy.hangs.acquire(timeout=DEADLINE)
    assert_nothing_runs()
    assert it.ledger.held == 0


@pytest.mark.parametrize("calls", [None, 2])
def test_closing_while_a_function_reads(store: Store, calls: int | None) -> None:
    store.put("object", b"x" * 1000)
    store.proxy.always = servers.stall
    dataset = Dataset.from_tensor_slices([store.url("s3", "object")] * 4).map(
        fb.io.read_file, num_parallel_calls=calls, executor="thread" if calls else "inline"
    )
    in_the_middle(dataset.with_options(Options(remote=PATIENT)), store)
