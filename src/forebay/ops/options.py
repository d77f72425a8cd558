"""``with_options``: settings that ride along in the plan."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from forebay.errors import PlanError
from forebay.options import DEFAULTS, Options, RemoteOptions
from forebay.plan.node import Build, Node, Traits
from forebay.remote_run import refusal
from forebay.run import Access, Operator, Setup


@dataclass(frozen=True, eq=False, kw_only=True)
class WithOptions(Node):
    """``Dataset.with_options``. Options are read from the plan before it runs; the step itself does nothing."""

    options: Options

    kind = "with_options"
    traits = Traits(one_to_one=True, same_elements=True, transparent=True)

    def __post_init__(self) -> None:
        if not isinstance(self.options, Options):
            raise PlanError(f"with_options({self.options!r}): options must be a forebay.Options")
        self.options.check()
        # What is known by now is refused on this line.
        for node in self.inputs:
            check_reads(node, plan_options(self).remote)

    def params(self) -> dict[str, Any]:
        """The fields that are set."""
        return _set_fields(self.options)

    def cardinality(self) -> int:
        """The input's."""
        return self.input.cardinality()

    def access(self) -> Access | None:
        """The input's."""
        return self.input.access()

    def is_noop(self) -> bool:
        """Always."""
        return True

    def lower(self, setup: Setup, build: Build) -> Operator:
        """The input itself."""
        return build(self.input, setup)


def _set_fields(options: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in fields(options):
        value = getattr(options, each.name)
        found |= _set_fields(value, f"{each.name}.") if is_dataclass(value) else {prefix + each.name: value}
    return found


def check_reads(node: Node, options: RemoteOptions) -> None:
    """PlanError if the plan names a file that the options do not allow to be read."""
    allow = options.allow
    if allow is None:
        return
    for path in node.reads():
        if (why := refusal(path, allow)) is not None:
            raise PlanError(f"{node.site}: {path} {why}")
    for child in node.inputs:
        check_reads(child, options)


def plan_options(node: Node) -> Options:
    """The options in force for a plan: the ones set last win over those set before, and those over the defaults."""
    return functools.reduce(Options.merged, _given(node), DEFAULTS.merged(Options()))


def _given(node: Node) -> Iterator[Options]:
    """Those set in a plan, later ones last."""
    for child in node.inputs:
        yield from _given(child)
    if isinstance(node, WithOptions):
        yield node.options
