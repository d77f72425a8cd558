"""``forebay demo`` as a user starts it: a process of its own, its output in a pipe."""

import mmap
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forebay as fb
from forebay.cli.demo_data import Written
from forebay.cli.demo_memory import MemoryMeter
from forebay.cli.demo_report import Outcome
from forebay.cli.demo_train import Training

COMMAND = [sys.executable, "-c", "from forebay.cli import app; app()", "demo"]
# What a terminal would need is asked for by none of these, so no control character may come out.
PLAIN = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")}


def run(folder: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run([*COMMAND, "--dir", str(folder), *options], capture_output=True, text=True, env=PLAIN)
    return done.returncode, done.stdout + done.stderr


def joined(output: str) -> str:
    return " ".join(output.split())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    folder = tmp_path_factory.mktemp("demo")
    return *run(folder, "--megabytes", "8"), folder


def test_runs_to_the_end_and_leaves_nothing(small: tuple[int, str, Path]) -> None:
    code, output, folder = small
    assert code == 0, output
    assert list(folder.iterdir()) == []


def test_summary(small: tuple[int, str, Path]) -> None:
    said = joined(small[1])
    assert "7,812 rows, 8.0 MB on disk, 0.1 times the budget" in said
    assert "Epoch 1/2" in said
    assert "Epoch 2/2" in said
    assert re.search(r"Training [\d,]+ rows/s \(\d+ MB/s\).*: 15,312 rows in \d+\.\d s", said)
    assert re.search(r"the process grew by \d+\.\d MB at its peak: \d+% of the budget of 128 MB", said)
    assert "uniform over all 7,656 training rows, without a buffer" in said
    assert "each was counted exactly once" in said
    # 30 batches an epoch: stopped after 15, and the other 15 are compared.
    assert re.search(r"stopped after batch 15 of epoch 2: the state on disk takes \d{3} bytes", said)
    assert "15 of 15 batches that followed were the same to the byte" in said
    for step in ("explain()", "README.md", "make bench"):
        assert step in said


def test_model_learns(small: tuple[int, str, Path]) -> None:
    found = re.search(r"([\d.]+)% right on 156 rows", joined(small[1]))
    assert found is not None
    assert float(found[1]) > 75


def test_output_in_a_pipe_is_plain(small: tuple[int, str, Path]) -> None:
    assert set(re.findall(r"[\x00-\x1f\x7f]", small[1])) == {"\n"}


def test_says_so_when_over_budget(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--rows", "20000", "--budget", "1", "--epochs", "1")
    assert code == 1
    assert re.search(r"Over budget: the process grew by \d+ MB, 1 MB were allowed", joined(output))
    assert list(tmp_path.iterdir()) == []


def test_asks_for_room_before_writing(tmp_path: Path) -> None:
    code, output = run(tmp_path, "--megabytes", "1000000000")
    assert code == 1
    assert re.search(r"is short of [\d,]+ MB", joined(output))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "line", "options"),
    [
        (signal.SIGINT, "Epoch 1/", ["--rows", "2000"]),
        (signal.SIGINT, "Writing", ["--megabytes", "500"]),
        (signal.SIGTERM, "Epoch 1/", ["--rows", "2000"]),
    ],
)
def test_stopped_in_the_middle(tmp_path: Path, number: signal.Signals, line: str, options: list[str]) -> None:
    command = [*COMMAND, "--dir", str(tmp_path), "--epochs", "1000000", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=PLAIN) as process:
        assert process.stdout is not None
        before = ""
        while line not in before:
            said = process.stdout.readline()
            assert said, before
            before += said
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(number)
        after = process.stdout.read()
    assert process.returncode == 128 + number, after
    assert "the temporary data has been removed" in joined(after)
    assert "Traceback" not in after
    assert list(tmp_path.iterdir()) == []


def test_meter_sees_memory_that_is_given_back() -> None:
    size = 64_000_000
    with MemoryMeter() as meter:
        # Not from the heap, where there may be as much that other tests have freed.
        block = mmap.mmap(-1, size)
        block.write(b"x" * size)
        # Bounded, so that a meter that never looks is a failure and not a hang.
        for _ in range(20_000_000):
            if meter.peak_growth >= 0.9 * size:
                break
        block.close()
    assert meter.peak_growth >= 0.9 * size


def test_every_broken_promise_is_named() -> None:
    training = Training(fb.Dataset.range(1), 1, Path(), expected=["a", "b"], every_row_once=False)
    outcome = Outcome(
        budget=1_000_000,
        epochs=1,
        written=Written(1, 1, 1.0),
        training=training,
        held=1,
        accuracy=1.0,
        peak=2_000_000,
        state_size=1,
        same_batches=1,
        resume_seconds=0.0,
    )
    assert outcome.problems() == [
        "Over budget: the process grew by 2 MB, 1 MB were allowed.",
        "Rows were lost or came twice: not every row was seen exactly once in each epoch.",
        "The resumed run differed: 1 of 2 batches were the same.",
    ]
