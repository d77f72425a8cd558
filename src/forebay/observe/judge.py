"""From series of readings to plateau, growth or leak.

A series *rises lastingly* if, after warm-up (the first epoch if a second has ended, otherwise the first quarter),

- at least 85 of 100 pairs of groups rise (tau >= 0.7) and chance would do that less than once in a hundred times,
- it rose by more than ``FLOOR`` and by more than its noise,
- its last part rises at no less than 0.55 of the rate of its first: what levels off may be no leak,
- it climbs in at least 4 of 10 places: a few jumps are no leak,
- where epochs are known, an epoch leaves at least half of its rise behind: what fills and drains again is no leak.

A **leak** is a lasting rise both of the process and of what remains of it when the buffers of running Forebay datasets
are taken off. If only the former rises, or if these buffers make up most of the highest growth since the watch began,
it is **growth** with a known end. A rise that slows down or came in a few jumps is **unclear**, and so is one of less
than 12 MiB beside a running dataset, as long as there are too few epochs to compare. All else is a **plateau**, however
high: an allocator that keeps freed memory, for example.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from forebay.observe.bins import Curve
from forebay.observe.trend import GROUPS, Trend, grouped, mann_kendall, trend
from forebay.observe.verdict import Kind

FLOOR = 2 << 20  # Interpreters take and return memory a mebibyte at a time; less than two such is not worth a word.
# What datasets, and allocators below them, come to keep for their next blocks in the first epochs.
_OWN = 12 << 20
_SHARE = 0.5  # Of all growth, for buffers to be the explanation.
_WARM_UP = 0.25
_EPOCHS = 8  # From so many on, epochs are the groups: the first is warm-up, and seven make a test with some power.

Course = Literal["level", "rising", "slowing", "jumping", "short"]


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity over a run: per step, and the lowest of each epoch. `first` is the step at which epoch 1 began."""

    steps: Curve
    epochs: Curve
    first: int | None = None
    steps_per_epoch: float = 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """How one series goes, and the trend behind that; None if it is too short."""

    course: Course
    trend: Trend | None = None
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a process."""

    kind: Kind
    finding: Finding


def judge(memory: Series, unexplained: Series, grown: int, held: int) -> Judgement:
    """Tell the kind.

    Args:
        memory: the process's memory.
        unexplained: the same without what buffers hold.
        grown: how much more memory there was, at the most, than when the watch began.
        held: the most that buffers held.
    """
    found = follow(memory)
    rest = follow(unexplained)
    if found.course == "short":
        return Judgement("unclear", found)
    if found.course == "rising" and rest.course == "rising":
        if rest.trend is not None and held and rest.trend.rise < _OWN and len(memory.epochs) < _EPOCHS:
            return Judgement("unclear", rest)
        return Judgement("leak", rest if rest.confidence < found.confidence else found)
    buffers_explain = grown > 2 * FLOOR and held >= _SHARE * grown
    if found.course != "level":
        return Judgement("growth" if rest.course == "level" or buffers_explain else "unclear", found)
    return Judgement("growth" if buffers_explain else "plateau", found)


def follow(series: Series) -> Finding:
    """How a series goes once it has warmed up."""
    found = _trend_after_warm_up(series)
    if found is None:
        return Finding("short")
    groups, line = found
    significant = line.p < 0.01 and line.rise > max(FLOOR, 4 * line.noise)
    if significant and line.low > 0 and line.tau >= 0.7 and _carried_over(series, line):
        if line.late < 0.55 * line.early:
            if line.late_rise > FLOOR:
                return Finding("slowing", line, 1 - line.p)
        elif line.climbs >= 0.4 or _each_epoch_adds(series):
            return Finding("rising", line, 1 - line.p)
        else:
            return Finding("jumping", line, 1 - line.p)
    # Level: the same test, asked whether the series stays behind one that rises by just the floor.
    least = max(FLOOR, 4 * line.noise)
    behind = least * np.linspace(0, 1, line.groups) - groups.low
    # What rose at first and is level since is judged by its second half; twice, for having asked twice.
    p = min(1.0, 2 * min(mann_kendall(behind)[1], mann_kendall(behind[line.groups // 2 :])[1]))
    if min(line.rise, line.late_rise) > least and p > 0.5 and _carried_over(series, line):
        return Finding("jumping", line, p)  # Neither steady enough for a leak nor level.
    return Finding("level", line, 1 - p)


def warm_up_end(series: Series) -> float:
    """The step from which on a series is judged."""
    total = series.steps.x[-1] + 1 if len(series.steps) else 0.0
    if series.first is not None and len(series.epochs) >= 2:
        after = len(series.steps.between(series.first))
        if after >= GROUPS:
            return float(series.first)
    return float(_WARM_UP * total)


def _trend_after_warm_up(series: Series) -> tuple[Curve, Trend] | None:
    if len(series.epochs) >= _EPOCHS:
        epochs = series.epochs.between(series.epochs.x[0] + 0.5)
        x, y = epochs.x * series.steps_per_epoch, epochs.low
    else:
        steps = series.steps.between(warm_up_end(series))
        if len(steps) < GROUPS:
            return None
        x, y = grouped(steps.x, steps.low)
    return Curve(x, y, y), trend(x, y)


def _carried_over(series: Series, line: Trend) -> bool:
    """Whether the rise within epochs is still there in the next; taken for granted where no two have ended."""
    lows = series.epochs.low
    if len(lows) < 2 or len(lows) >= _EPOCHS:
        return True
    if len(lows) > 2:
        # The first begins before there is anything.
        lows = lows[1:]
    between = float(lows[-1] - lows[0]) / (len(lows) - 1)
    return between >= 0.5 * line.slope * series.steps_per_epoch


def _each_epoch_adds(series: Series) -> bool:
    """Whether every epoch but the first left about the same behind: jumps of that kind do not end."""
    if len(series.epochs) < 4:
        return False
    left = np.diff(series.epochs.low)[1:]
    return bool((left >= 0.4 * np.median(left)).all() and np.median(left) > 0)
