"""The run as one picture: a panel of bars per workload, on a log scale, Forebay's lead beside each bar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.report import quantity
from bench.results import Outcome, Run, WorkloadResult

OURS, PEER, REFERENCE = "#0b6e99", "#b8b8b8", "#e3e3e3"


def draw(run: Run, path: Path) -> bool:
    """Write the chart; False where matplotlib is not installed or there is nothing to show."""
    results = [result for result in run.results if any(map(_drawable, result.outcomes))]
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    if not results:
        return False
    heights = [1.2 + 0.34 * sum(map(_drawable, result.outcomes)) for result in results]
    figure = Figure(figsize=(11, sum(heights) + 0.6), layout="constrained")
    panels = figure.subplots(len(results), 1, height_ratios=heights, squeeze=False)
    for panel, result in zip(panels[:, 0], results):
        _panel(panel, result)
    machine = run.machine
    figure.suptitle(
        f"Forebay and its peers, {run.date[:10]}: {machine['cpu']}, {machine['cores']} cores, "
        f"median of {run.rounds} rounds" + (" (quick: not meaningful)" if run.quick else ""),
        fontsize=11,
    )
    partial = path.with_suffix(".tmp")
    figure.savefig(partial, dpi=120, format="png")
    partial.replace(path)
    return True


def _drawable(outcome: Outcome) -> bool:
    """A cost that was lost in the noise may come out below zero, for which a log scale has no place."""
    return outcome.median is not None and outcome.median > 0


def _panel(panel: Any, result: WorkloadResult) -> None:
    unit = result.workload.unit
    ran = [outcome for outcome in result.outcomes if _drawable(outcome)]
    ran.sort(key=lambda outcome: outcome.median or 0, reverse=not unit.higher_is_better)
    names = [outcome.contender.name for outcome in ran]
    values = [outcome.median or 0.0 for outcome in ran]
    colours = [OURS if o.contender.library == "forebay" else REFERENCE if o.contender.reference else PEER for o in ran]
    panel.barh(names, values, color=colours, height=0.7)
    for row, (outcome, value) in enumerate(zip(ran, values)):
        text = f"  {quantity(value, unit)} {unit.name}"
        lead = result.ahead("forebay", outcome.contender.name)
        if lead is not None and outcome.contender.library != "forebay":
            text += f"   forebay: {lead:.3g}x" + (" ahead" if lead >= 1 else "")
        panel.text(value, row, text, va="center", fontsize=8)
    panel.set_xscale("log")
    low, high = min(values), max(values)
    panel.set_xlim(low / 3, high * (high / low) ** 0.45 * 3)
    better = "higher" if unit.higher_is_better else "lower"
    panel.set_title(f"{result.workload.name}: {result.workload.title}", loc="left", fontsize=9, fontweight="bold")
    panel.set_xlabel(f"{unit.name}, log scale, {better} is better", fontsize=8)
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
