"""The course of memory as a picture."""

import os
from os import PathLike
from typing import Any

from forebay.errors import PlanError
from forebay.observe.bins import Curve
from forebay.observe.judge import Readings
from forebay.observe.verdict import Verdict
from forebay.storage.input_file import file_error
from forebay.storage.output import check_folder_of

_MIB = 1 << 20
# Less would have what heaps do by themselves look like a cliff.
_LEAST_SPAN = 16.0
_WITHOUT = ("without buffers of datasets", "without mapped files and buffers of datasets")
_COLOURS = {"plateau": "tab:green", "growth": "tab:blue", "leak": "tab:red", "unclear": "tab:gray"}


def plot(
    path: str | PathLike[str], verdict: Verdict, steps: Curve, readings: Readings, children: Curve, marks: list[int]
) -> None:
    """Draw it into a file; `steps` are readings of resident memory."""
    named = bool(path) if isinstance(path, (str, bytes)) else isinstance(path, PathLike)
    # What can be written to is as good for matplotlib.
    if not named and not hasattr(path, "write"):
        raise PlanError(f'plot(path={path!r}): path must be the name of a file, such as "memory.png"')
    try:
        # Not pyplot, which would choose a backend for the whole program.
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "w.plot() draws with matplotlib: pip install matplotlib, or pip install forebay[plot]"
        ) from error
    figure = Figure(figsize=(9, 5), layout="constrained")
    if named:
        path = os.fsdecode(path)
        check_folder_of(path)
        kinds = figure.canvas.get_supported_filetypes()
        ending = os.path.splitext(path)[1][1:].lower()
        if ending and ending not in kinds:
            raise PlanError(f"plot(path={path!r}): no picture is called .{ending}: use .png, .svg or .pdf")
    axes: Any = figure.subplots()
    colour = _COLOURS[verdict.kind]
    if len(steps):
        axes.fill_between(steps.x, steps.low / _MIB, steps.high / _MIB, color=colour, alpha=0.25, linewidth=0)
        axes.plot(steps.x, steps.low / _MIB, color=colour, label="this process")
        if verdict.stages or verdict.mostly_files:
            rest = readings.rest.steps
            axes.plot(rest.x, rest.low / _MIB, color="tab:orange", label=_WITHOUT[verdict.mostly_files])
        if readings.live is not None and len(readings.live.epochs):
            left = readings.live.epochs
            at = (left.x + 1) * readings.live.steps_per_epoch
            axes.plot(at, left.low / _MIB, "o", color="tab:cyan", markersize=4, label="in use after an epoch")
        after = steps.between(verdict.warm_up)
        if len(after) and verdict.where == "process" and verdict.confidence:
            middle = float((after.low - verdict.bytes_per_step * after.x).mean())
            line = (verdict.bytes_per_step * after.x + middle) / _MIB
            axes.plot(after.x, line, "--", color="black", linewidth=1, label="slope")
        axes.axvspan(0, verdict.warm_up, color="black", alpha=0.06, linewidth=0, label="warm-up")
        if len(children) and children.high.max() > 0:
            # Looked at by the clock, so it is spread over the steps.
            at = children.x * (steps.x[-1] + 1) / (children.x[-1] + 1)
            axes.plot(at, children.low / _MIB, color="tab:purple", label="child processes")
    for mark in marks if len(marks) <= 100 else []:
        axes.axvline(mark - 0.5, color="black", linestyle=":", linewidth=0.6)
    low, high = axes.get_ylim()
    if high - low < _LEAST_SPAN:
        low = max(0.0, (low + high - _LEAST_SPAN) / 2)
        axes.set_ylim(low, low + _LEAST_SPAN)
    axes.set_xlabel(f"{verdict.unit}s")
    axes.set_ylabel("memory, MiB")
    axes.set_title(f"{verdict.kind}: {verdict.reason}", fontsize=10, wrap=True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize=8)
    try:
        figure.savefig(path)
    except OSError as error:
        if not named:
            raise
        raise file_error(str(path), error) from error
