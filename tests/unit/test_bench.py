"""The benchmark suite itself: what it measures must be right before it may be fast."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import big_rows, checks, runner
from bench.busy import Busy
from bench.memory import worker_memory
from bench.pipeline import WrongData, contender
from bench.results import Outcome, WorkloadResult
from bench.spec import (
    ROWS_PER_SECOND,
    Contender,
    Empty,
    Flat,
    PairedAtLeast,
    Task,
    TimesFaster,
    ValueBelow,
    Workload,
)
from bench.workloads import WORKLOADS, find, import_time

ROOT = Path(__file__).parents[2]


def batches(values):
    return [values[at : at + checks.BATCH] for at in range(0, len(values), checks.BATCH)]


def python_m_bench(*arguments):
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_quick_run_of_forebay_writes_verified_samples(tmp_path):
    done = python_m_bench("w1", "--quick", "--only", "forebay", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (workload,) = json.loads((tmp_path / "partial.json").read_text())["workloads"]
    for entry in workload["contenders"]:
        assert entry["problem"] == ""
        (sample,) = entry["samples"]
        assert sample["verified"]
        epochs = sample["epoch_seconds"]
        assert sample["value"] == pytest.approx(50_000 * len(epochs) / sum(epochs))
    assert [verdict["reached"] for verdict in workload["targets"]] == [None, None]
    assert "not judged" in done.stdout


def test_an_unknown_workload_is_refused_with_the_list_of_names():
    done = python_m_bench("w9")
    assert done.returncode == 2
    names = "w0, w1, w1b, w2, w3, w3-batch, w3b, w3c, w4, w4b, w4b-psnr, w5, w5b, w6, w6-group, w6b, scale, load, w7"
    assert f"no workload w9; there are {names}" in done.stderr


def test_a_library_that_is_absent_is_reported_and_not_run():
    workload = find("w0")
    absent = [
        replace(workload.contenders[-1], name=name, library=name) for name in ("no_such_library", "no_such.library")
    ]
    result = runner.run(workload, absent, rounds=1, quick=True, report=lambda where, outcome: None)
    assert [outcome.problem for outcome in result.outcomes] == ["not installed"] * 2
    assert [verdict.reached for verdict in result.verdicts()] == [None, None]


def test_a_failing_contender_is_reported_with_its_last_words():
    workload = find("w0")
    misnamed = replace(workload.contenders[-1], name="nobody")
    result = runner.run(workload, [misnamed], rounds=2, quick=True, report=lambda where, outcome: None)
    assert result.outcomes[0].problem == "KeyError: \"w0 has no contender 'nobody'\""
    assert result.outcomes[0].samples == []


def test_rows_are_counted_in_every_run():
    short = contender("short", "numpy", lambda data, rows: lambda: [np.arange(rows - 1)], check=checks.doubled)
    with pytest.raises(WrongData, match="short yielded 99 rows, expected 100"):
        short.measure(Task(rows=100, verify=False))


def test_letting_go_of_an_iterator_is_not_part_of_its_epoch(monkeypatch):
    now = 0.0

    class SlowToDrop:
        def __init__(self):
            self.left = 2

        def __iter__(self):
            return self

        def __next__(self):
            nonlocal now
            now += 1
            if not self.left:
                raise StopIteration
            self.left -= 1
            return np.arange(50)

        def __del__(self):
            nonlocal now
            now += 1000

    monkeypatch.setattr("bench.pipeline.time.perf_counter", lambda: now)
    slow = contender("slow", "numpy", lambda data, rows: SlowToDrop, check=checks.doubled)
    sample = slow.measure(Task(rows=100, verify=False))
    assert sample["epoch_seconds"] == [3]
    assert sample["closing_seconds"] == [1000]
    assert sample["value"] == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.arange(100)[::-1] * 2, "in order"),
        (np.arange(100), "in order"),
    ],
)
def test_doubled_refuses(values, message):
    checks.doubled(None, 100, batches(np.arange(100) * 2))
    with pytest.raises(WrongData, match=message):
        checks.doubled(None, 100, batches(values))


def test_shuffled_refuses_what_is_no_shuffle():
    rows = 1_000
    order = np.random.default_rng(3).permutation(rows)
    checks.shuffled(None)(None, rows, batches(order))
    with pytest.raises(WrongData, match="every number once"):
        checks.shuffled(None)(None, rows, batches(np.where(order == 7, 8, order)))
    with pytest.raises(WrongData, match="stayed where it was"):
        checks.shuffled(None)(None, rows, batches(np.arange(rows)))
    with pytest.raises(WrongData, match="before a buffer of 10 could have held it"):
        checks.shuffled(10)(None, rows, batches(order))
    with pytest.raises(WrongData, match="batches, expected"):
        checks.shuffled(None)(None, rows, [order])


def test_shuffled_rows_refuses_features_of_another_row():
    rows = 640
    features, labels = np.random.default_rng(0).random((rows, 3)), np.arange(rows)
    order = np.random.default_rng(3).permutation(rows)
    check = checks.shuffled_rows(None)
    check((features, labels), rows, [(features[i], labels[i]) for i in batches(order)])
    with pytest.raises(WrongData, match="not those of its label"):
        check((features, labels), rows, [(features[i][::-1], labels[i]) for i in batches(order)])


def test_busy_tells_own_work_from_that_of_others():
    with Busy() as busy:
        start = time.process_time()
        while time.process_time() - start < 0.1:
            pass
    assert busy.own >= 0.08
    assert 0 <= busy.others <= 1.1


def in_a_small_process(code: str) -> None:
    """A test worker that has run much else may be giving memory back while it is measured."""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_peak_memory_sees_what_was_freed_before_the_end():
    in_a_small_process(
        "import numpy as np; from bench.memory import PeakMemory\n"
        "with PeakMemory() as memory:\n"
        "    block = np.ones(8_000_000)\n"
        "    del block\n"
        "assert memory.growth > 60e6, memory.growth"
    )


def test_peak_memory_falls_back_to_sampling():
    in_a_small_process(
        "import numpy as np, bench.memory\n"
        "bench.memory._reset_high_water_mark = lambda: False\n"
        "with bench.memory.PeakMemory() as memory:\n"
        "    block = np.ones(8_000_000)\n"
        "assert memory.method == 'sampled'\n"
        "assert memory.growth > 0.9 * block.nbytes, memory.growth"
    )


def test_peak_memory_counts_worker_processes():
    code = "block = b'x' * 50_000_000; print(flush=True); input()"
    # Of other tests, too, there may be some.
    before = worker_memory()
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        grown = worker_memory() - before
        worker.communicate(b"\n")
    assert 50e6 < grown < 150e6


def result_of(**medians):
    """A result whose contenders are named ``library_setting``."""
    outcomes = []
    for name, value in medians.items():
        entry = Contender(name, name.split("_")[0], measure=lambda task: {})
        outcomes.append(Outcome(entry, 1, [{"value": value, "growth_bytes": 10, "modules": ["torch"]}]))
    workload = Workload("w", "w", ROWS_PER_SECOND, tuple(outcome.contender for outcome in outcomes))
    return WorkloadResult(workload, outcomes)


def test_a_ratio_counts_only_against_the_fastest_setting_of_the_peer():
    target = TimesFaster("ours", 10, "peer", usual="peer_usual")
    assert target.judge(result_of(ours=100, peer_usual=10)).reached is True
    assert target.judge(result_of(ours=99, peer_usual=10)).reached is False
    tuned = target.judge(result_of(ours=100, peer_usual=10, peer_tuned=20))
    assert tuned.reached is False
    assert tuned.measured == "10.00x; 5.00x the faster 'peer_tuned' (reached against the usual setting only)"
    assert target.judge(result_of(ours=100)).reached is None


def test_limits_are_judged_by_the_named_fact():
    result = result_of(ours=100)
    assert ValueBelow("ours", 101, "ms", "latency").judge(result).reached is True
    assert ValueBelow("ours", 100, "ms", "latency").judge(result).reached is False
    assert ValueBelow("ours", 1, "MB", "growth", fact="growth_bytes", scale=100).judge(result).reached is True
    assert Empty("ours", "modules", "imports nothing heavy").judge(result).reached is False


def test_a_paired_ratio_is_that_of_the_same_round():
    result = result_of(ours=10, floor=10)
    result.outcomes[0].samples += [{"value": 50.0}, {"value": 900.0}]
    result.outcomes[1].samples += [{"value": 100.0}, {"value": 1000.0}]
    verdict = PairedAtLeast("ours", 0.9, "floor").judge(result)
    assert (verdict.measured, verdict.reached) == ("0.90x (0.50 to 1.00)", True)
    assert PairedAtLeast("ours", 0.91, "floor").judge(result).reached is False
    assert PairedAtLeast("ours", 0.9, "nobody").judge(result).reached is None


def test_flat_means_within_a_share_of_the_smallest():
    result = result_of(a=100, b=105, c=102)
    assert Flat(("a", "b", "c"), 0.06).judge(result).reached is True
    assert Flat(("a", "b", "c"), 0.04).judge(result).reached is False
    assert Flat(("a", "d"), 0.04).judge(result).reached is None


def test_prepared_files_are_there_for_every_contender_and_gone_afterwards(monkeypatch):
    seen = []

    def measure(workload, contender, rows, verify, folder):
        seen.append((folder, (folder / "rows").stat().st_size))
        return {"value": 1.0}

    monkeypatch.setattr(runner, "measure", measure)
    entry = Contender("ours", "numpy", measure=lambda task: {})
    workload = Workload(
        "w",
        "w",
        ROWS_PER_SECOND,
        (entry,),
        rows=9,
        quick_rows=5,
        prepare=lambda folder, rows: big_rows.write(folder / "rows", rows),
    )
    runner.run(workload, [entry], rounds=2, quick=True, report=lambda where, outcome: None)
    (folder, size), again = seen
    assert again == (folder, size) == (folder, 5 * big_rows.ROW)
    assert not folder.exists()


def test_shuffled_rows_of_a_file_are_checked(tmp_path):
    big_rows.write(tmp_path / "rows", 5000)
    rows = np.array(big_rows.mapped(tmp_path / "rows"))
    order = np.random.default_rng(1).permutation(5000)

    def consume(some):
        return big_rows.consume_shuffled(np.array_split(some, 20), 5000)

    assert consume(rows[order]) > 0
    with pytest.raises(WrongData, match="stayed"):
        consume(rows)
    with pytest.raises(WrongData, match="different ones"):
        consume(rows[np.where(order == 7, 8, order)])
    torn = rows[order]
    torn[10, -8:] = torn[11, -8:]
    with pytest.raises(WrongData, match="parts of others"):
        consume(torn)


def test_a_contender_that_is_killed_is_reported_by_its_signal():
    code = "import os, signal; os.kill(os.getpid(), signal.SIGABRT)"
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert runner._ended(done.returncode) == "killed by SIGABRT: "
    assert runner._ended(1) == ""


def test_median_and_lead_come_from_all_rounds():
    result = result_of(ours=100, peer=10)
    result.outcomes[0].samples += [{"value": 300.0}, {"value": 40.0}]
    assert result.value("ours") == 100
    assert result.outcomes[0].spread == (40, 300)
    assert result.ahead("ours", "peer") == 10


def test_import_times_are_read_from_the_interpreters_log():
    log = (
        "import time: self [us] | cumulative | imported package\n"
        "import time:       120 |       2500 |     numpy\n"
        "import time:       100 |       2600 |   forebay\n"
    )
    assert import_time.cumulative_ms(log) == {"numpy": 2.5, "forebay": 2.6}


def test_every_target_names_a_contender_of_its_workload():
    for workload in WORKLOADS:
        names = {entry.name for entry in workload.contenders}
        for target in workload.targets:
            named = {getattr(target, key, None) for key in ("subject", "usual", "other")} - {None}
            assert named | set(getattr(target, "subjects", ())) <= names
        assert set(workload.ratios_of) <= names
