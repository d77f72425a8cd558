"""Whether a saved state is whole and belongs to a plan, and if not, what differs."""

import json
import re
from typing import Any

from forebay.digests import blake2b
from forebay.errors import CursorError
from forebay.plan.identity import plan_steps
from forebay.plan.node import Node

_DIGEST = re.compile(r"#[0-9a-f]{16}")


def signed(state: dict[str, Any]) -> dict[str, Any]:
    """The state with a checksum, so that no operator has to expect numbers that none of them wrote."""
    text = _text(state)
    # Read back from the text, it shares nothing with the iterator that it describes.
    return {**json.loads(text), "checksum": _checksum(text)}


def check_signature(state: dict[str, Any]) -> None:
    """CursorError if the state is not as it was signed."""
    rest = {key: value for key, value in state.items() if key != "checksum"}
    if state["checksum"] != _checksum(_text(rest)):
        raise CursorError("the state has been changed or damaged since state_dict() returned it")


def _text(state: dict[str, Any]) -> str:
    try:
        return json.dumps(state, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise CursorError(f"the state is not JSON: {error}; perhaps a generator's own state_dict() is not") from error


def _checksum(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def counts_on_order(cursor: Any) -> bool:
    """Whether a saved cursor repeats an order that nothing but the run it comes from determined."""
    if isinstance(cursor, dict):
        return "log" in cursor or any(map(counts_on_order, cursor.values()))
    return isinstance(cursor, list) and any(map(counts_on_order, cursor))


def without_digests(line: str) -> str:
    """A line of a plan to read: two that differ in nothing else are of steps whose functions or data differ."""
    return _DIGEST.sub("", line)


def check_same_plan(saved: list[str], here: list[str], strict: bool, plan: Node) -> None:
    """CursorError that names the first step that differs. Not `strict` overlooks changed functions and data.

    `here` are the lines of the plan.
    """
    for step, (theirs, ours) in enumerate(zip(saved, here)):
        if theirs == ours:
            continue
        plain_theirs, plain_ours = without_digests(theirs), without_digests(ours)
        where = plan_steps(plan)[step].where
        there = f" at {where}" if where else ""
        if plain_theirs != plain_ours:
            raise CursorError(
                f"the state was saved by another dataset: step {step + 1} was {plain_theirs}, here it is "
                f"{plain_ours}{there}"
            )
        if strict:
            raise CursorError(
                f"step {step + 1}, {plain_ours}{there}, is not what it was when the state was saved: its function or "
                "data has changed. load_state_dict(state, strict=False) resumes all the same"
            )
    if len(saved) != len(here):
        longer, has, lacks = (saved, "the saved", "this") if len(saved) > len(here) else (here, "this", "the saved")
        extra = without_digests(longer[min(len(saved), len(here))])
        raise CursorError(f"the state was saved by another dataset: {has} one goes on with {extra}, {lacks} one ends")
