"""Why a plan does not tell how many elements there are: what its sources would have to be given."""

from dataclasses import dataclass
from typing import Any

from forebay.errors import InternalError
from forebay.plan.node import UNKNOWN, Build, Node
from forebay.plan.spec import static_spec
from forebay.run import Operator, Setup


def count_hint(node: Node) -> str | None:
    """What would make the number of its elements known; None if nothing would."""
    unknown = [each for each in node.inputs if each.cardinality() == UNKNOWN]
    if not unknown:
        return node.count_hint()
    # Behind a step that cannot tell in any case, a source that is counted is of no use.
    counted = node.with_inputs(*(_Counted(like=each) if each in unknown else each for each in node.inputs))
    if counted.cardinality() == UNKNOWN:
        return None
    hints = dict.fromkeys(count_hint(each) for each in unknown)
    return "; ".join(hint for hint in hints if hint is not None) if None not in hints else None


@dataclass(frozen=True, eq=False, kw_only=True)
class _Counted(Node):
    """Stands for a dataset whose elements are counted. Never runs."""

    like: Node

    kind = "counted"

    def cardinality(self) -> int:
        """Any number will do."""
        return 1

    def spec(self, *inputs: Any) -> Any | None:
        """The same."""
        return static_spec(self.like)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Not meant for that."""
        raise InternalError("a plan that was only to be looked at is run")
