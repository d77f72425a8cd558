"""What the steps of a running dataset may use of the machine."""

from dataclasses import dataclass, field

from forebay.run.cpus import available_cpus
from forebay.run.crew import Crew


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Shared by all steps of an iterator.

    Args:
        cpus: how many processors to make use of where the user left the number to AUTOTUNE.
        most: the most workers that one step gets, however many it asks for.
        intra_op: how many threads libraries with pools of their own may use for one call.
        deterministic: whether steps that do not say keep their elements in order.
        ordered: whether all steps do, also those that say otherwise.
        crew: who owns the workers.
    """

    cpus: int = field(default_factory=available_cpus)
    most: int | None = None
    intra_op: int | None = None
    deterministic: bool = True
    ordered: bool = False
    crew: Crew = field(default_factory=Crew)

    def workers(self, calls: int) -> int:
        """How many workers a step gets that asks for so many; AUTOTUNE asks for as many as there are processors."""
        wanted = self.cpus if calls == AUTOTUNE else calls
        return wanted if self.most is None else min(wanted, self.most)


AUTOTUNE = -1
