"""What a run found: medians, ratios and verdicts, as the tables, the JSON and the chart all read them."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.spec import Contender, Sample, Unit, Verdict, Workload

DISTRIBUTIONS = ("forebay", "numpy", "tensorflow-cpu", "torch", "grain", "datasets", "pyarrow")


@dataclass
class Outcome:
    """One contender's samples over the rounds, or why there are none."""

    contender: Contender
    rows: int
    samples: list[Sample] = field(default_factory=list)
    problem: str = ""

    @property
    def median(self) -> float | None:
        return statistics.median(self._values) if self.samples else None

    @property
    def spread(self) -> tuple[float, float] | None:
        return (min(self._values), max(self._values)) if self.samples else None

    @property
    def first(self) -> float | None:
        """What the epoch reached in which workers were started, where that one is kept apart."""
        firsts = [sample["first_value"] for sample in self.samples if "first_value" in sample]
        return statistics.median(firsts) if firsts else None

    @property
    def cpu(self) -> float | None:
        """Microseconds of CPU for each row, workers included: what is left of a comparison on a busy machine."""
        found = [sample["cpu_us_per_row"] for sample in self.samples if "cpu_us_per_row" in sample]
        return statistics.median(found) if found else None

    @property
    def growth(self) -> float | None:
        """Bytes, the highest of the rounds: a budget is broken by the worst run, not by the typical one."""
        return max((s["growth_bytes"] for s in self.samples if "growth_bytes" in s), default=None)

    @property
    def _values(self) -> list[float]:
        return [sample["value"] for sample in self.samples]


@dataclass
class WorkloadResult:
    """Every contender's outcome on one workload; answers what targets ask."""

    workload: Workload
    outcomes: list[Outcome]

    def outcome(self, contender: str) -> Outcome | None:
        return next((each for each in self.outcomes if each.contender.name == contender), None)

    def value(self, contender: str) -> float | None:
        outcome = self.outcome(contender)
        return outcome.median if outcome else None

    def values(self, contender: str) -> list[float]:
        """One for each round."""
        outcome = self.outcome(contender)
        return [sample["value"] for sample in outcome.samples] if outcome else []

    def fact(self, contender: str, key: str) -> Any:
        outcome = self.outcome(contender)
        if outcome is None or not outcome.samples:
            return None
        if key == "growth_bytes":
            return outcome.growth
        return outcome.samples[-1][key]

    def fastest(self, library: str) -> str | None:
        ran = [
            (outcome.median, outcome.contender.name)
            for outcome in self.outcomes
            if outcome.contender.library == library and not outcome.contender.reference and outcome.median is not None
        ]
        if not ran:
            return None
        return (max if self.workload.unit.higher_is_better else min)(ran)[1]

    def ahead(self, ours: str, peer: str) -> float | None:
        """How many times better than ``peer`` the contender ``ours`` did, by the medians of this run."""
        a, b = self.value(ours), self.value(peer)
        if not a or not b:
            return None
        return a / b if self.workload.unit.higher_is_better else b / a

    def verdicts(self) -> list[Verdict]:
        return [target.judge(self) for target in self.workload.targets]

    def as_json(self) -> dict[str, Any]:
        unit: Unit = self.workload.unit
        ours = self.workload.ratios_of
        return {
            "name": self.workload.name,
            "title": self.workload.title,
            "unit": unit.name,
            "higher_is_better": unit.higher_is_better,
            "rows": self.workload.rows,
            "parameters": dict(self.workload.parameters),
            "contenders": [
                {
                    "name": each.contender.name,
                    "library": each.contender.library,
                    "note": each.contender.note,
                    "reference": each.contender.reference,
                    "rows": each.rows,
                    "problem": each.problem,
                    "median": each.median,
                    "spread": each.spread,
                    "first_epoch": each.first,
                    "growth_bytes": each.growth,
                    "forebay_ahead": {name: self.ahead(name, each.contender.name) for name in ours},
                    "samples": each.samples,
                }
                for each in self.outcomes
            ],
            "targets": [asdict(verdict) for verdict in self.verdicts()],
        }


def machine() -> dict[str, Any]:
    """Facts that figures depend on; nothing that says whose machine it is."""
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def versions() -> dict[str, str]:
    """What is installed, by distribution name."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@dataclass
class Run:
    """One run of the suite."""

    rounds: int
    quick: bool
    results: list[WorkloadResult] = field(default_factory=list)
    date: str = field(default_factory=lambda: datetime.datetime.now().astimezone().isoformat("T", "seconds"))
    machine: dict[str, Any] = field(default_factory=machine)
    versions: dict[str, str] = field(default_factory=versions)

    def others_share(self) -> float:
        """The mean share of the machine that went to other processes while contenders were timed."""
        shares = [
            sample["others_share"]
            for result in self.results
            for outcome in result.outcomes
            for sample in outcome.samples
            if "others_share" in sample
        ]
        return statistics.mean(shares) if shares else 0.0

    def save(self, path: Path) -> None:
        """Write everything, raw samples included, so that a figure can be traced to what it came from."""
        content = {
            "date": self.date,
            "machine": self.machine,
            "versions": self.versions,
            "rounds": self.rounds,
            "quick": self.quick,
            "others_share": self.others_share(),
            "workloads": [result.as_json() for result in self.results],
        }
        partial = path.with_suffix(".tmp")
        partial.write_text(json.dumps(content, indent=1) + "\n")
        partial.replace(path)
