"""All that was gathered, put together into one verdict."""

from dataclasses import dataclass

from forebay.observe.bins import Bins, Curve
from forebay.observe.census import Census, grown_holders, grown_types
from forebay.observe.judge import Judgement, Series, follow, judge, warm_up_end
from forebay.observe.memory import Children, free_memory
from forebay.observe.recorder import Recorder, Source
from forebay.observe.stages import Stages
from forebay.observe.verdict import Kind, Verdict, size


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
    memory, rest = recorder.series()
    judged = judge(memory, rest, recorder.peak - evidence.baseline, evidence.stages.peak)
    steps, epochs = recorder.memory.count, recorder.epochs
    children = evidence.children.growth()
    below = follow(Series(evidence.children_curve, Bins(1).curve()))
    looks = evidence.children_curve.x[-1] + 1 if len(evidence.children_curve) else 1.0
    children_slope = below.trend.slope * looks / max(steps, 1) if below.trend is not None else 0.0
    kind: Kind = judged.kind
    finding, in_children = judged.finding, below.course == "rising" and kind != "leak"
    if in_children:
        kind, finding = "leak", below
    line, scale = finding.trend, looks / max(steps, 1) if in_children else 1.0
    slope = line.slope * scale if line is not None else 0.0
    first = _in_first_third(evidence.censuses)
    last = evidence.censuses[-1] if evidence.censuses else None
    return Verdict(
        kind=kind,
        where="children" if in_children else "process",
        reason=_reason(judged, in_children, evidence),
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
        stages=evidence.stages.growth(),
        types=grown_types(first, last) if first is not None and last is not None else (),
        holders=grown_holders(first, last) if first is not None and last is not None else (),
        lines=evidence.lines,
        children=children,
        children_bytes_per_step=children_slope,
        free=free_memory(),
        warm_up=int(warm_up_end(memory)),
        budget=evidence.stages.budget,
    )


def _in_first_third(censuses: tuple[Census, ...]) -> Census | None:
    """The last one taken by then; the one before the loop at worst."""
    before = [each for each in censuses[:-1] if each.step <= censuses[-1].step / 3]
    return before[-1] if before else None


def _reason(judged: Judgement, in_children: bool, evidence: Evidence) -> str:
    if in_children:
        return "child processes grow steadily, and nothing known will stop them"
    grown = evidence.final - evidence.baseline
    stages = evidence.stages.growth()
    course = judged.finding.course
    if judged.kind == "leak":
        return "memory grows steadily, and no buffer of a running dataset accounts for it"
    if judged.kind == "growth":
        names = ", ".join(stage.name for stage in stages[:2])
        most = size(evidence.recorder.peak - evidence.baseline)
        ending = "it is still filling" if course != "level" else "it no longer grows"
        budget = size(evidence.stages.budget)
        held = size(evidence.stages.peak)
        return f"of {most} more at its highest, {held} were the buffer of {names}; {ending}, and may take {budget}"
    if course == "short":
        return "too few steps to tell; about thirty are needed after warm-up"
    if course == "slowing":
        return "memory still grows, but more and more slowly; a longer run will tell"
    if judged.kind == "unclear" and course == "rising":
        return "memory grows, by no more yet than datasets may keep for their blocks; eight epochs or more will tell"
    if judged.kind == "unclear":
        return "memory rose in a few jumps; a longer run will tell whether there are more"
    if grown > 4 << 20:
        return f"memory is {size(grown)} higher than at the start, and no longer grows"
    return "memory is where it was at the start"
