"""Steps that can pass over what fails in them, and plans in which every such step does."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from forebay.errors import PlanError
from forebay.plan.check import keep_whole
from forebay.plan.node import Node
from forebay.run.faults import MAX_ERRORS, Tolerance

S = TypeVar("S", bound="Skips")


@dataclass(frozen=True, eq=False, kw_only=True)
class Skips(Node):
    """A step with ``on_error``: "raise", or "skip" for up to `max_errors` faults (None for any number).

    `quiet` keeps them out of the log. It is set by ``ignore_errors``.
    """

    on_error: str = "raise"
    max_errors: int | None = MAX_ERRORS
    quiet: bool = False

    def check_errors(self) -> None:
        """PlanError on a setting that cannot be meant."""
        check_on_error(self.kind, self.on_error)
        if self.max_errors is not None:
            keep_whole(self, "max_errors", 0)

    def params(self) -> dict[str, Any]:
        """All but what is logged."""
        return {name: value for name, value in super().params().items() if name != "quiet"}

    @property
    def skips(self) -> bool:
        """Whether anything may be left out."""
        return self.on_error == "skip"

    @property
    def tolerance(self) -> Tolerance:
        """The same for whoever runs it."""
        return Tolerance(self.skips, self.max_errors, self.quiet)

    def error_params(self) -> dict[str, Any]:
        """What decides about the rows, if anything may be left out."""
        return {"on_error": self.on_error, "max_errors": self.max_errors} if self.skips else {}

    def ignoring_errors(self: S, quiet: bool) -> S:
        """Whatever fails is left out; a limit that the user gave stays."""
        return self if self.skips else replace(self, on_error="skip", max_errors=None, quiet=quiet)


def check_on_error(call: str, on_error: Any) -> None:
    """PlanError unless it is one of the two words."""
    if on_error not in ("raise", "skip"):
        raise PlanError(f"{call}(on_error={on_error!r}): on_error must be 'raise' or 'skip'")


def ignore_errors(node: Node, quiet: bool) -> Node:
    """The plan in which every step leaves out what fails in it, back to steps that store their rows."""
    if node.traits.stores:
        return node
    inputs = tuple(ignore_errors(child, quiet) for child in node.inputs)
    if any(new is not old for new, old in zip(inputs, node.inputs)):
        node = node.with_inputs(*inputs)
    return node.ignoring_errors(quiet)
