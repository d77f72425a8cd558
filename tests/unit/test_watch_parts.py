"""The parts of ``fb.watch`` that read: what is in use, what is left between epochs, child processes."""

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from forebay._native import clear_spare, spare_bytes
from forebay.ledger import ELSEWHERE, Ledger
from forebay.observe import children as children_module
from forebay.observe import use as use_module
from forebay.observe.children import Children, ChildrenCourse, Counted
from forebay.observe.conclude import Evidence, conclude
from forebay.observe.heap import Usage, usage_reader
from forebay.observe.recorder import Recorder, Source
from forebay.observe.report import report
from forebay.observe.stages import Stages
from forebay.observe.use import Use

MIB = 1 << 20

needs_glibc = pytest.mark.skipif(usage_reader() is None, reason="the C library does not tell what is in use")


def live() -> int:
    read = usage_reader()
    assert read is not None
    return read().live


# What is in use


@needs_glibc
def test_what_is_in_use_goes_up_and_down() -> None:
    before = live()
    kept = [np.ones(MIB // 8) for _ in range(16)]
    assert live() - before == pytest.approx(16 * MIB, rel=0.1)
    kept.clear()
    assert live() - before < MIB


@needs_glibc
def test_many_small_objects_count() -> None:
    before = live()
    kept = [[i] for i in range(200_000)]
    assert 8 * MIB < live() - before < 40 * MIB
    kept.clear()
    assert live() - before < MIB


@needs_glibc
def test_what_forebay_keeps_for_its_next_blocks_is_not_in_use() -> None:
    clear_spare()
    before = live()
    made = spare_bytes(4 * MIB)
    assert live() - before > 3 * MIB
    del made
    assert abs(live() - before) < MIB
    clear_spare()


@needs_glibc
def test_the_room_that_nobody_asked_for_in_a_block_is_not_in_use() -> None:
    clear_spare()
    before = live()
    # Of a size that is rounded up by 2.4 %; the kept ones have to be counted as anew.
    for _ in range(2):
        made = [spare_bytes(2_048_000) for _ in range(40)]
        assert live() - before == pytest.approx(40 * 2_048_000, rel=0.002)
        made.clear()
    clear_spare()
    assert abs(live() - before) < MIB // 4


@needs_glibc
def test_what_is_leaked_behind_pythons_back_is_in_use() -> None:
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    before = live()
    places = [library.malloc(50_000) for _ in range(200)]
    assert live() - before > 9 * MIB
    for place in places:
        library.free(place)


def test_arrow_tells_its_own() -> None:
    pa = pytest.importorskip("pyarrow")
    if usage_reader() is None:
        pytest.skip("the C library does not tell what is in use")
    before = live()
    kept = [pa.allocate_buffer(MIB) for _ in range(8)]
    assert live() - before == pytest.approx(8 * MIB, rel=0.2)
    kept.clear()


def test_what_other_processes_hold_is_not_leased_here() -> None:
    class Running:
        where = "somewhere"

        def __init__(self) -> None:
            self.ledger = Ledger("100MiB")

        def stats(self) -> list[object]:
            return []

    running = Running()
    here, there = running.ledger.lease("map"), running.ledger.lease(f"map{ELSEWHERE}")
    here.note(MIB)
    there.note(5 * MIB)
    stages = Stages()
    stages.block(running)  # type: ignore[arg-type]
    assert stages.leased() == MIB


# How often


class Clock:
    """Time that passes only while something is read."""

    def __init__(self, took: float) -> None:
        self.now, self.took, self.readings = 0.0, took, 0

    def perf_counter(self) -> float:
        return self.now

    def read(self) -> Usage:
        self.readings += 1
        self.now += self.took
        return Usage(self.readings, 0)


def used(monkeypatch: pytest.MonkeyPatch, took: float) -> tuple[Use, Clock]:
    clock = Clock(took)
    monkeypatch.setattr(use_module, "time", clock)
    return Use(clock.read, lambda: 0), clock


def test_readings_take_a_fiftieth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    use, clock = used(monkeypatch, took=0.02)  # As in a heap full of holes.
    before, began = clock.readings, clock.now
    for _ in range(10_000):
        clock.now += 0.001
        use.look()
    assert 0.015 < (clock.readings - before) * 0.02 / (clock.now - began) < 0.02


def test_a_short_run_is_read_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    use, clock = used(monkeypatch, took=5e-6)
    for _ in range(1000):
        use.look()
    assert clock.readings == 1002


def test_between_epochs_only_slow_readings_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for took, each in ((1e-4, True), (0.02, False)):
        use, clock = used(monkeypatch, took)
        for _ in range(500):  # What is free is used up.
            use.look()
        before = clock.readings
        for _ in range(100):
            use.look(between=True)
        assert (clock.readings - before == 100) == each


def test_one_reading_that_had_to_wait_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    use, clock = used(monkeypatch, took=1e-4)
    for _ in range(200):
        use.look()
    clock.took = 5.0
    clock.now += 1.0
    use.look()
    clock.took = 1e-4
    before = clock.readings
    clock.now += 0.0051
    use.look()
    assert clock.readings == before + 1


# Epochs


class SimpleRun:
    """An iterator with one step."""

    where = "train.py:5"

    def __init__(self, stage: SimpleNamespace) -> None:
        self._stage = stage
        self.ledger = Ledger("1GiB")

    def stats(self) -> list[SimpleNamespace]:
        return [self._stage]


class Fake:
    """Memory that a test sets."""

    def __init__(self) -> None:
        self.live = 0

    def use(self) -> Use:
        return Use(lambda: Usage(self.live, 0), lambda: 0)


def test_what_an_epoch_leaves_behind_is_read_when_its_buffers_are_gone() -> None:
    fake = Fake()
    recorder = Recorder(lambda: 100 * MIB, lambda: 0, fake.use())
    for epoch in range(4):
        for _ in range(3):
            fake.live = 50 * MIB
            recorder.step(Source.ITERATORS)
        recorder.epoch(Source.ITERATORS)
        fake.live = (10 + epoch) * MIB
        recorder.settled()
        recorder.settled()  # As when an evaluation ends, too.
    found = recorder.readings().live
    assert found is not None
    assert (found.epochs.low / MIB).tolist() == [10, 11, 12, 13]
    assert (found.steps.low / MIB).tolist() == [50] * 12


def test_an_epoch_that_was_left_early_is_read_when_the_next_begins() -> None:
    fake = Fake()
    recorder = Recorder(lambda: 100 * MIB, lambda: 0, fake.use())
    for epoch in range(3):
        recorder.step(Source.ITERATORS)
        fake.live = epoch * MIB
        recorder.epoch(Source.ITERATORS)
    found = recorder.readings()
    assert found.live is not None
    assert (found.live.epochs.low / MIB).tolist() == [0, 1, 2]
    assert len(found.memory.epochs) == 3


def test_the_users_epochs_are_read_at_once() -> None:
    fake = Fake()
    recorder = Recorder(lambda: 100 * MIB, lambda: 0, fake.use())
    for epoch in range(3):
        recorder.step(Source.USER)
        fake.live = epoch * MIB
        recorder.epoch(Source.USER)
        fake.live = 70 * MIB
    found = recorder.readings().live
    assert found is not None
    assert (found.epochs.low / MIB).tolist() == [0, 1, 2]


# Children


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[float, float]]:
    """Memory of its own and code of each child, in MiB, as a test sets them."""
    found: dict[int, tuple[float, float]] = {}

    def below(_: int) -> Iterator[int]:
        return iter(list(found))

    def counted(pid: int) -> Counted:
        own, code = (int(each * MIB) for each in found[pid])
        return Counted(own, code, code)

    monkeypatch.setattr(children_module, "_below", below)
    monkeypatch.setattr(children_module, "_own_memory", lambda pid: int(found[pid][0] * MIB))
    monkeypatch.setattr(children_module, "_counted", counted)
    monkeypatch.setattr(children_module, "_name", lambda pid: f"worker {pid}")
    return found


def test_workers_that_start_one_after_the_other_are_no_leak(processes: dict[int, tuple[float, float]]) -> None:
    children = Children()
    totals = []
    for look in range(120):
        if look % 15 == 0:
            processes[look] = (25.0, 10.0)
        totals.append(children.look()[0])
    assert totals[-1] == 8 * 25 * MIB
    assert children.course() == ChildrenCourse()


def test_workers_that_load_libraries_all_the_while_are_no_leak(processes: dict[int, tuple[float, float]]) -> None:
    children = Children()
    for look in range(100):
        processes.update(dict.fromkeys(range(8), (1 + 0.3 * look, 2 + 0.5 * look)))
        children.look()
    assert children.course().leak is None


def test_one_worker_that_grows_is_found_among_others(processes: dict[int, tuple[float, float]]) -> None:
    children = Children()
    for look in range(100):
        processes.update({1: (25.0, 10.0), 2: (25 + 0.5 * look, 10.0), 3: (25 + 0.02 * look, 10.0)})
        children.look()
    found = children.course()
    assert found.leak is not None
    assert found.leak.trend is not None
    assert found.leak.trend.slope == pytest.approx(0.5 * MIB)
    assert found.slope == pytest.approx(0.5 * MIB, rel=0.1)
    assert children.growth()[0].pid == 2


def test_a_worker_that_reads_a_mapped_file_and_grows_is_found(
    processes: dict[int, tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, files = 25 * MIB, 10 * MIB
    monkeypatch.setattr(children_module, "_own_memory", lambda pid: own)
    monkeypatch.setattr(children_module, "_counted", lambda pid: Counted(own, files, 20 * MIB))
    children = Children()
    processes[1] = (0.0, 0.0)
    for _ in range(100):
        children.look()
        own, files = own + MIB // 2, files + MIB
    assert children.course().leak is not None


def test_between_two_walks_pages_are_counted(
    processes: dict[int, tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = []
    monkeypatch.setattr(children_module, "_own_memory", lambda pid: walks.append(pid) or 30 * MIB)
    monkeypatch.setattr(children_module, "_REST", 1 << 60)
    children = Children()
    # Of the 70 MiB that are counted, 40 were there when it was forked.
    for anonymous, expected in ((70, 30), (75, 35), (60, 20), (20, 0)):
        processes[1] = (anonymous, 10.0)
        assert children.look()[0] == expected * MIB
    assert walks == [1]


@pytest.mark.parametrize("looks", [12, 70])
def test_growth_of_a_worker_that_cannot_be_judged_is_left_open(
    processes: dict[int, tuple[float, float]], looks: int
) -> None:
    recorder, children = Recorder(lambda: 100 * MIB, lambda: 0, Fake().use()), Children()
    for look in range(looks):
        # It works ahead of the loop: three epochs are as many jumps, and the last of them is long over.
        processes[1] = (25.0 + 20 * (3 * look // looks), 10.0)
        children.look()
        for _ in range(10):
            recorder.step(Source.USER)
    curve = recorder.memory.curve()
    verdict = conclude(Evidence(recorder, Stages(), children, curve, (), (), 100 * MIB, 100 * MIB))
    assert (verdict.kind, verdict.where) == ("unclear", "children")
    assert "a child process grew by 40.0 MiB" in verdict.reason
    assert "Processes that grew" in report(verdict)


def test_figures_of_workers_are_plain_numbers(processes: dict[int, tuple[float, float]]) -> None:
    recorder, children = Recorder(lambda: 100 * MIB, lambda: 0, Fake().use()), Children()
    for look in range(70):
        processes[1] = (25.0 + look, 10.0)
        children.look()
        recorder.step(Source.USER)
    curve = recorder.memory.curve()
    verdict = conclude(Evidence(recorder, Stages(), children, curve, (), (), 100 * MIB, 100 * MIB))
    assert (verdict.kind, verdict.where) == ("leak", "children")
    assert {type(each) for each in (verdict.bytes_per_step, *verdict.interval)} == {float}


def test_a_buffer_in_memory_that_was_free_is_not_more_than_all_that_came() -> None:
    memory = [100 * MIB]
    recorder, stages = Recorder(lambda: memory[0], lambda: 0, Fake().use()), Stages()
    stage = SimpleNamespace(name="shuffle at train.py:5", held=18 * MIB, full=1.0)
    stages.block(cast(Any, SimpleRun(stage)))
    for _ in range(70):
        memory[0] = min(memory[0] + MIB, 112 * MIB)
        recorder.step(Source.USER)
    curve = Recorder(lambda: 0, lambda: 0, Fake().use()).memory.curve()
    verdict = conclude(Evidence(recorder, stages, Children(), curve, (), (), 100 * MIB, memory[0]))
    assert verdict.kind == "growth"
    assert (
        "the buffer of shuffle at train.py:5 held up to 18.0 MiB, with 12.0 MiB more at the highest" in verdict.reason
    )


def test_what_a_worker_takes_and_gives_back_is_not_left_open(processes: dict[int, tuple[float, float]]) -> None:
    children = Children()
    for look in range(18):
        processes[1] = (25.0 + (0 if look < 3 else 14 + 8 * (look % 2)), 10.0)
        children.look()
    assert children.course() == ChildrenCourse()


def test_a_worker_that_was_slow_to_set_up_is_no_leak(processes: dict[int, tuple[float, float]]) -> None:
    children = Children()
    for look in range(100):
        processes[1] = (25.0 + min(look, 30), 10.0)
        children.look()
    assert children.course() == ChildrenCourse()
