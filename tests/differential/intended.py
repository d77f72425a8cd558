"""Where Forebay differs from tf.data on purpose. Nothing else may differ.

Each entry has a reason and a rule: what Forebay must do, worked out from what tf.data did. A case names the
differences it shows. The tests check that tf.data really behaves otherwise, that Forebay does what the rule
says, and that every entry is shown by a case: a difference that disappears, is not listed, or has nothing
left to show, fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from differential.outcome import Leaf, Node, Outcome, Spec, canonical

Rule = Callable[[Outcome, Any], Outcome]
"""From tf.data's outcome, and what the case says Forebay `gives`, to what Forebay must do."""


@dataclass(frozen=True)
class Difference:
    """One intended difference."""

    reason: str
    rule: Rule


def _leaves(change: Callable[[Any], Any]) -> Rule:
    return lambda outcome, gives: outcome.map_leaves(change)


def _refused(outcome: Outcome, gives: Any) -> Outcome:
    return Outcome(failed="build")


def _refused_when_run(outcome: Outcome, gives: Any) -> Outcome:
    return Outcome(failed="run")


def _given(outcome: Outcome, gives: Any) -> Outcome:
    """What the case spells out, because it cannot be worked out from what tf.data did."""
    if isinstance(gives, list):
        return Outcome(elements=tuple(canonical(element) for element in gives), ended=True)
    return Outcome(value=canonical(gives))


_WIDER = {"int32": "int64", "float32": "float64"}


def _wide(leaf: Any) -> Any:
    return leaf._replace(dtype=_WIDER.get(leaf.dtype, leaf.dtype))


def _text(leaf: Any) -> Any:
    dtype = "str" if leaf.dtype == "bytes" else leaf.dtype
    return (
        Spec(dtype, leaf.shape) if isinstance(leaf, Spec) else Leaf(dtype, leaf.shape, _decoded(leaf.value))
    )


def _decoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_decoded(item) for item in value)
    return value.decode() if isinstance(value, bytes) else value


def _plain_dict(node: Node) -> Node:
    return node._replace(kind="dict") if node.kind == "OrderedDict" else node


DIFFERENCES: dict[str, Difference] = {
    "python-numbers": Difference(
        "A Python int is int64 and a Python float is float64, as everywhere in NumPy. tf.data makes them "
        "int32 and float32, which loses precision silently and needs casts where they meet NumPy arrays.",
        _leaves(_wide),
    ),
    "text": Difference(
        "A str stays a str. tf.data encodes it, because its tensors know bytes only.",
        _leaves(_text),
    ),
    "plain-dicts": Difference(
        "Every mapping comes back as a dict: another class may not be constructible from items alone.",
        lambda outcome, gives: outcome.map_nodes(_plain_dict),
    ),
    "frames": Difference(
        "A DataFrame is its columns, each with its own dtype. tf.data slices the matrix, cast to one dtype.",
        _given,
    ),
    "negative-counts": Difference(
        "A negative count other than -1 is refused. tf.data takes it for all in take (and then reports a "
        "negative cardinality), for everything in skip, and for ever in repeat.",
        _refused,
    ),
    "checked-when-run": Difference(
        "What is wrong with a function or its result shows with the first element. tf.data traces functions "
        "while building; Forebay calls them with real elements only.",
        _refused_when_run,
    ),
    "checked-when-built": Difference(
        "Arguments are checked on the line that has them. tf.data leaves these to the first element.",
        _refused,
    ),
    "accepted": Difference(
        "What only tensors or tracing forbid is allowed.",
        _given,
    ),
}


def expected(oracle: Outcome, differs: tuple[str, ...], gives: Any) -> Outcome:
    """What Forebay must do where tf.data did `oracle` and the case shows these differences."""
    for name in differs:
        changed = DIFFERENCES[name].rule(oracle, gives)
        assert changed != oracle, (
            f"the intended difference {name!r} has nothing to show: tf.data does the same"
        )
        oracle = changed
    return oracle


def agree(got: Outcome, want: Outcome, name: str) -> None:
    """Fail unless Forebay did what it must; what a refused build would have been like is not asked."""
    if want.cardinality is None:
        got = replace(got, cardinality=None, spec=None)
    assert got == want, f"{name} differs" + (f"; it raised {got.error!r}" if got.error else "")
