"""Children that are forked while threads of their parent are busy: new iterators in them, and what stays behind."""

import atexit
import gc
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forebay as fb
from forebay import Dataset, forks
from forebay.lazy import cached_property
from forebay.ops.cache import Cache
from forebay.run import cached_folder
from forebay.run.cached_others import Others
from forebay.run.process import wire
from forebay.sources.tables import Tables
from forebay.storage.manifest import is_saved_dataset
from unit.support import plain

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
ROWS = 400
EXPECTED = list(range(ROWS))


class Held:
    """Shares a lock, and notes whether somebody had it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.torn: bool | None = None
        forks.tell_children(self)

    def in_child(self) -> None:
        self.torn = forks.is_torn(self.lock)


def in_child(work: Callable[[], bool]) -> bool:
    """What that is in a forked child; one that hangs is killed by a signal."""
    child = os.fork()
    if child == 0:
        # Longer than anything takes on the busiest machine.
        signal.alarm(300)
        done = False
        try:
            done = work()
        finally:
            os._exit(0 if done else 1)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("taken", [True, False])
def test_a_child_is_told_what_was_half_done(taken: bool) -> None:
    held = Held()
    had, done = threading.Event(), threading.Event()

    def work() -> None:
        with held.lock:
            had.set()
            done.wait()

    thread = threading.Thread(target=work)
    if taken:
        thread.start()
        had.wait()
    try:
        assert in_child(lambda: held.torn is taken)
        assert held.torn is None
    finally:
        done.set()
        if taken:
            thread.join()


def test_what_another_thread_is_just_making_does_not_keep_others_from_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, done = threading.Event(), threading.Event()

    def slow(folder: Path, key: str) -> Others:
        begun.set()
        done.wait()
        return Others(folder, key)

    monkeypatch.setattr(cached_folder, "Others", slow)
    dataset = Dataset.range(ROWS).cache(tmp_path / "c")
    filling = threading.Thread(target=lambda: list(dataset))
    filling.start()
    begun.wait()
    # In whatever order they are told.
    told = [Held() for _ in range(100)]
    try:
        assert in_child(lambda: all(held.torn is False for held in told))
    finally:
        done.set()
        filling.join()


def content_of(dataset: Dataset[Any]) -> Any:
    assert isinstance(dataset.plan, Cache)
    return dataset.plan.content


@pytest.mark.parametrize("where", ["memory", "folder"])
@pytest.mark.parametrize("there", [0, 150, ROWS])
def test_a_child_iterates_over_a_cache_whose_lock_another_thread_had(where: str, there: int, tmp_path: Path) -> None:
    dataset = Dataset.range(ROWS).map(lambda x: x).cache(tmp_path / "c" if where == "folder" else "")
    content = content_of(dataset)
    if there == ROWS:
        list(dataset)
    with iter(dataset) as it:
        for _ in range(min(there, ROWS - 1)):
            next(it)
        lock = content._mutex if where == "folder" else content._lock
        had, done = threading.Event(), threading.Event()

        def work() -> None:
            with lock:
                had.set()
                done.wait()

        thread = threading.Thread(target=work)
        thread.start()
        had.wait()
        try:
            assert in_child(lambda: plain(list(dataset)) == plain(list(dataset)) == EXPECTED)
        finally:
            done.set()
            thread.join()
        assert len(list(it)) == ROWS - min(there, ROWS - 1)
    assert plain(list(dataset)) == EXPECTED


@pytest.mark.parametrize("where", ["memory", "folder", "none"])
def test_children_forked_at_any_moment_of_a_filling_cache(where: str, tmp_path: Path) -> None:
    rows = Dataset.from_generator(lambda: (np.full(1 << 17, number, np.int32) for number in range(300)))
    dataset = rows if where == "none" else rows.cache(tmp_path / "c" if where == "folder" else "")
    dataset = dataset.with_options(fb.Options(memory="16MiB"))
    filling = threading.Thread(target=lambda: [None for _ in dataset])
    filling.start()
    forked = 0
    while filling.is_alive() and forked < 12:
        assert in_child(lambda: [int(row[0]) for row, _ in zip(dataset, range(20))] == list(range(20)))
        forked += 1
    filling.join()
    assert [int(row[0]) for row in dataset] == list(range(300))


def test_a_child_that_lives_on_does_not_keep_the_folder_of_a_cache(tmp_path: Path) -> None:
    calls = [0]

    def counted(x: Any) -> Any:
        calls[0] += 1
        return x

    dataset = Dataset.range(ROWS).map(counted).cache(tmp_path / "c")
    it = iter(dataset)
    next(it)
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(into)
        os.read(out, 1)  # Until the parent is done.
        os._exit(0)
    try:
        it.close()
        assert plain(list(dataset)) == EXPECTED
        before = calls[0]
        assert plain(list(dataset)) == EXPECTED
        assert calls[0] == before
        dataset.clear()
    finally:
        os.close(into)
        os.close(out)
        os.waitpid(child, 0)


def test_a_child_of_one_who_writes_a_cache_takes_over_when_it_has_ended(tmp_path: Path) -> None:
    dataset = Dataset.range(ROWS).map(lambda x: x).cache(tmp_path / "c")
    it = iter(dataset)
    next(it)
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(into)
        done = False
        try:
            # Somebody else writes: all the same elements, and nothing is kept.
            done = plain(list(dataset)) == EXPECTED
            os.read(out, 1)
            done = done and plain(list(dataset)) == EXPECTED and content_of(dataset).complete
        finally:
            os._exit(0 if done else 1)
    os.close(out)
    it.close()
    os.close(into)
    assert os.waitpid(child, 0)[1] == 0
    assert plain(list(dataset)) == EXPECTED


@pytest.mark.parametrize("how", ["closed", "collected", "at its end"])
def test_a_child_does_not_remove_the_snapshot_that_its_parent_is_writing(how: str, tmp_path: Path) -> None:
    dataset = Dataset.range(ROWS).map(lambda x: x).snapshot(tmp_path / "s")
    its = [iter(dataset)]
    assert plain([next(its[0]) for _ in range(100)]) == EXPECTED[:100]

    def leave() -> bool:
        if how == "closed":
            its[0].close()
        elif how == "collected":
            its.clear()
            gc.collect()
        else:
            # What programs run that end by themselves.
            atexit._run_exitfuncs()
        return True

    assert in_child(leave)
    with its[0] as it:
        assert plain(list(it)) == EXPECTED[100:]
    assert plain(list(dataset)) == EXPECTED
    (folder,) = (tmp_path / "s").iterdir()
    assert is_saved_dataset(str(folder))


@pytest.mark.parametrize("memory", ["1MiB", "1GiB"])
def test_a_child_and_its_parent_decode_row_groups_without_each_other(memory: str, tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(60_000), "y": np.arange(60_000) * 0.5})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=5000)

    def shuffled() -> Dataset[Any]:
        rows = Dataset.from_parquet(tmp_path / "rows.parquet").shuffle(seed=1, reshuffle_each_iteration=False)
        return rows.with_options(fb.Options(memory=memory))

    expected = [int(row["x"]) for row in shuffled()]
    again = shuffled()

    def same() -> bool:
        return [int(row["x"]) for row in again] == expected

    with iter(again) as it:
        # Some of the groups are there, and the others are decoded by both.
        assert [int(next(it)["x"]) for _ in range(3)] == expected[:3]
        child = os.fork()
        if child == 0:
            done = False
            try:
                done = same()
            finally:
                os._exit(0 if done else 1)
        assert [int(row["x"]) for row in it] == expected[3:]
    assert os.waitpid(child, 0)[1] == 0
    assert same()


def test_a_thread_that_shares_a_ledger_does_not_stop_a_child() -> None:
    ledger = fb.Ledger("64MiB")
    dataset = Dataset.range(1000).batch(10).prefetch(2).with_options(fb.Options(memory=ledger))
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            list(dataset)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            assert in_child(lambda: len(list(dataset)) == 100)
    finally:
        over.set()
        thread.join()


def test_a_child_numbers_classes_of_its_own_while_another_thread_did(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, done = threading.Event(), threading.Event()
    numbers = wire._next_number

    class Slow:
        def __next__(self) -> int:
            begun.set()
            done.wait()
            return next(numbers)

    monkeypatch.setattr(wire, "_next_number", Slow())
    mine, other = (type(name, (), {}) for name in ("Mine", "Other"))
    thread = threading.Thread(target=lambda: wire.Types().give_number(other))
    thread.start()
    begun.wait()
    monkeypatch.setattr(wire, "_next_number", numbers)
    try:
        assert in_child(lambda: wire.numbered_class(wire.Types().give_number(mine)) is mine)
    finally:
        done.set()
        thread.join()
    given = {each: wire.Types().give_number(each) for each in (mine, other)}
    assert len(set(given.values())) == 2
    assert all(wire.numbered_class(number) is each for each, number in given.items())


def test_nobody_waits_for_a_thread_that_looks_at_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mine", "other"):
        pq.write_table(pa.table({"x": np.arange(ROWS)}), tmp_path / name)
    begun, done = threading.Event(), threading.Event()
    index = Tables.index

    def slow(node: Tables, path: str) -> Any:
        if path.endswith("other"):
            begun.set()
            done.wait()
        return index(node, path)

    def all_of(name: str) -> list[int]:
        return [int(row["x"]) for row in Dataset.from_parquet(tmp_path / name)]

    monkeypatch.setattr(Tables, "index", slow)
    found: list[list[int]] = []
    thread = threading.Thread(target=lambda: found.append(all_of("other")))
    thread.start()
    begun.wait()
    try:
        assert in_child(lambda: all_of("mine") == EXPECTED)
        assert all_of("mine") == EXPECTED
    finally:
        done.set()
        thread.join()
    assert found == [EXPECTED]


def test_what_two_threads_ask_for_at_once_is_the_same_for_both() -> None:
    both = threading.Barrier(2)

    class Asked:
        @cached_property
        def made(self) -> object:
            """Something."""
            both.wait()
            return object()

    asked = Asked()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(asked.made)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [asked.made] * 2
    assert Asked.made.__doc__ == "Something."
