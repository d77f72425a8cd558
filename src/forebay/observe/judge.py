"""From series of readings to plateau, growth or leak.

A series *rises lastingly* if, after warm-up (the first epoch if a second has ended, otherwise the first quarter),

- at least 85 of 100 pairs of groups rise (tau >= 0.7) and chance would do that less than once in a hundred times,
- it rose by more than ``FLOOR`` and by more than its noise,
- its last part rises at no less than 0.55 of the rate of its first, or its noise is enough to make that difference:
  what levels off may be no leak,
- it climbs in at least 4 of 10 places: a few jumps are no leak,
- where epochs are known, an epoch leaves at least half of its rise behind: what fills and drains again is no leak.

That is asked of several series, since none of them is enough:

- *memory*: what is resident, less what came of files and of memory that is shared with other processes. A mark that
  goes up with every peak and seldom down, which is what the test takes for a trend: it cannot convict alone.
- *rest*: the same without the buffers of running Forebay datasets.
- *live*: what allocators say is in use, without what datasets have leased; between two epochs, when these hold nothing,
  it is exact to some KiB.
- *other*: what is resident without what allocators say they keep, and without what is *shared*.
- *shared*: files, which the system takes back when it needs room, and memory shared with others: what goes to and from
  worker processes of a dataset has an end, and what a program shares by itself leaves the verdict open if it rises.

A **leak** is a lasting rise of *live*: over eight epochs or more, or in a loop without datasets, by as little as
``FLOOR``; over fewer by at least ``ALONE``, and within a single one only if *rest* rises with it. Memory that no
allocator knows of is a leak if *memory*, *rest* and *other* all rise lastingly, by ``ALONE``, *other* by more than
buffers do; nothing else is known where allocators cannot be asked.

If *memory* rises and neither *rest* nor *live* does, or if buffers make up most of the highest growth since the watch
began, it is **growth** with a known end. If *memory* rises in whatever way while *live* is level, allocators keep what
was freed, which is a **plateau**. Any other rise is **unclear**, and all that is left is a plateau, however high.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from forebay.observe.bins import Curve
from forebay.observe.trend import GROUPS, Trend, grouped, mann_kendall, trend
from forebay.observe.verdict import Kind

FLOOR = 2 << 20  # Interpreters take and return memory a mebibyte at a time; less than two such is not worth a word.
# What datasets, and allocators below them, come to keep in the first epochs. A steady rise of 16 MiB in a run is one of
# 12 after the quarter that is warm-up.
ALONE = 12 << 20
SURE = 0.9  # Of a plateau, to say so without a reserve.
_SHARE = 0.5  # Of all growth, for buffers to be the explanation.
_WARM_UP = 0.25
_EPOCHS = 8  # From so many on, epochs are the groups: the first is warm-up, and seven make a test with some power.

Course = Literal["level", "rising", "slowing", "jumping", "short"]
Why = Literal["in use", "not in use", "kept", "buffers", "little", "shared", "course"]


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity over a run: per step, and for each epoch its lowest or what was left after it.

    `first` is the step at which epoch 1 began.
    """

    steps: Curve
    epochs: Curve
    first: int | None = None
    steps_per_epoch: float = 0.0


@dataclass(frozen=True, slots=True)
class Readings:
    """Memory of its own, the same without buffers, what is in use, what is neither kept nor shared, what is shared."""

    memory: Series
    rest: Series
    live: Series | None = None
    other: Series | None = None
    shared: Series | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """How one series goes, and the trend behind that; None if it is too short."""

    course: Course
    trend: Trend | None = None
    confidence: float = 0.0

    @property
    def rise(self) -> float:
        """By how much, if it rises lastingly."""
        return self.trend.rise if self.trend is not None and self.course == "rising" else 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a process, what it rests on, and which of the rules above it was."""

    kind: Kind
    finding: Finding
    why: Why = "course"


def judge(
    readings: Readings, grown: int, held: int, datasets: bool = False, workers: bool = False, foreign: int = 0
) -> Judgement:
    """Tell the kind.

    Args:
        readings: all series.
        grown: how much more memory there was, at the most, than when the watch began.
        held: the most that buffers held.
        datasets: whether Forebay datasets ran.
        workers: whether they did so on processes: these take up to a known amount of shared memory.
        foreign: how much more memory is shared with other processes, files aside.
    """
    found = _judge(readings, grown, held, datasets)
    shared = follow(readings.shared) if readings.shared is not None else None
    if workers or shared is None or shared.trend is None or found.kind not in ("plateau", "growth"):
        return found
    shares = shared.course != "level" and foreign > max(FLOOR, 0.25 * shared.trend.rise)
    return Judgement("unclear", shared, "shared") if shares else found


def _judge(readings: Readings, grown: int, held: int, datasets: bool) -> Judgement:
    found = follow(readings.memory)
    rest = follow(readings.rest)
    if found.course == "short":
        return Judgement("unclear", found)
    live = follow(readings.live) if readings.live is not None else None
    if live is not None and readings.live is not None:
        leak = _leak(readings.live, live, rest, datasets)
        # What was never written to takes no memory.
        if leak is not None and grown >= _SHARE * leak.rise:
            return Judgement("leak", leak, "in use")
    other = follow(readings.other) if readings.other is not None else None
    least = min(found.rise, rest.rise)
    if least >= ALONE and (other is None or _bears_out(other, least, found.rise - rest.rise)):
        return Judgement("leak", rest if rest.confidence < found.confidence else found, "not in use")
    if (live or rest).course == "rising":
        return Judgement("unclear", live or rest, "little")
    if grown > 2 * FLOOR and held >= _SHARE * grown:
        return Judgement("growth", found, "buffers")
    surely = live is None or (live.course == "level" and live.confidence > 0.5)
    if found.course != "level" and rest.course == "level" and surely:
        return Judgement("growth", found, "buffers")
    if live is None:
        return Judgement("plateau" if found.course == "level" else "unclear", found)
    if live.course == "level" and found.course == "level":
        return Judgement("plateau", live)
    if surely and _kept(readings, found, other):
        return Judgement("plateau", live, "kept")
    return Judgement("unclear", found)


def _bears_out(other: Finding, rise: float, buffers: float) -> bool:
    """Whether a rise is mostly there without what allocators keep: much of which is not resident, and so noise here."""
    line = other.trend
    return line is not None and line.p < 0.05 and line.rise - max(0.0, buffers) >= max(ALONE, _SHARE * rise)


def _kept(readings: Readings, found: Finding, other: Finding | None) -> bool:
    """Whether what allocators keep can be what rises: not if most of the rise is elsewhere, or epochs leave some."""
    assert readings.live is not None
    left = readings.live.epochs.low[1:]
    if 2 <= len(left) < _EPOCHS - 1 and left[-1] - left[0] > 2 * FLOOR:
        return False
    risen = 0.0 if other is None or other.trend is None else other.trend.rise
    return found.trend is not None and risen < max(FLOOR, 0.25 * found.trend.rise)


def _leak(series: Series, live: Finding, rest: Finding, datasets: bool) -> Finding | None:
    """How what is in use rises for good; None if it does not, or if a dataset may have come to keep it."""
    epochs = len(series.epochs)
    if live.rise:
        several = epochs > 2 or rest.course == "rising"
        return live if epochs >= _EPOCHS or not datasets or (live.rise >= ALONE and several) else None
    if 3 < epochs < _EPOCHS and _each_epoch_adds(series):
        # Too few epochs to make groups of, and within them more comes and goes than stays.
        x, y = series.epochs.x[1:] * series.steps_per_epoch, series.epochs.low[1:]
        line = trend(x, y)
        return Finding("rising", line, 1 - line.p) if y[-1] - y[0] >= ALONE else None
    return None


def follow(series: Series) -> Finding:
    """How a series goes once it has warmed up."""
    found = _trend_after_warm_up(series)
    if found is None:
        return Finding("short")
    groups, line = found
    significant = line.p < 0.01 and line.rise > max(FLOOR, 4 * line.noise)
    if significant and line.low > 0 and line.tau >= 0.7 and _carried_over(series, line):
        if line.slows:
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
