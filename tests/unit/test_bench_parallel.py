"""The benchmarks of parallel stages: that they compare like with like, and refuse what is not."""

import io
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from bench import report, tokenizer
from bench.__main__ import parse
from bench.busy import Busy
from bench.chart import draw
from bench.memory import descendants
from bench.pipeline import WrongData, contender
from bench.results import Outcome, Run, WorkloadResult
from bench.spec import ROWS_PER_SECOND, AtLeast, Contender, Task, Unit, ValueAbove, Workload
from bench.workloads import find, prefetch, startup, tuner, w7b_decompress

ROOT = Path(__file__).parents[2]


def result_of(unit=ROWS_PER_SECOND, **samples):
    outcomes = [Outcome(Contender(name, "forebay", lambda task: {}), 10, [each]) for name, each in samples.items()]
    return WorkloadResult(Workload("w", "w", unit, tuple(each.contender for each in outcomes)), outcomes)


def test_a_workload_is_chosen_by_its_name_in_any_case():
    assert parse(["W7", "w7b", "Tuner-IO"]).workloads == ["w7", "w7b", "tuner-io"]


def test_the_tokenizer_takes_the_longest_known_piece():
    ids = tokenizer.tokenize("Thea é")
    assert ids.dtype == np.int32
    assert ids.shape == (tokenizer.LENGTH,)
    the, a = tokenizer.VOCABULARY["the"], tokenizer.VOCABULARY["a"]
    assert ids[:6].tolist() == [1, the, a, 3, 2, 0]
    assert tokenizer.tokenize("a" * 100)[-1] == 2


def test_texts_are_the_same_in_every_process_and_repeat():
    assert tokenizer.texts(3, 14) == tokenizer.texts(2_000, 14)[1_000:1_003]
    assert [len(text.replace(" ", "")) for text in tokenizer.texts(5, 90)] == [90] * 5


def test_tokenized_refuses_rows_of_another_text():
    data = tokenizer.texts(150, 14)
    rows = np.stack([tokenizer.tokenize(text) for text in data])
    good = [rows[:64], rows[64:128], rows[128:]]
    tokenizer.tokenized(64, data, 150, good)
    for wrong in ([good[1], good[0], good[2]], [rows[:75], rows[75:]], [rows[:64] + 1, *good[1:]]):
        with pytest.raises(WrongData, match="does not hold the ids"):
            tokenizer.tokenized(64, data, 150, wrong)
    with pytest.raises(WrongData, match="128 rows, expected 150"):
        tokenizer.tokenized(64, data, 150, good[:2])


def test_decompressed_refuses_rows_of_another_blob():
    data = w7b_decompress.compressed(20)
    rows = np.stack([np.frombuffer(zlib.decompress(each), np.uint8) for each in data])
    assert rows.shape == (20, w7b_decompress.SIZE)
    w7b_decompress.decompressed(data, 20, [rows[:16], rows[16:]])
    with pytest.raises(WrongData, match="row 16 "):
        w7b_decompress.decompressed(data, 20, [rows[:16], rows[15:19]])


def test_the_first_epoch_is_reported_apart(monkeypatch):
    now = 0.0

    def epoch():
        nonlocal now
        now += 100 if now == 0 else 4
        yield np.arange(10)

    monkeypatch.setattr("bench.pipeline.time.perf_counter", lambda: now)
    slow = contender("slow", "numpy", lambda data, rows: epoch, check=lambda *_: None, first_apart=True)
    sample = slow.measure(Task(rows=10, verify=False))
    assert sample["first_value"] == 10 / 100
    assert sample["epoch_seconds"] == [4]
    assert sample["value"] == 10 / 4


def test_one_contender_is_judged_against_another():
    result = result_of(ours={"value": 17.0}, inline={"value": 10.0})
    assert AtLeast("ours", 1.7, "inline").judge(result).reached is True
    assert AtLeast("ours", 1.8, "inline").judge(result).reached is False
    assert AtLeast("ours", 1.8, "absent").judge(result).reached is None
    assert ValueAbove("ours", 17, "%", "share").judge(result).reached is True
    assert ValueAbove("ours", 18, "%", "share").judge(result).reached is False
    assert ValueAbove("absent", 18, "%", "share").judge(result).reached is None


def test_the_table_shows_first_epochs_where_there_are_any():
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    report.show(
        result_of(ours={"value": 17e3, "first_value": 4e3, "cpu_us_per_row": 135.7}, inline={"value": 10e3}), console
    )
    text = console.export_text()
    assert "first epoch" in text
    assert "4 k │        136" in text
    report.show(result_of(Unit("% waiting", higher_is_better=False), ours={"value": 17.0}), console)
    assert "first epoch" not in console.export_text()


def test_a_cost_below_zero_is_left_out_of_the_chart(tmp_path):
    pytest.importorskip("matplotlib")
    negative = result_of(ours={"value": -3.0})
    assert not draw(Run(1, True, [negative]), tmp_path / "chart.png")
    assert draw(Run(1, True, [negative, result_of(ours={"value": 3.0})]), tmp_path / "chart.png")


def test_work_of_a_live_child_is_not_that_of_others():
    code = "import time\nwhile time.process_time() < 0.4: pass\nprint(flush=True); input()"
    with (
        Busy() as busy,
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child,
    ):
        assert child.stdout is not None
        child.stdout.readline()
        with Busy() as quiet:
            pass
        child.communicate(b"\n")
    assert quiet.own < 0.2
    assert busy.own >= 0.35


def test_start_up_counts_the_processes_that_a_second_epoch_starts():
    children = []
    # Servers that other tests have started, if they run in the same process.
    before = len(descendants(os.getpid()))

    def build(data):
        def epoch():
            children.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
            return iter(data)

        return epoch

    try:
        sample = startup.measure(Task(rows=3, verify=False), build)
    finally:
        for child in children:
            child.communicate(b"\n")
    assert sample["processes"] == before + 1
    assert sample["new_processes"] == [str(children[1].pid)]


def test_every_batch_is_a_block_of_its_own_where_blocks_are_counted():
    for ahead in (False, True):
        assert prefetch.epoch(20 * prefetch.BLOCK_ROWS, ahead)[2] == 20


def test_waiting_is_seen_by_the_clock_and_by_the_statistics(monkeypatch):
    now = 0.0

    class Stats:
        wait = 0.0

    class Slow:
        def stats(self):
            return [Stats]

        def __next__(self):
            nonlocal now
            now += 15
            Stats.wait += 10

    def sleep(seconds):
        nonlocal now
        now += 45

    monkeypatch.setattr(prefetch.time, "perf_counter", lambda: now)
    monkeypatch.setattr(prefetch.time, "sleep", sleep)
    sample = prefetch.waits(Task(rows=4, verify=False), lambda batches: Slow())
    assert sample["value"] == pytest.approx(25)
    assert sample["stats_percent"] == pytest.approx(100 * 40 / 240)
    assert sample["late_percent"] == pytest.approx(100 * (1 - 4 * prefetch.STEP_SECONDS / 240))


def test_a_window_does_not_count_what_was_made_before_it(monkeypatch):
    now = 0.0

    def elements():
        nonlocal now
        yield from range(1_000)
        while True:
            now += 0.125
            yield 0

    monkeypatch.setattr(tuner.time, "perf_counter", lambda: now)
    assert tuner.rate(elements(), 2.0) == 8


@pytest.mark.parametrize("build", [tuner.io_bound, tuner.cpu_bound, tuner.mixed])
def test_every_setting_of_a_grid_makes_the_same_elements(build):
    (grid,) = [
        each.parameters["grid"] for each in tuner.WORKLOADS if each.contenders[0].measure.keywords["build"] == build
    ]
    kept = [list(build(setting).take(10)) for setting in [(-1,) * len(grid[0]), *grid]]
    assert all(each == kept[0] for each in kept)
    assert len(set(kept[0])) == 10


def test_quick_run_of_the_decompression(tmp_path):
    command = [sys.executable, "-m", "bench", "W7b", "--quick", "--only", "forebay", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (workload,) = json.loads((tmp_path / "partial.json").read_text())["workloads"]
    assert [entry["name"] for entry in workload["contenders"]] == [
        *("forebay", "forebay auto", "forebay decode_compressed", "forebay inline")
    ]
    for entry in workload["contenders"]:
        assert entry["problem"] == ""
        assert entry["samples"][0]["verified"]
        assert entry["first_epoch"] > 0
    assert [verdict["reached"] is None for verdict in workload["targets"]] == [False, True, True, True]


def test_workloads_are_found_by_name():
    assert find("tuner-mixed").parameters["grid"][0] == (4, 1)
