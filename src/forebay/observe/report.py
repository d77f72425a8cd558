"""A verdict in words that need no other knowledge."""

from forebay.observe.judge import FLOOR, SURE
from forebay.observe.verdict import WORTH_A_WORD, WORTH_NAMING, Verdict, size

_LONG_RUN = 1_000_000
_WARM = 10_000  # Before so many steps, the smallest rises are those of programs that settle.

_HEAD = {
    "plateau": "PLATEAU: {}. This is not a leak.",
    "growth": "GROWTH WITHIN BUDGET: {}. This is not a leak.",
    "leak": "LEAK: {}.",
    "unclear": "UNCLEAR: {}.",
}
_LIKELY = "PLATEAU: {}, as far as a run of this length can tell."
_RISING = "PLATEAU: {}, but for a rise too small to tell whether it is a leak."


def report(verdict: Verdict) -> str:
    """The verdict, figures, what grew, what to do."""
    head = _LIKELY if _is_unsure(verdict) else _HEAD[verdict.kind]
    head = _RISING if _may_leak_slowly(verdict) else head
    lines = [head.format(verdict.reason), ""]
    lines += _table(_figures(verdict))
    if verdict.stages:
        lines += ["", f"Buffers of datasets, which may hold {size(verdict.budget)} together (Options.memory):"]
        lines += _table(
            [
                (
                    stage.name,
                    f"up to {size(stage.peak)}, "
                    + ("grows no further" if stage.full >= 1 else f"{stage.full:.0%} full"),
                )
                for stage in verdict.stages[:5]
            ]
        )
    if verdict.kind in ("leak", "unclear"):
        lines += _grown(verdict)
    return "\n".join([*lines, "", "What to do:", *(f"  {line}" for line in _advice(verdict))])


def _figures(verdict: Verdict) -> list[tuple[str, str]]:
    unit = verdict.unit
    low, high = verdict.interval
    slope = f"{size(verdict.bytes_per_step)} per {unit}"
    if verdict.bytes_per_epoch is not None:
        slope += f", {size(verdict.bytes_per_epoch)} per epoch"
    run = f"{verdict.steps:,} {unit}{'s' * (verdict.steps != 1)}"
    if verdict.epochs:
        run += f", {verdict.epochs:,} epoch{'s' * (verdict.epochs != 1)}"
    if unit == "sample":
        run += ", taken by a clock: w.step() in the loop would count steps"
    figures = [
        (
            "memory",
            f"{size(verdict.baseline)} before, {size(verdict.final)} at the end, {size(verdict.peak)} at its highest",
        ),
        ("slope", f"{slope} (between {size(low)} and {size(high)} per {unit}, 95 % sure)"),
        ("confidence", f"{min(verdict.confidence, 0.9999):.2%}"),
        ("run", f"{run}; the first {verdict.warm_up:,} count as warm-up"),
    ]
    if verdict.kind == "unclear" and not verdict.confidence:
        # Too short a run has neither, and zeros would look like findings.
        del figures[1:3]
    if verdict.kind == "leak" and verdict.bytes_per_step > 0:
        left = int(verdict.free / verdict.bytes_per_step)
        figures.append(("at this rate", f"the {size(verdict.free)} still free are used up after {left:,} {unit}s more"))
    if _may_leak_slowly(verdict):
        rise = size(_LONG_RUN * verdict.bytes_per_step)
        figures.append(
            ("at this rate", f"{rise} in {_LONG_RUN:,} {unit}s; under {size(FLOOR)} in a run, heaps do that too")
        )
    if verdict.files > WORTH_A_WORD:
        figures.append(
            ("files", f"up to {size(verdict.files)} more mapped, which the system takes back when it needs room")
        )
    if verdict.children:
        now = sum(child.last for child in verdict.children)
        more = f", {size(verdict.children_bytes_per_step)} per {unit}" if verdict.children_bytes_per_step else ""
        figures.append(("children", f"{size(now)} of their own in {len(verdict.children)} processes{more}"))
    return figures


def _is_unsure(verdict: Verdict) -> bool:
    """Whether readings went up and down by too much to tell that they do not rise a little as well."""
    return verdict.kind == "plateau" and verdict.confidence < SURE


def _may_leak_slowly(verdict: Verdict) -> bool:
    """Whether a rise too small to be told from the creeping of a heap would be worth knowing in a long run."""
    worth = verdict.steps >= _WARM or verdict.steps * verdict.bytes_per_step > WORTH_NAMING
    return verdict.kind == "plateau" and worth and _LONG_RUN * verdict.interval[0] > FLOOR


def _grown(verdict: Verdict) -> list[str]:
    lines = []
    if verdict.where == "children":
        grew = [child for child in verdict.children if child.last > child.first][:3]
        rows = [(f"{child.name} (pid {child.pid})", f"{size(child.first)} to {size(child.last)}") for child in grew]
        return ["", "Processes that grew:", *_table(rows)]
    if verdict.types:
        rows = [(each.name, f"{each.count:+,} objects, +{size(each.bytes)}") for each in verdict.types]
        lines += ["", "Python objects that take more memory:", *_table(rows)]
    if verdict.holders:
        rows = [
            (each.name, f"{each.before:,} to {each.length:,} items" + (f", in {each.stage}" if each.stage else ""))
            for each in verdict.holders
        ]
        lines += ["", "Containers that kept growing:", *_table(rows)]
    if verdict.lines:
        lines += ["", "Lines whose allocations grew:", *(f"  {line}" for line in verdict.lines)]
    return lines


def _advice(verdict: Verdict) -> list[str]:
    if _may_leak_slowly(verdict):
        return [
            f"Nothing in a run of this length. Before a much longer one, watch until that rate comes to {size(FLOOR)}:",
            "what still rises then is called a leak.",
        ]
    if verdict.kind == "plateau" and verdict.mostly_files:
        return ["Nothing. Pages of mapped files stay in memory for as long as nobody else needs the room."]
    if verdict.kind == "plateau":
        surer = ["Watch a longer run to be surer, if possible of eight epochs or more."] if _is_unsure(verdict) else []
        return ["Nothing. Memory that stays high after a peak is kept by the allocator, which uses it again.", *surer]
    if verdict.kind == "growth":
        return [
            "Nothing, if it fits. A buffer takes its size times the bytes of an element, and grows no further.",
            "If it is too much: give the step a smaller buffer, or put it before steps that make elements larger.",
        ]
    if verdict.kind == "unclear" and verdict.where == "children":
        return [
            "Watch for some seconds more. Processes are looked at twenty times a second at the most, and can be judged",
            "after thirty times.",
        ]
    if verdict.kind == "unclear":
        return ["Watch a longer run, if possible of eight epochs or more."]
    if verdict.where == "children":
        return [
            "Look into the function that the workers run: what does it keep between two calls?",
            "Forked workers also copy what they share with the parent, page by page, as they touch it:",
            "keep large data in NumPy arrays rather than in lists, or let workers be spawned.",
        ]
    if verdict.holders and verdict.holders[0].stage is not None:
        return [
            f"{verdict.holders[0].name} is in {verdict.holders[0].stage}:",
            "look into the function that was given to that step. If it keeps nothing, the step does, which would be a",
            "defect of Forebay: please report it.",
        ]
    if verdict.holders:
        return [
            f"See what the loop puts into {verdict.holders[0].name}, and keep less: a number (float(loss), "
            "array.item()) or a copy",
            "of the part that is needed. An array cut out of a batch keeps the whole batch alive.",
        ]
    if verdict.types and verdict.types[0].bytes > 0.3 * verdict.growth:
        return [
            f"Find who keeps the {verdict.types[0].name} objects: a list, a closure, an attribute, a cache of results."
        ]
    return [
        "Python objects do not account for it, so it is native memory: a cache of a library that fills in the",
        "first epoch (watch three epochs to rule that out), functions compiled again and again, or a library's bug.",
        "fb.watch(tracemalloc=True) tells which lines allocate.",
    ]


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name.ljust(width)}  {text}" for name, text in rows]
