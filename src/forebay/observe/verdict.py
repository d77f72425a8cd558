"""What a watch has found out, as data."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["plateau", "growth", "leak", "unclear"]
# Of files in memory; starting a thread or loading a module brings some of their own.
WORTH_A_WORD = 8 << 20
# A rise of so much in a run, if there surely is one, whatever it may be of.
WORTH_NAMING = 1 << 18


@dataclass(frozen=True, slots=True)
class StageGrowth:
    """A step of a Forebay dataset that holds elements in a buffer.

    Args:
        name: the step, and the line it was written on.
        held: bytes in its buffer when it was last looked at.
        peak: the most that it held.
        full: how full the buffer was at its fullest, from 0 to 1: beyond 1 it does not grow.
    """

    name: str
    held: int
    peak: int
    full: float


@dataclass(frozen=True, slots=True)
class TypeGrowth:
    """Python objects of one type of which there are more than when the watch began.

    Args:
        name: the type.
        count: how many more.
        bytes: how much more memory they take: what arrays really hold, an estimate for other types.
    """

    name: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class HolderGrowth:
    """A container that kept taking in more.

    Args:
        name: what it is called where that can be told (``train.kept``), otherwise its type.
        before: its length when the watch began.
        length: its length at the end, or when most was kept.
        stage: the step of a Forebay dataset that keeps it, or whose function does, and the line it was written on.
        bytes: what arrays hold that are directly in it.
    """

    name: str
    before: int
    length: int
    stage: str | None = None
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class ChildGrowth:
    """A child process, and the memory that is its alone, when first and when last looked at."""

    pid: int
    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What ``watch`` says about a run. Sizes are in bytes.

    Args:
        kind: "plateau" (memory is level, perhaps after a warm-up), "growth" (it grew, and buffers with a known end
            account for it), "leak" (it grows and nothing known will stop it), "unclear" (too few steps, or growing
            ever more slowly).
        where: "process", or "children" if they are what the verdict is about.
        reason: the same in a sentence.
        bytes_per_step: slope after warm-up.
        bytes_per_epoch: the same per epoch; None if no epoch has ended.
        interval: limits within which the slope per step lies with a probability of 95 %.
        confidence: from 0 to 1: how unlikely the opposite is. See ``judge`` for the tests behind it.
        growing: whether memory was still rising at the end.
        unit: what a step is: "step", or "sample" if there was nothing to count and a thread looked at intervals.
        steps: how many there were.
        epochs: how many ended.
        baseline: memory of this process when the watch began.
        final: at the end.
        peak: at its highest.
        stages: steps of Forebay datasets that held elements, the largest first.
        types: Python types that grew, the largest first.
        holders: containers that grew, the fastest first.
        lines: lines of code whose allocations grew, if ``tracemalloc=True`` was asked for.
        children: child processes, those that grew most first.
        children_bytes_per_step: slope of their memory, all taken together.
        free: memory that can still be taken before the machine or container has no more.
        warm_up: the first step that counted for the slope.
        budget: what buffers of the datasets that ran may hold together (``Options.memory``); 0 if none ran.
        files: how much more of files was mapped, at the most, than when the watch began; the system takes that back.
    """

    kind: Kind
    where: Literal["process", "children"]
    reason: str
    bytes_per_step: float
    bytes_per_epoch: float | None
    interval: tuple[float, float]
    confidence: float
    growing: bool
    unit: Literal["step", "sample"]
    steps: int
    epochs: int
    baseline: int
    final: int
    peak: int
    stages: tuple[StageGrowth, ...] = ()
    types: tuple[TypeGrowth, ...] = ()
    holders: tuple[HolderGrowth, ...] = ()
    lines: tuple[str, ...] = ()
    children: tuple[ChildGrowth, ...] = ()
    children_bytes_per_step: float = 0.0
    free: int = 0
    warm_up: int = 0
    budget: int = 0
    files: int = 0

    @property
    def growth(self) -> int:
        """By how much this process has grown since the watch began."""
        return self.final - self.baseline

    @property
    def mostly_files(self) -> bool:
        """Whether most of the growth at its highest was files."""
        return self.files > max(WORTH_A_WORD, 0.5 * (self.peak - self.baseline))


def size(count: float) -> str:
    """Bytes as people say them.

    >>> size(512), size(2048), size(-5 * 2**20), size(3.2 * 2**30)
    ('512 B', '2.0 KiB', '-5.0 MiB', '3.2 GiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
