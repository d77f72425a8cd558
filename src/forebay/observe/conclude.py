"""All that was gathered, put together into one verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from forebay.observe.bins import Curve
from forebay.observe.census import LARGE, Census, grown_types
from forebay.observe.children import Children
from forebay.observe.judge import FLOOR, Finding, Judgement, judge, warm_up_end
from forebay.observe.memory import free_memory
from forebay.observe.recorder import Recorder, Source
from forebay.observe.stages import Stages
from forebay.observe.verdict import HolderGrowth, Kind, TypeGrowth, Verdict, size

_SURE = 0.9  # Of a plateau, for containers that grew not to matter.


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a watch has gathered."""

    recorder: Recorder
    stages: Stages
    children: Children
    children_curve: Curve
    censuses: tuple[Census, ...]
    lines: tuple[str, ...]
    baseline: int
    final: int


def conclude(evidence: Evidence) -> Verdict:
    """The verdict; that on child processes if they leak and this one does not."""
    recorder = evidence.recorder
    readings = recorder.readings()
    stages = evidence.stages
    judged = judge(readings, recorder.peak - evidence.baseline, stages.peak, stages.budget > 0, stages.workers)
    steps, epochs = recorder.memory.count, recorder.epochs
    children = evidence.children.growth()
    below, children_slope = evidence.children.course()
    looks = evidence.children_curve.x[-1] + 1 if len(evidence.children_curve) else 1.0
    kind: Kind = judged.kind
    finding, in_children = judged.finding, below is not None and kind != "leak"
    if below is not None and in_children:
        kind, finding = "leak", below
    per_step = looks / max(steps, 1)
    line, scale = finding.trend, per_step if in_children else 1.0
    slope = line.slope * scale if line is not None else 0.0
    types, holders = _grown(evidence.censuses, recorder.peak - evidence.baseline, slope * steps)
    reason = _reason(judged, in_children, evidence, holders)
    if kind == "plateau" and holders and is_doubtful(finding, slope * steps, types):
        kind = "unclear"
        reason = f"{holders[0].name} kept growing, by less than memory goes up and down; a longer run will tell"
    return Verdict(
        kind=kind,
        where="children" if in_children else "process",
        reason=reason,
        bytes_per_step=slope,
        bytes_per_epoch=slope * recorder.steps_per_epoch if epochs else None,
        interval=(line.low * scale, line.high * scale) if line is not None else (0.0, 0.0),
        confidence=finding.confidence,
        growing=finding.course not in ("level", "short"),
        unit="sample" if recorder.source == Source.CLOCK else "step",
        steps=steps,
        epochs=epochs,
        baseline=evidence.baseline,
        final=evidence.final,
        peak=max(recorder.peak, evidence.final),
        stages=stages.growth(),
        types=types,
        holders=holders,
        lines=evidence.lines,
        children=children,
        children_bytes_per_step=children_slope * per_step,
        free=free_memory(),
        warm_up=int(warm_up_end(readings.memory)),
        budget=stages.budget,
    )


def is_doubtful(plateau: Finding, rise: float, types: tuple[TypeGrowth, ...]) -> bool:
    """Whether a container that grew may be a leak of less than memory goes up and down by.

    What is in it need not be known: of the graph behind a loss, Python sees the loss alone. Then the slope has to tell.
    """
    steady = plateau.trend is not None and plateau.trend.low > 0
    return plateau.confidence < _SURE and max(_bytes(types), rise if steady else 0.0) > FLOOR


def without_garbage(verdict: Verdict, garbage: int) -> Verdict:
    """The same, or left open if most of what grew was in circles of references and could be collected."""
    if garbage < verdict.bytes_per_step * verdict.steps / 2:
        return verdict
    reason = f"{size(garbage)} of what grew were in circles of references, which gc.collect() frees"
    return replace(verdict, kind="unclear", reason=reason)


def _grown(
    censuses: Sequence[Census], grown: int, rise: float
) -> tuple[tuple[TypeGrowth, ...], tuple[HolderGrowth, ...]]:
    """Since the beginning, by the end; or by when most was there, if what a loop kept has gone with it."""
    if len(censuses) < 2:
        return (), ()
    first, *rest = censuses
    found = [(grown_types(first, each, grown), each.holders) for each in rest]
    types, holders = found[-1]
    if holders or _bytes(types) >= 0.3 * rise:
        return types, holders
    for types, holders in reversed(found[:-1]):
        # While a dataset runs, lists of what is under way come and go; arrays in one are what to look for.
        large = tuple(each for each in holders if each.bytes >= LARGE)
        if large:
            return types, large
    return found[-1]


def _bytes(types: tuple[TypeGrowth, ...]) -> int:
    return sum(each.bytes for each in types)


def _reason(judged: Judgement, in_children: bool, evidence: Evidence, holders: tuple[HolderGrowth, ...]) -> str:
    if in_children:
        return "child processes grow steadily, and nothing known will stop them"
    course, why = judged.finding.course, judged.why
    stages = evidence.stages
    most = size(evidence.recorder.peak - evidence.baseline)
    if judged.kind == "leak" and holders and holders[0].stage is not None:
        return f"memory in use grows steadily, and {holders[0].stage} keeps it, beside its buffer"
    if why == "in use":
        return "memory in use grows steadily, and no buffer of a running dataset accounts for it"
    if why == "not in use":
        return "memory grows steadily, and neither buffers of datasets nor what allocators keep account for it"
    if why == "buffers":
        names = ", ".join(stage.name for stage in stages.growth()[:2])
        ending = "it is still filling" if course != "level" else "it no longer grows"
        held, budget = size(stages.peak), size(stages.budget)
        return f"of {most} more at its highest, {held} were the buffer of {names}; {ending}, and may take {budget}"
    if why == "kept":
        workers = ", and pages stay that are shared with worker processes" if stages.workers else ""
        return f"memory in use is level; of {most} more at its highest, allocators keep what was freed{workers}"
    if why == "little":
        return "memory grows, by no more yet than datasets and allocators come to keep; eight epochs or more will tell"
    if course == "short":
        return "too few steps to tell; about thirty are needed after warm-up"
    if course == "slowing":
        return "memory still grows, but more and more slowly; a longer run will tell"
    if judged.kind == "unclear" and course == "jumping":
        return "memory rose in a few jumps; a longer run will tell whether there are more"
    if judged.kind == "unclear":
        return "memory goes up and down by more than could be told from a leak; a longer run will tell"
    grown = evidence.final - evidence.baseline
    if grown > 4 << 20:
        return f"memory is {size(grown)} higher than at the start, and no longer grows"
    return "memory is where it was at the start"
