"""What a plan is made of, step by step and part by part, to be kept with its rows: later runs say what has changed."""

import json
import types
from collections.abc import Iterator, Sequence
from typing import Any

from forebay.plan.fingerprint import digest, function_name, names_in
from forebay.plan.identity import Contents
from forebay.plan.made import file_stamp, is_users
from forebay.plan.node import Node
from forebay.plan.state import without_digests

# Steps and parts that are named in one message.
_MOST = 3

Record = list[dict[str, Any]]


class KeptPlan:
    """What rows that are kept on disk are made of.

    Args:
        what: keeps them, for the log.
        contents: of the plan that they come from.
        seeds: that its random steps draw from.
        until: what becomes of rows of another plan.
        how: texts of what else decides about what is kept, by the name of the argument.
    """

    def __init__(
        self, what: str, contents: Contents, seeds: Sequence[int], until: str, how: dict[str, str] | None = None
    ) -> None:
        self._what = what
        self._contents = contents
        self._seeds = list(seeds)
        self._until = until
        self._how = how or {}

    def text(self) -> str:
        """To be kept with the rows."""
        return json.dumps({"steps": record(self._contents), "seeds": self._seeds, "how": self._how})

    def replaces(self, kept: str | None) -> None:
        """Tell in the log that rows are computed although others are there, and why."""
        # Those who have nothing to log need not wait for it.
        import logging

        logging.getLogger("forebay").warning(
            "%s: what was kept is of another dataset and is made anew: %s. %s", self._what, self._why(kept), self._until
        )

    def resembles(self, kept: str | None) -> bool:
        """Whether those are of the same steps, with other functions or data: most likely of what this was before."""
        try:
            steps = [step["step"] for step in json.loads(kept or "")["steps"]]
        except (ValueError, KeyError, TypeError):
            return False
        return steps == [without_digests(step.signature()) for step, _ in self._contents]

    def _why(self, kept: str | None) -> str:
        try:
            found = json.loads(kept or "")
            why = changes(found["steps"], record(self._contents))
            if not why and found["seeds"] != self._seeds:
                why = "random steps before it have other seeds, as they do in every run unless they are given one"
            if not why and (other := [name for name in self._how if found["how"][name] != self._how[name]]):
                why = f"its {' and '.join(other)} {'has' if len(other) == 1 else 'have'} changed"
        except (ValueError, KeyError, TypeError, AttributeError):
            return "it does not say what it was made of, as that of earlier versions of Forebay does not"
        return why or "it was written by another version of Forebay"


def record(contents: Contents) -> Record:
    """A JSON value for every step that matters to the rows, sources first."""
    return [
        {"step": without_digests(step.signature()), "where": step.where, "all": digest(line), "parts": _parts(step)}
        for step, line in contents
    ]


def changes(kept: Record, here: Record) -> str:
    """In words, what differs between two records; empty if nothing does."""
    for step, (theirs, ours) in enumerate(zip(kept, here), 1):
        if theirs["step"] != ours["step"]:
            return f"step {step} was {theirs['step']} and is {ours['step']}"
    if len(kept) != len(here):
        longer, which, other = (kept, "what was kept", "this") if len(kept) > len(here) else (here, "this", "it")
        return f"{which} goes on with {longer[min(len(kept), len(here))]['step']} where {other} ends"
    changed = [
        f"{ours['step']}{_at(ours)} has changed{_which(theirs['parts'], ours['parts'])}"
        for theirs, ours in zip(kept, here)
        if theirs["all"] != ours["all"]
    ]
    return _some(changed, "; ")


def _at(step: dict[str, Any]) -> str:
    return f" at {step['where']}" if step["where"] else ""


def _which(theirs: dict[str, str], ours: dict[str, str]) -> str:
    """The parts that differ; nothing if none of those that have a name does."""
    differ = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    return f" ({_some(differ, ', ')})" if differ else ""


def _some(parts: list[str], between: str) -> str:
    more = [] if len(parts) <= _MOST else [f"{len(parts) - _MOST} more"]
    return between.join([*parts[:_MOST], *more])


def _parts(step: Node) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in step.params().items():
        if isinstance(value, types.MethodType):
            found[f"the object of {function_name(value)}"] = digest(value.__self__, contents=True)
            value = value.__func__
        if isinstance(value, types.FunctionType):
            found.update(_of_functions(value))
        elif callable(value):
            found[function_name(value)] = digest(value, contents=True)
        elif value is not None and not isinstance(value, (bool, int, float, str)):
            # Data may be large, and is among what `all` is a digest of.
            found[name] = digest(value)
    if step.reads():
        found["its files"] = digest(tuple(map(file_stamp, step.reads())))
    return found


def _of_functions(function: types.FunctionType) -> Iterator[tuple[str, str]]:
    """Code, captured values and globals of a function, and of the user's functions that it refers to."""
    waiting, seen = [function], {id(function)}
    while waiting:
        function = waiting.pop()
        name = function_name(function)
        yield f"the code of {name}", digest(function.__code__)
        defaults = function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items()))
        yield f"the defaults of {name}", digest(defaults, contents=True)
        for what, value in _referred(function):
            # By type: objects of the user's own may say anything, or raise, where they are asked for their class.
            if type(value) is not types.FunctionType or not is_users(value.__module__):
                yield what, digest(value, contents=True)
            elif id(value) not in seen:
                seen.add(id(value))
                waiting.append(value)


def _referred(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield f"the captured value {name!r}", cell.cell_contents
        except ValueError:
            continue
    names = names_in(function.__code__)
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        if issubclass(type(value), types.ModuleType) and is_users(value.__name__):
            for each in sorted(names & vars(value).keys()):
                yield f"the global '{name}.{each}'", vars(value)[each]
        else:
            yield f"the global {name!r}", value
