"""Random chains of operators. What elements look like is followed along, so that every step makes sense."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from property.model import Step

TEXT = st.text(st.sampled_from("ab\0é🎏"), max_size=4)
NUMBER = st.integers(-50, 50)


@dataclass(frozen=True)
class Leaf:
    """What is known of a leaf of every element: text or numbers, how many axes, whether lengths differ."""

    text: bool = False
    axes: int = 0
    ragged: bool = False


# A Leaf, or a tuple or dict of them, nested.
Form = Any


@dataclass(frozen=True)
class Chain:
    kind: str
    source: tuple[Any, ...]
    steps: tuple[Step, ...]
    # forms[k] is what elements look like after k steps.
    forms: tuple[Form, ...]


@dataclass(frozen=True)
class Known:
    """What a step may rely on."""

    form: Form
    # All leaves of an element have the same length, so that unbatch can cut them up together.
    aligned: bool = False
    indexable: bool = True
    endless: bool = False
    shuffled: bool = False


def leaf_forms(form: Form) -> list[Leaf]:
    if isinstance(form, dict):
        return [leaf for part in form.values() for leaf in leaf_forms(part)]
    if isinstance(form, tuple):
        return [leaf for part in form for leaf in leaf_forms(part)]
    return [form]


def over_forms(function: Any, form: Form) -> Form:
    if isinstance(form, dict):
        return {key: over_forms(function, part) for key, part in form.items()}
    if isinstance(form, tuple):
        return tuple(over_forms(function, part) for part in form)
    return function(form)


@st.composite
def sources(draw: st.DrawFn) -> tuple[str, tuple[Any, ...], Form]:
    kind = draw(st.sampled_from(["range", "slices", "generator"]))
    if kind == "range":
        start, stop, step = draw(NUMBER), draw(NUMBER), draw(st.sampled_from([1, 2, 7, -1, -3]))
        return kind, tuple(range(start, stop, step))[:14], Leaf()
    form = draw(
        st.sampled_from(
            [
                Leaf(),
                Leaf(text=True),
                (Leaf(), Leaf(text=True)),
                {"b": Leaf(axes=1), "a": (Leaf(), {"t": Leaf(text=True)})},
            ]
        )
    )
    # An empty list has no dtype of its own, so that it cannot stand for columns of numbers.
    rows = draw(st.lists(_rows(form), min_size=1 if kind == "slices" else 0, max_size=14))
    return kind, tuple(rows), form


def _rows(form: Form) -> st.SearchStrategy[Any]:
    if isinstance(form, dict):
        # Not fixed_dictionaries, which varies the order of keys from row to row.
        return st.tuples(*map(_rows, form.values())).map(lambda parts: dict(zip(form, parts, strict=True)))
    if isinstance(form, tuple):
        return st.tuples(*map(_rows, form))
    one = TEXT if form.text else NUMBER
    return st.lists(one, min_size=2, max_size=2) if form.axes else one


@st.composite
def chains(draw: st.DrawFn, max_steps: int = 6, shuffles: bool = True) -> Chain:
    kind, source, form = draw(sources())
    known = Known(form, aligned=isinstance(form, Leaf), indexable=kind != "generator")
    steps: list[Step] = []
    forms = [form]
    for _ in range(draw(st.integers(0, max_steps))):
        step = draw(st.sampled_from(sorted(_possible(known, shuffles))).flatmap(_ARGUMENTS.__getitem__))
        known = _after(step, known)
        steps.append(step)
        forms.append(known.form)
    if known.endless:
        steps.append(Step("take", (draw(st.integers(0, 40)),)))
        forms.append(known.form)
    return Chain(kind, source, tuple(steps), tuple(forms))


def _with(name: str, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(*args).map(lambda drawn: Step(name, drawn))


_SMALL = st.integers(0, 9)
_COUNT = st.integers(1, 5)
_RESIDUE = (st.integers(2, 4), st.integers(0, 1))
_ARGUMENTS: dict[str, st.SearchStrategy[Step]] = {
    "take": _with("take", _SMALL),
    "skip": _with("skip", _SMALL),
    "shard": st.integers(1, 3).flatmap(lambda n: _with("shard", st.just(n), st.integers(0, n - 1))),
    "repeat": _with("repeat", st.integers(0, 3)),
    "repeat_for_ever": _with("repeat_for_ever"),
    "enumerate": _with("enumerate", st.integers(-3, 3)),
    "concatenate_head": _with("concatenate_head", _SMALL),
    "zip_with_tail": _with("zip_with_tail", st.integers(0, 3)),
    "add": _with("map", st.just("add")),
    "add_batched": _with("map_batched", st.just("add")),
    "pair": _with("map", st.just("pair")),
    "label": _with("map", st.just("label")),
    "first": _with("map", st.just("first")),
    "total": _with("map", st.just("total")),
    "text": _with("map", st.just("text")),
    "ragged": _with("map", st.just("ragged")),
    "filter": _with("filter", *_RESIDUE),
    "filter_batched": _with("filter_batched", *_RESIDUE),
    "take_while": _with("take_while", st.integers(5, 9), st.integers(0, 1)),
    "batch": _with("batch", _COUNT, st.booleans()),
    "batch_dropping": _with("batch", _COUNT, st.just(True)),
    "unbatch": _with("unbatch"),
    "flat_map": _with("flat_map", st.integers(1, 3)),
    "prefetch": _with("prefetch", st.integers(0, 3)),
    "shuffle": _with("shuffle", st.integers(1, 20), st.integers(0, 2**40), st.booleans()),
    "shuffle_whole": _with("shuffle", st.none(), st.integers(0, 2**40), st.booleans()),
}


def _possible(known: Known, shuffles: bool) -> set[str]:
    """The operators that make sense here."""
    leaves = leaf_forms(known.form)
    names = {"take", "skip", "shard", "enumerate", "concatenate_head", "add", "label", "total", "text"}
    names |= {"filter", "take_while", "flat_map", "prefetch", "repeat"}
    if known.endless:
        # Nor anything that might drop every row: an endless stream of nothing has no next element.
        names -= {"concatenate_head", "repeat", "filter", "take_while", "flat_map"}
    elif not known.shuffled:
        # Which epoch an endless repeat inside an outer one starts with is not the model's business.
        names.add("repeat_for_ever")
    if len(leaves) <= 3:
        names |= {"pair", "zip_with_tail"}
    if not isinstance(known.form, Leaf):
        names.add("first")
    if known.form == Leaf():
        names |= {"add_batched"} if known.endless else {"add_batched", "filter_batched", "ragged"}
    if not any(leaf.ragged for leaf in leaves) and max(leaf.axes for leaf in leaves) < 3:
        names |= {"batch", "batch_dropping"}
    if known.aligned and all(leaf.axes for leaf in leaves):
        names.add("unbatch")
    if shuffles and not known.endless:
        names.add("shuffle")
        if known.indexable:
            names.add("shuffle_whole")
    return names


_READS_AT_ANY_ROW = {"take", "skip", "shard", "map", "map_batched", "enumerate"}


def _after(step: Step, known: Known) -> Known:
    form, aligned = known.form, known.aligned
    name = step.args[0] if step.name == "map" else step.name
    if name == "enumerate":
        form, aligned = (Leaf(), form), False
    elif name == "zip_with_tail":
        form, aligned = (form, form), False
    elif name == "pair":
        form = (form, form)
    elif name == "label":
        form, aligned = {"v": form, "n": Leaf()}, False
    elif name == "first":
        form = form[0] if isinstance(form, tuple) else next(iter(form.values()))
        aligned = aligned or isinstance(form, Leaf)
    elif name in ("total", "flat_map"):
        form, aligned = Leaf(), True
    elif name == "text":
        form, aligned = Leaf(text=True), True
    elif name == "ragged":
        form, aligned = Leaf(axes=1, ragged=True), True
    elif name == "batch":
        short_end = not step.args[1]
        form = over_forms(lambda leaf: replace(leaf, axes=leaf.axes + 1, ragged=leaf.ragged or short_end), form)
        aligned = True
    elif name == "unbatch":
        # Of a ragged leaf it is not known which axis was the ragged one.
        form = over_forms(lambda leaf: replace(leaf, axes=leaf.axes - 1, ragged=leaf.ragged and leaf.axes > 1), form)
        aligned = isinstance(form, Leaf)
    return replace(
        known,
        form=form,
        aligned=aligned,
        indexable=known.indexable and (step.name in _READS_AT_ANY_ROW or (name == "shuffle" and step.args[0] is None)),
        endless=(known.endless and name != "take") or name == "repeat_for_ever",
        shuffled=known.shuffled or name == "shuffle",
    )
