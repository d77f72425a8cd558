"""What a workload declares: who runs, on how many rows, and what Forebay is meant to reach."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

Sample = dict[str, Any]
"""One measurement. ``value`` is in the workload's unit; the other keys are kept as raw facts."""

MB = 1_000_000


@dataclass(frozen=True)
class Task:
    """What the child process is asked to do."""

    rows: int
    verify: bool
    """Check every row that comes out, after the timed part."""
    folder: Path | None = None
    """Where the workload's files are, if it prepares any."""

    @property
    def files(self) -> Path:
        """The same for those who need it."""
        if self.folder is None:
            raise ValueError("this workload has prepared no files")
        return self.folder


@dataclass(frozen=True)
class Contender:
    """One library in one setting. ``measure`` runs in a fresh interpreter and imports the library itself."""

    name: str
    library: str
    measure: Callable[[Task], Sample]
    note: str = ""
    rows: int | None = None
    """Fewer rows than the workload's, where the library is so slow that a whole run says no more."""
    reference: bool = False
    """Shown for orientation: it does not do quite the same work, so no target is judged against it."""


@dataclass(frozen=True)
class Unit:
    """How values read. Throughput is better when higher, latency when lower."""

    name: str
    higher_is_better: bool


ROWS_PER_SECOND = Unit("rows/s", higher_is_better=True)
MILLISECONDS = Unit("ms", higher_is_better=False)


@dataclass(frozen=True)
class Verdict:
    """How a target came out. ``reached`` is None where there is nothing to judge (a peer is missing)."""

    target: str
    measured: str
    reached: bool | None


class Figures(Protocol):
    """The medians a target may ask for; None for a contender that did not run."""

    def value(self, contender: str) -> float | None: ...

    def values(self, contender: str) -> list[float]: ...

    def fact(self, contender: str, key: str) -> Any: ...

    def fastest(self, library: str) -> str | None: ...


class Target(Protocol):
    def judge(self, figures: Figures) -> Verdict: ...


@dataclass(frozen=True)
class TimesFaster:
    """``subject`` reaches ``times`` the throughput of ``library``.

    ``usual`` is the contender that shows the library as its documentation uses it. A hand-tuned setting may
    be faster still: a target counts as reached only if it holds against the library's fastest contender,
    and the report says so when it holds against the usual one alone.
    """

    subject: str
    times: float
    library: str
    usual: str

    def judge(self, figures: Figures) -> Verdict:
        text = f"{self.subject}: at least {self.times:g}x {self.usual}"
        ours, usual = figures.value(self.subject), figures.value(self.usual)
        best_name = figures.fastest(self.library)
        if ours is None or usual is None or best_name is None:
            return Verdict(text, "not measured", None)
        best = figures.value(best_name)
        assert best is not None
        measured = f"{ours / usual:.2f}x"
        if best_name != self.usual:
            measured += f"; {ours / best:.2f}x the faster '{best_name}'"
        if ours / usual >= self.times > ours / best:
            measured += " (reached against the usual setting only)"
        return Verdict(text, measured, ours / best >= self.times)


@dataclass(frozen=True)
class AtLeast:
    """``subject`` reaches ``times`` the throughput of one other contender, of whatever library."""

    subject: str
    times: float
    other: str

    def judge(self, figures: Figures) -> Verdict:
        text = f"{self.subject}: at least {self.times:g}x {self.other}"
        ours, others = figures.value(self.subject), figures.value(self.other)
        if ours is None or others is None:
            return Verdict(text, "not measured", None)
        return Verdict(text, f"{ours / others:.2f}x", ours / others >= self.times)


@dataclass(frozen=True)
class PairedAtLeast:
    """In the median of the rounds, ``subject`` reaches ``times`` the throughput of ``other`` in the same round.

    For floors that move with the state of the disk from round to round, as medians of either alone would not tell.
    """

    subject: str
    times: float
    other: str

    def judge(self, figures: Figures) -> Verdict:
        text = f"{self.subject}: at least {self.times:g}x {self.other}, round by round"
        ratios = [a / b for a, b in zip(figures.values(self.subject), figures.values(self.other))]
        if not ratios:
            return Verdict(text, "not measured", None)
        middle = statistics.median(ratios)
        return Verdict(text, f"{middle:.2f}x ({min(ratios):.2f} to {max(ratios):.2f})", middle >= self.times)


@dataclass(frozen=True)
class Flat:
    """The medians of all these contenders lie within ``share`` of the smallest."""

    subjects: tuple[str, ...]
    share: float

    def judge(self, figures: Figures) -> Verdict:
        text = f"{', '.join(self.subjects)}: within {self.share:.0%}"
        found = [value for name in self.subjects if (value := figures.value(name)) is not None]
        if len(found) < len(self.subjects):
            return Verdict(text, "not measured", None)
        apart = max(found) / min(found) - 1
        return Verdict(text, f"{apart:.1%}", apart <= self.share)


@dataclass(frozen=True)
class ValueAbove:
    """The contender's median is ``limit`` or more."""

    subject: str
    limit: float
    unit: str
    what: str

    def judge(self, figures: Figures) -> Verdict:
        text = f"{self.subject}: {self.what} at least {self.limit:g} {self.unit}"
        got = figures.value(self.subject)
        if got is None:
            return Verdict(text, "not measured", None)
        return Verdict(text, f"{got:.3g} {self.unit}", got >= self.limit)


@dataclass(frozen=True)
class ValueBelow:
    """The contender's median, or its named fact divided by ``scale``, stays below ``limit``."""

    subject: str
    limit: float
    unit: str
    what: str
    fact: str | None = None
    scale: float = 1.0

    def judge(self, figures: Figures) -> Verdict:
        text = f"{self.subject}: {self.what} below {self.limit:g} {self.unit}"
        got = figures.value(self.subject) if self.fact is None else figures.fact(self.subject, self.fact)
        if got is None:
            return Verdict(text, "not measured", None)
        got /= self.scale
        return Verdict(text, f"{got:.3g} {self.unit}", got < self.limit)


@dataclass(frozen=True)
class Empty:
    """The contender's named fact, a list, has nothing in it."""

    subject: str
    fact: str
    what: str

    def judge(self, figures: Figures) -> Verdict:
        got = figures.fact(self.subject, self.fact)
        text = f"{self.subject}: {self.what}"
        if got is None:
            return Verdict(text, "not measured", None)
        return Verdict(text, ", ".join(got) or "none", not got)


@dataclass(frozen=True)
class Workload:
    """One file under ``bench/workloads`` declares one or more of these as ``WORKLOADS``."""

    name: str
    title: str
    unit: Unit
    contenders: tuple[Contender, ...]
    targets: tuple[Target, ...] = ()
    rows: int = 0
    quick_rows: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    ratios_of: tuple[str, ...] = ("forebay",)
    """The contenders whose lead over each of the others is shown."""
    notes: str = ""
    prepare: Callable[[Path, int], None] | None = None
    """Makes the files that all contenders read, for so many rows, in a folder that is deleted after the workload."""

    def __post_init__(self) -> None:
        names = [contender.name for contender in self.contenders]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: contenders need distinct names, got {names}")

    def contender(self, name: str) -> Contender:
        """The contender of that name."""
        for each in self.contenders:
            if each.name == name:
                return each
        raise KeyError(f"{self.name} has no contender {name!r}")

    def rows_for(self, contender: Contender, quick: bool) -> int:
        """How many rows this contender processes."""
        rows = self.quick_rows if quick else self.rows
        return rows if contender.rows is None else min(rows, contender.rows)
