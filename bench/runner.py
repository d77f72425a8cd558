"""Runs contenders, each in a process of its own, interleaved over the rounds."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.results import Outcome, WorkloadResult
from bench.spec import Contender, Sample, Workload

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 900
NOT_INSTALLED = "not installed"

# Quiet, offline and on the CPU: what a library does about GPUs and hubs is not what is measured.
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
}


class ChildFailed(Exception):
    """The contender's process ended without a sample; the message is the last line it wrote."""


def measure(workload: Workload, contender: Contender, rows: int, verify: bool, folder: Path | None = None) -> Sample:
    """One sample from a fresh interpreter."""
    command = [sys.executable, "-m", "bench.child", workload.name, contender.name, str(rows)]
    if verify:
        command.append("--verify")
    if folder is not None:
        command.append(f"--folder={folder}")
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise ChildFailed(f"gave up after {TIMEOUT} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise ChildFailed(_ended(done.returncode) + (lines[-1].strip() if lines else f"exit code {done.returncode}"))
    sample: Sample = json.loads(done.stdout)
    return sample


def _ended(code: int) -> str:
    """How a process ended that did not end by itself."""
    return f"killed by {signal.Signals(-code).name}: " if code < 0 else ""


@contextmanager
def _prepared(workload: Workload, quick: bool) -> Iterator[Path | None]:
    """A folder with the workload's files. TMPDIR says on which disk."""
    if workload.prepare is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as name:
        workload.prepare(Path(name), workload.quick_rows if quick else workload.rows)
        yield Path(name)


def _installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ModuleNotFoundError:
        # What it is a part of is not there either.
        return False


def run(
    workload: Workload,
    contenders: Iterable[Contender],
    rounds: int,
    quick: bool,
    report: Callable[[str, Outcome], None],
) -> WorkloadResult:
    """Measure every contender once per round, A B C A B C: a slow spell of the machine hits them alike."""
    outcomes = [Outcome(each, workload.rows_for(each, quick)) for each in contenders]
    for outcome in outcomes:
        if not _installed(outcome.contender.library):
            outcome.problem = NOT_INSTALLED
    with _prepared(workload, quick) as folder:
        for index in range(rounds):
            for outcome in outcomes:
                report(f"{workload.name} round {index + 1}/{rounds}", outcome)
                if outcome.problem:
                    continue
                try:
                    sample = measure(workload, outcome.contender, outcome.rows, index == 0, folder)
                except ChildFailed as error:
                    outcome.problem = str(error)
                    outcome.samples.clear()
                else:
                    outcome.samples.append(sample)
    return WorkloadResult(workload, outcomes)
