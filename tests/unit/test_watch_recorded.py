"""Real runs, recorded once: what ``fb.watch`` makes of them is the same for ever, on any machine.

``recorded_watch.json`` has the series of each, in KiB, with as many steps to a bin as make 64 of them: clean loops
that were called leaks when resident memory alone was asked, leaks large and small, and what was kept outside malloc.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forebay.observe.bins import Curve
from forebay.observe.judge import Judgement, Readings, Series, follow, judge

RUNS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "recorded_watch.json").read_text())


def curve(width: int, kib: list[int]) -> Curve:
    low = np.array(kib, np.float64) * 1024
    return Curve((np.arange(len(low)) + 0.5) * width - 0.5, low, low)


def readings(run: dict[str, Any]) -> Readings:
    def series(name: str) -> Series:
        steps, epochs = curve(*run[name]["steps"]), curve(1, run[name]["epochs"])
        return Series(steps, epochs, run["first"], run["steps_per_epoch"])

    return Readings(*map(series, ("memory", "rest", "live", "other", "shared")))


def judged(run: dict[str, Any]) -> Judgement:
    return judge(readings(run), run["grown"], run["held"], run["datasets"], run["workers"])


def runs(what: str) -> Any:
    those = [run for run in RUNS if run["what"] == what]
    return pytest.mark.parametrize("run", those, ids=[f"{run['name']}-{i}" for i, run in enumerate(those)])


@runs("clean")
def test_resident_memory_that_rises_without_a_leak(run: dict[str, Any]) -> None:
    found_in = readings(run)
    assert follow(found_in.memory).course == "rising"
    assert follow(found_in.rest).course == "rising"
    found = judged(run)
    assert (found.kind, found.why) == ("plateau", "kept")
    assert found.finding.confidence > 0.8


@runs("leak")
def test_a_leak_in_memory_that_allocators_know(run: dict[str, Any]) -> None:
    found = judged(run)
    assert (found.kind, found.why) == ("leak", "in use")


@runs("outside")
def test_a_leak_in_memory_that_they_do_not_know(run: dict[str, Any]) -> None:
    found = judged(run)
    assert (found.kind, found.why) == ("leak", "not in use")


@runs("small")
def test_a_small_leak_is_not_taken_for_a_plateau(run: dict[str, Any]) -> None:
    assert judged(run).kind in ("leak", "unclear")
