"""Where Forebay differs from tf.data on purpose. Nothing else may differ.

Each entry has a reason and a rule. A rule takes what tf.data did, what Forebay did, and what the case says
Forebay `gives`; it returns what Forebay must do, which is what tf.data did where the entry does not apply.

A case names the differences it shows, and fails if one of them does not show: where the two libraries have
come to agree, the entry goes. Every entry has to be shown by a case. Random chains cannot name theirs, so
differences that may turn up in any of them are applied where they fit.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from differential.outcome import Leaf, Node, Outcome, Spec, canonical

UNKNOWN = -2

Rule = Callable[[Outcome, Outcome, Any], Outcome]


@dataclass(frozen=True)
class Difference:
    """One intended difference."""

    reason: str
    rule: Rule


def _leaves(change: Callable[[Any], Any]) -> Rule:
    return lambda theirs, ours, gives: theirs.map_leaves(change)


def _refused_when(stage: str) -> Rule:
    """An error, whatever tf.data does, except that an error at that very stage is no difference."""
    return lambda theirs, ours, gives: theirs if theirs.failed == stage else Outcome(failed=stage)


def _later(theirs: Outcome, ours: Outcome, gives: Any) -> Outcome:
    return Outcome(failed="run") if theirs.failed == "build" else theirs


def _given(theirs: Outcome, ours: Outcome, gives: Any) -> Outcome:
    """What the case spells out, because it cannot be worked out from what tf.data did."""
    if isinstance(gives, list):
        return Outcome(elements=tuple(canonical(element) for element in gives), ended=True)
    return Outcome(value=canonical(gives))


_WIDER = {"int32": "int64", "float32": "float64"}


def _wide(leaf: Any) -> Any:
    return leaf._replace(dtype=_WIDER.get(leaf.dtype, leaf.dtype))


def _text(leaf: Any) -> Any:
    dtype = "str" if leaf.dtype == "bytes" else leaf.dtype
    return Spec(dtype, leaf.shape) if isinstance(leaf, Spec) else Leaf(dtype, leaf.shape, _decoded(leaf.value))


def _decoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_decoded(item) for item in value)
    return value.decode() if isinstance(value, bytes) else value


def _plain_dict(node: Node) -> Node:
    return node._replace(kind="dict") if node.kind == "OrderedDict" else node


def _stacked(theirs: Outcome, ours: Outcome, gives: Any) -> Outcome:
    """Elements that are tuples of equal scalars, as arrays of them."""
    elements = tuple(
        Leaf(element.parts[0].dtype, (len(element.parts),), tuple(part.value for part in element.parts))
        for element in theirs.elements
    )
    spec = Spec(theirs.spec.parts[0].dtype, (len(theirs.spec.parts),))
    return replace(theirs, elements=elements, spec=spec)


def _known_length(theirs: Outcome, ours: Outcome, gives: Any) -> Outcome:
    exact = theirs.ended and ours.cardinality == len(theirs.elements)
    return replace(theirs, cardinality=ours.cardinality) if exact and theirs.cardinality < 0 else theirs


def _length_behind_function(theirs: Outcome, ours: Outcome, gives: Any) -> Outcome:
    return replace(theirs, cardinality=UNKNOWN) if ours.cardinality == UNKNOWN else theirs


def _spec_of_first(theirs: Outcome, ours: Outcome, gives: Any) -> Outcome:
    return replace(theirs, spec=ours.spec) if ours.spec is None or _fits(ours.spec, theirs.spec) else theirs


def _fits(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, Node):
        return (
            isinstance(ours, Node)
            and ours[:2] == theirs[:2]
            and all(_fits(a, b) for a, b in zip(ours.parts, theirs.parts, strict=True))
        )
    if not isinstance(ours, Spec) or ours.dtype != theirs.dtype or theirs.shape is None:
        return isinstance(ours, Spec) and ours.dtype == theirs.dtype
    return (
        ours.shape is not None
        and len(ours.shape) == len(theirs.shape)
        and all(b in (None, a) for a, b in zip(ours.shape, theirs.shape, strict=True))
    )


def _not_computed(theirs: Outcome, ours: Outcome, gives: Any) -> Outcome:
    """Forebay may get past the element at which tf.data failed, but must agree up to there."""
    same = ours.elements[: len(theirs.elements)] == theirs.elements
    if theirs.failed != "run" or not same:
        return theirs
    return replace(theirs, elements=ours.elements, failed=ours.failed, ended=ours.ended)


def _reads_ahead(theirs: Outcome, ours: Outcome, gives: Any) -> Outcome:
    """Forebay may fail before tf.data does, but must agree up to there."""
    sooner = theirs.failed == ours.failed == "run" and theirs.elements[: len(ours.elements)] == ours.elements
    return replace(theirs, elements=ours.elements) if sooner else theirs


DIFFERENCES: dict[str, Difference] = {
    "python-numbers": Difference(
        "A Python int is int64 and a Python float is float64, as everywhere in NumPy. tf.data makes them "
        "int32 and float32, which loses precision silently and needs casts where they meet NumPy arrays.",
        _leaves(_wide),
    ),
    "text": Difference("A str stays a str. tf.data encodes it: its tensors know bytes only.", _leaves(_text)),
    "text-apart": Difference(
        "str and bytes are different types, which one dataset cannot mix. To tf.data they are the same.",
        _refused_when("build"),
    ),
    "plain-dicts": Difference(
        "Every mapping comes back as a dict: another class may not be constructible from items alone.",
        lambda theirs, ours, gives: theirs.map_nodes(_plain_dict),
    ),
    "lists-are-arrays": Difference(
        "A list is an array wherever it stands. tf.data agrees, except that a list which is the whole result "
        "of a function becomes a tuple.",
        _stacked,
    ),
    "frames": Difference(
        "A DataFrame is its columns, each with its own dtype. tf.data slices the matrix, cast to one dtype.",
        _given,
    ),
    "accepted": Difference(
        "What only tensors or tracing forbid is allowed: elements of any type, of differing shapes or None, "
        "numbers of differing types, functions of plain Python, sizes beyond 64 bits.",
        _given,
    ),
    "any-state": Difference(
        "The state of reduce is the user's own value, passed on as it is. tf.data makes a tensor of it, and "
        "its type may not change.",
        _given,
    ),
    "errors-stay": Difference(
        "After an error the iterator stands where it stood and raises it again: no element is lost "
        "unnoticed. tf.data drops the element, or the whole batch, and goes on.",
        _given,
    ),
    "writable": Difference(
        "What the user receives is the user's, to write into. tf.data's arrays are read-only.",
        _given,
    ),
    "shuffle-everything": Difference(
        "Without a buffer size, shuffle is uniform over the whole dataset. tf.data requires one.", _given
    ),
    "zip-method": Difference(
        "a.zip(b) is zip(a, b). To tf.data, whose zip is static, it is b alone: the dataset it is called on is lost.",
        _given,
    ),
    "negative-counts": Difference(
        "A negative count other than -1 is refused. tf.data takes it for all in take (and then reports a "
        "negative cardinality), for everything in skip, and for ever in repeat.",
        _refused_when("build"),
    ),
    "bool-counts": Difference(
        "True and False are no counts: where one arrives, an argument has slipped. tf.data takes 1 and 0.",
        _refused_when("build"),
    ),
    "overflow": Difference(
        "A generated number that its declared dtype cannot hold is refused. tf.data wraps it around.",
        _refused_when("run"),
    ),
    "checked-when-built": Difference(
        "Arguments are checked on the line that has them. tf.data leaves these to the first element.",
        _refused_when("build"),
    ),
    "checked-when-run": Difference(
        "What is wrong with a function or its result shows with the first element. tf.data traces functions "
        "while building; Forebay calls them with real elements only.",
        _later,
    ),
    "spec-of-first": Difference(
        "Behind a function, element_spec is that of the first element, or an error where there is none. "
        "tf.data knows by tracing which sizes are fixed.",
        _spec_of_first,
    ),
    "length-behind-function": Difference(
        "How many rows unbatch makes of a function's results is not known before it is called.",
        _length_behind_function,
    ),
    "known-length": Difference(
        "What cannot have elements has cardinality 0. tf.data calls unbatch of nothing and skip(-1) of an "
        "unknown number unknown, and skip(-1) of an infinite dataset infinite.",
        _known_length,
    ),
    "not-computed": Difference(
        "Elements that skip or shard leave out need not be computed, so nothing may fail on them. tf.data "
        "computes them and throws them away.",
        _not_computed,
    ),
    "shuffle-reads-ahead": Difference(
        "A shuffle buffer is refilled before an element leaves it, so an error may show one element earlier.",
        _reads_ahead,
    ),
}

SHARED_EPOCHS = (
    "An epoch is the dataset's, not the reader's: parts of one plan that stand on the same shuffled dataset see the "
    "same order in every epoch, so s.concatenate(s) gives one order twice and a zip of two maps of s stays aligned. "
    "tf.data shuffles anew for each of them unless reshuffle_each_iteration is False."
)
"""Of random order, so no case can show it: ``test_shuffle.py`` does."""

ANYWHERE = ("checked-when-run", "known-length", "length-behind-function", "spec-of-first")
"""What any random chain may show."""


def expected(theirs: Outcome, ours: Outcome, differs: Iterable[str], gives: Any = None) -> tuple[Outcome, set[str]]:
    """What Forebay must do where these differences may show, and which of them did."""
    shown = set()
    for name in differs:
        changed = DIFFERENCES[name].rule(theirs, ours, gives)
        if changed != theirs:
            shown.add(name)
            theirs = changed
    return theirs, shown


def agree(ours: Outcome, want: Outcome, name: str) -> None:
    """Fail unless Forebay did what it must; what a refused build would have been like is not asked."""
    if want.cardinality is None:
        ours = replace(ours, cardinality=None, spec=None)
    assert ours == want, f"{name} differs" + (f"; it raised {ours.error!r}" if ours.error else "")
