"""All that was gathered, put together into one verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from forebay.observe.bins import Curve
from forebay.observe.census import LARGE, Census, grown_types
from forebay.observe.children import Children, ChildrenCourse
from forebay.observe.judge import FLOOR, SURE, Course, Finding, Judgement, judge, warm_up_end
from forebay.observe.memory import free_memory
from forebay.observe.recorder import Recorder, Source
from forebay.observe.stages import Stages
from forebay.observe.verdict import (
    WORTH_A_WORD,
    WORTH_NAMING,
    HolderGrowth,
    Kind,
    StageGrowth,
    TypeGrowth,
    Verdict,
    size,
)

# Containers that grew do not matter beside a sure plateau, unless the slope is surely above none, and arrays in one of
# them are so much of what it comes to.
_HELD = 0.5


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
    shared: int = 0  # How much more is shared at the end: files ...
    in_shared_memory: int = 0  # ... and what is not in files.

    @property
    def files(self) -> int:
        """How much more of files was mapped, at the most."""
        # What goes to and from worker processes comes and goes, so that only the end tells.
        most = self.shared if self.stages.workers else max(self.shared, self.recorder.shared_growth)
        return max(0, most - max(0, self.in_shared_memory))


def conclude(evidence: Evidence) -> Verdict:
    """The verdict; that on child processes if they leak and this one does not."""
    recorder = evidence.recorder
    readings = recorder.readings()
    stages = evidence.stages
    grown = recorder.own_peak - evidence.baseline
    datasets, foreign = stages.budget > 0, evidence.in_shared_memory
    judged = judge(readings, grown, stages.peak, datasets, stages.workers, foreign)
    steps, epochs = recorder.memory.count, recorder.epochs
    children = evidence.children.growth()
    below = evidence.children.course()
    looks = float(evidence.children_curve.x[-1]) + 1 if len(evidence.children_curve) else 1.0
    kind: Kind = judged.kind
    finding, in_children = judged.finding, False
    if kind != "leak" and below.leak is not None:
        kind, finding, in_children = "leak", below.leak, True
    elif kind in ("plateau", "growth") and below.open is not None:
        # Nothing of what this process has denies that.
        kind, finding, in_children = "unclear", below.open, True
    per_step = looks / max(steps, 1)
    line, scale = finding.trend, per_step if in_children else 1.0
    slope = line.slope * scale if line is not None else 0.0
    types, holders = _grown(evidence.censuses, grown, slope * steps)
    reason = _children_reason(below) if in_children else _reason(judged, evidence, holders)
    if kind == "plateau" and holders and is_doubtful(finding, slope * steps, types, holders):
        kind = "unclear"
        reason = f"{holders[0].name} kept growing, by too little yet to be told from a heap; a longer run will tell"
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
        children_bytes_per_step=float(below.slope * per_step),
        free=free_memory(),
        warm_up=int(warm_up_end(readings.memory)),
        budget=stages.budget,
        files=evidence.files,
    )


def is_doubtful(
    plateau: Finding, rise: float, types: tuple[TypeGrowth, ...], holders: tuple[HolderGrowth, ...]
) -> bool:
    """Whether a container that grew may be a leak of less than memory goes up and down by.

    What is in it need not be known: of the graph behind a loss, Python sees the loss alone. Then the slope has to tell.
    """
    steady = plateau.trend is not None and plateau.trend.low > 0
    if steady and rise > WORTH_NAMING and sum(each.bytes for each in holders) > _HELD * rise:
        return True
    return plateau.confidence < SURE and max(_bytes(types), rise if steady else 0.0) > FLOOR


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


def _children_reason(below: ChildrenCourse) -> str:
    """Why they leak, or may do so."""
    if below.leak is not None:
        return "child processes grow steadily, and nothing known will stop them"
    of = f"a child process grew by {size(below.grown)}"
    if below.open is None or below.open.course == "short":
        return f"{of} in too short a time to tell whether it goes on; a longer run will tell"
    if below.open.course == "slowing":
        return f"{of}, more and more slowly; a longer run will tell"
    return f"{of}, unevenly; a longer run will tell whether it goes on"


def _reason(judged: Judgement, evidence: Evidence, holders: tuple[HolderGrowth, ...]) -> str:
    course, why = judged.finding.course, judged.why
    stages = evidence.stages
    highest = evidence.recorder.peak - evidence.baseline
    most = f"of {size(highest)} more at its highest"
    files = f"{size(evidence.files)} are pages of mapped files" if evidence.files > WORTH_A_WORD else ""
    if judged.kind == "leak" and holders and holders[0].stage is not None:
        return f"memory in use grows steadily, and {holders[0].stage} keeps it, beside its buffer"
    if why == "in use":
        return "memory in use grows steadily, and no buffer of a running dataset accounts for it"
    if why == "not in use":
        return "memory grows steadily, and neither buffers of datasets nor what allocators keep account for it"
    if why == "buffers":
        largest = stages.growth()[:2]
        names = ", ".join(stage.name for stage in largest)
        also = f", and {files}" if files else ""
        ending = _ending(largest, stages.budget, course)
        if stages.peak > highest:
            # Some of it lay in memory that was free when the watch began.
            held = f"the buffer of {names} held up to {size(stages.peak)}"
            return f"{held}, with {size(highest)} more at the highest{also}; {ending}"
        return f"{most}, {size(stages.peak)} were the buffer of {names}{also}; {ending}"
    if why == "kept":
        workers = ", and pages stay that are shared with worker processes" if stages.workers else ""
        also = f"{files}, and " if files and not workers else ""
        return f"memory in use is level; {most}, {also}allocators keep what was freed{workers}"
    if why == "shared":
        return f"{size(evidence.in_shared_memory)} more are shared with other processes; a longer run will tell"
    if why == "little":
        return "memory grows, by no more yet than datasets and allocators come to keep; eight epochs or more will tell"
    if course == "short":
        return "too few steps to tell; about thirty are needed after warm-up"
    if course == "slowing":
        return "memory still grows, but more and more slowly; a longer run will tell"
    if judged.kind == "unclear" and course == "jumping":
        return "memory rose in a few jumps; a longer run will tell whether there are more"
    if judged.kind == "unclear" and judged.finding.trend is not None and judged.finding.trend.low > 0:
        return "memory rises, by too little yet to be told from what heaps come to keep; a longer run will tell"
    if judged.kind == "unclear":
        return "memory goes up and down by more than could be told from a leak; a longer run will tell"
    if evidence.files > max(WORTH_A_WORD, 0.5 * highest):
        return f"memory in use is level; {most}, {files}, which the system takes back when it needs room"
    grown = evidence.final - evidence.baseline
    if abs(grown) < FLOOR:
        return f"memory is level, and within {size(FLOOR)} of where it was at the start"
    if grown < 0:
        return f"memory is {size(-grown)} lower than at the start, and does not grow"
    return f"memory is {size(grown)} higher than at the start, and no longer grows"


def _ending(largest: Sequence[StageGrowth], budget: int, course: Course) -> str:
    """Whether buffers still fill, and up to where."""
    if course == "level" or all(stage.full >= 1 for stage in largest):
        return "it no longer grows"
    # A buffer that is half full will be twice as large, unless the budget ends before.
    whole = sum(stage.peak / stage.full if 0 < stage.full < 1 else stage.peak for stage in largest)
    unknown = any(stage.full == 0 for stage in largest)
    return f"it is still filling, and may take {size(budget if unknown else min(whole, budget))}"
