"""What is read ahead of need and together: as much as is useful and the budget allows, and never another byte."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Options
from forebay.ledger import Ledger
from forebay.storage.files import open_file
from remote import servers
from remote.conftest import HASTY, Store
from remote.test_reading import PROTOCOLS, tfrecord

ROWS = [b"%d" % i * 200 for i in range(5000)]


def options(**given: Any) -> Options:
    return Options(block_bytes=1 << 16, remote=fb.RemoteOptions(backoff=0.001, **given))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_rows_are_the_same_at_any_distance(store: Store, protocol: str) -> None:
    store.put("rows", tfrecord(ROWS))
    requests = {}
    for ahead in (0, 1 << 16, "8MiB"):
        store.proxy.clean()
        dataset = fb.TFRecordDataset(store.url(protocol, "rows")).with_options(options(read_ahead=ahead))
        with iter(dataset) as it:
            assert list(it) == ROWS
            assert it.ledger.held == 0
        requests[ahead] = store.proxy.ranges
        # Every byte once, whoever asked for it.
        covered = sorted(store.proxy.ranges)
        assert covered[0][0] == 0
        assert all(first[1] == second[0] for first, second in pairwise(covered))
    assert len(requests["8MiB"]) < len(requests[0])


def test_states_do_not_know_how_far_ahead_was_read(store: Store) -> None:
    store.put("rows", tfrecord(ROWS))
    url = store.url("s3", "rows")
    near, far = (fb.TFRecordDataset(url).with_options(options(read_ahead=ahead)) for ahead in (0, "4MiB"))
    with iter(far) as it, iter(near) as other:
        for _ in range(2345):
            assert next(it) == next(other)
        state = it.state_dict()
        assert state["position"] == other.state_dict()["position"]
        assert state["cursor"][1] >= 0
    with iter(near) as it:
        it.load_state_dict(state)
        assert list(it) == ROWS[2345:]


def test_a_tight_budget(store: Store) -> None:
    rows = ROWS[:1000]
    store.put("rows", tfrecord(rows))
    for budget in (200_000, 400_000, 1 << 20):
        ledger = Ledger(budget)
        given = options()
        given.memory = ledger
        dataset = fb.TFRecordDataset(store.url("s3", "rows")).prefetch(4).with_options(given)
        assert list(dataset) == rows
        assert ledger.peak <= budget
        assert ledger.held == 0


def test_faults_in_what_was_asked_for_ahead(store: Store) -> None:
    store.put("rows", tfrecord(ROWS))
    store.proxy.script = [None, None, servers.cut, servers.status(503), servers.short, servers.reset, None, servers.cut]
    dataset = fb.TFRecordDataset(store.url("s3", "rows"))
    assert list(dataset.with_options(Options(block_bytes=1 << 15, remote=HASTY))) == ROWS


def test_compressed_files_too(store: Store) -> None:
    path = "memory://remote-tests/rows.gz"
    with fb.io.TFRecordWriter(path, "GZIP") as writer:
        for i in range(20_000):
            writer.write(np.random.default_rng(i).bytes(60))
    rows = list(fb.TFRecordDataset(path, "GZIP"))
    store.put("rows.gz", fb.io.read_file(path))
    store.proxy.script = [None, servers.cut, None, servers.status(500)]
    found = fb.TFRecordDataset(store.url("s3", "rows.gz"), "GZIP").with_options(Options(remote=HASTY))
    assert list(found) == rows


def test_by_number_nothing_is_read_ahead(store: Store) -> None:
    data = np.arange(1 << 20, dtype=np.int64).tobytes()
    store.put("numbers", data)
    dataset = fb.FixedLengthRecordDataset(store.url("s3", "numbers"), 8)
    assert list(dataset.skip(1000).take(3)) == [data[8 * i : 8 * i + 8] for i in (1000, 1001, 1002)]
    assert max(stop for _, stop in store.proxy.ranges) <= 8 * 20_000


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ranges_that_are_near_each_other_come_together(store: Store, protocol: str) -> None:
    data = np.random.default_rng(3).bytes(3 << 20)
    store.put("object", data)
    file = open_file(store.url(protocol, "object"))
    starts = np.array([0, 100, 5_000, 1_000_000, 1_000_050, 2_500_000, 40, 3_000_000])
    stops = starts + np.array([100, 10, 0, 30, 20, 200_000, 5, 10])
    into = np.empty(int((stops - starts).sum()), np.uint8)
    store.proxy.clean()
    store.proxy.script = [servers.cut, None, servers.status(503)]
    file.read_ranges(starts, stops, into)
    assert into.tobytes() == b"".join(data[start:stop] for start, stop in zip(starts.tolist(), stops.tolist()))
    asked = {(0, 110), (1_000_000, 1_000_070), (2_500_000, 2_700_000), (40, 45), (3_000_000, 3_000_010)}
    assert asked <= set(store.proxy.ranges)
    with pytest.raises(fb.FileError, match="has become shorter"):
        file.read_ranges(np.array([3 << 20]), np.array([(3 << 20) + 1]), into)


def test_several_requests_at_once_and_no_more(store: Store) -> None:
    data = np.random.default_rng(4).bytes(4 << 20)
    store.put("object", data)
    starts = np.arange(0, 4 << 20, 1 << 18)
    with fb.io.remote_options(fb.RemoteOptions(requests=3)):
        file = open_file(store.url("s3", "object"))
    into = np.empty(16 * 1000, np.uint8)
    store.proxy.clean()
    file.read_ranges(starts, starts + 1000, into)
    assert into.tobytes() == b"".join(data[start : start + 1000] for start in starts.tolist())
    assert len(store.proxy.ranges) == 16
    assert store.proxy.most_at_once <= 3
