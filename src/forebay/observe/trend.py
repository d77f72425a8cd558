"""Does a noisy series rise, and does it go on rising? Statistics that a few wild samples cannot turn.

Memory readings are bad material for least squares: they jump (an allocator takes 64 MiB at once), they have spikes
(a temporary array), and neighbouring readings depend on each other, so that ordinary tests find a trend in everything.
Hence three choices:

- **Few, long groups.** A run is cut into 16 groups of steps, or into its epochs once there are six. A group counts with
  the lower quartile of its readings: what is still there when temporaries are gone. Groups this long hardly depend on
  each other, and an epoch cancels whatever fills and drains within it.
- **Theil-Sen slope**: the median of the slopes between all pairs of groups. A third of the groups can be wild without
  moving it far. Sen's interval gives its limits.
- **Mann-Kendall test**: how many pairs rise rather than fall, compared with chance. It asks nothing of the noise but
  that it has no direction. Its tau (the share of rising pairs, less that of falling ones) is also what tells a lasting
  rise from one or two jumps: these leave most pairs level.

The test alone would call warm-up and jumps a rise, so ``Trend`` also tells the slopes of the first and the last part,
and in how many places the series climbs.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GROUPS = 16
_PART = 7  # Of 16 groups; fewer give too few pairs for a median that noise leaves alone.
_NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class Trend:
    """How a series goes.

    Args:
        slope: Theil-Sen, in units of y per unit of x.
        low: lower limit of the slope's 95 % interval.
        high: its upper limit.
        early: the slope of the first part alone.
        late: that of the last part.
        climbs: the share of groups that lie clearly above the one before, by a fifth of what an even rise would give.
        tau: between -1 (every pair falls) and 1 (every pair rises).
        p: how likely at least so many rising pairs would be by chance.
        noise: median distance of groups from the line.
        span: how much of x was looked at.
        groups: how many groups there were.
    """

    slope: float
    low: float
    high: float
    early: float
    late: float
    climbs: float
    tau: float
    p: float
    noise: float
    span: float
    groups: int

    @property
    def rise(self) -> float:
        """By how much y rose over the span."""
        return self.slope * self.span

    @property
    def slows(self) -> bool:
        """Whether the last part rises clearly less than the first, by more than noise moves the slope of a part."""
        lost = (self.early - self.late) * self.span * _PART / GROUPS
        return self.late < 0.55 * self.early and lost > 6 * self.noise

    @property
    def late_rise(self) -> float:
        """By how much y would have risen over the span at the rate of its last part."""
        return self.late * self.span


def trend(x: Floats, y: Floats) -> Trend:
    """The trend of grouped values; at least three.

    >>> import numpy as np
    >>> found = trend(np.arange(10.0), np.array([0, 2, 4, 6, 99, 10, 12, 14, 16, 18.0]))
    >>> found.slope, round(found.tau, 2), found.p < 0.01
    (2.0, 0.78, True)
    """
    slopes = _pair_slopes(x, y)
    slope = float(np.median(slopes))
    tau, p, deviation = mann_kendall(y)
    line = slope * x
    rest = y - line
    # Sen's interval: the ranks of slopes between which the true one lies.
    margin = _NORMAL_95 * deviation
    ranked = np.sort(slopes)
    below = max(0, math.floor((len(ranked) - margin) / 2))
    above = min(len(ranked) - 1, math.ceil((len(ranked) + margin) / 2))
    part = max(3, math.ceil(len(x) * _PART / GROUPS))
    return Trend(
        slope=slope,
        low=float(ranked[below]),
        high=float(ranked[above]),
        early=float(np.median(_pair_slopes(x[:part], y[:part]))),
        late=float(np.median(_pair_slopes(x[-part:], y[-part:]))),
        climbs=float(np.mean(np.diff(y) > 0.2 * slope * np.diff(x))),
        tau=tau,
        p=p,
        noise=float(np.median(np.abs(rest - np.median(rest)))),
        span=float(x[-1] - x[0]) * len(x) / (len(x) - 1),
        groups=len(x),
    )


def mann_kendall(y: Floats) -> tuple[float, float, float]:
    """tau, the one-sided p of a rise, and the standard deviation of the number of rising less falling pairs.

    >>> import numpy as np
    >>> tau, p, _ = mann_kendall(np.arange(8.0))
    >>> tau, p < 0.001
    (1.0, True)
    """
    n = len(y)
    first, second = np.triu_indices(n, 1)
    score = float(np.sign(y[second] - y[first]).sum())
    ties = np.unique(y, return_counts=True)[1].astype(np.float64)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    deviation = math.sqrt(variance)
    if deviation == 0:
        return 0.0, 1.0, 0.0
    # One pair off, since the score moves in steps of two; a score of nothing is no evidence either way.
    z = (score - math.copysign(1, score)) / deviation if score else 0.0
    return score / (n * (n - 1) / 2), 0.5 * math.erfc(z / math.sqrt(2)), deviation


def grouped(x: Floats, y: Floats, groups: int = GROUPS) -> tuple[Floats, Floats]:
    """Readings in order, cut into groups of equal length: the middle and the lower quartile of each."""
    groups = min(groups, len(x))
    edges = np.linspace(0, len(x), groups + 1).round().astype(int)
    parts = list(pairwise(edges))
    middles = np.array([x[a:b].mean() for a, b in parts])
    return middles, np.array([np.quantile(y[a:b], 0.25) for a, b in parts])


def _pair_slopes(x: Floats, y: Floats) -> Floats:
    first, second = np.triu_indices(len(x), 1)
    slopes: Floats = (y[second] - y[first]) / (x[second] - x[first])
    return slopes
