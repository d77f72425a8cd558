"""What an operator has done so far: counted per block, so that it can always be on."""

from dataclasses import dataclass


@dataclass(slots=True)
class Meter:
    """Sums over the life of an operator.

    `seconds` is the time that its puller spent in it, its inputs included. `waited` is the part of that in which it
    only waited for workers, and `worked` what these workers were busy, `cpu` of it computing. `skipped` are faults that
    were passed over.
    """

    blocks: int = 0
    rows: int = 0
    nbytes: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    worked: float = 0.0
    cpu: float = 0.0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class StageStats:
    """One step of a running dataset, as ``DatasetIterator.stats()`` tells it.

    Args:
        name: the step, and the line it was written on.
        depth: how many steps with several inputs are above it.
        elements: how many have come out.
        blocks: in how many pieces.
        bytes: how much that was.
        busy: seconds of work, on whatever thread or process.
        wait: seconds in which the step behind it was kept waiting by this one's workers.
        queue: results that are ready and have not been asked for.
        workers: how many there are at the moment.
        executor: what they are.
        held: bytes in its buffer at the moment.
        full: how full that is, from 0 to 1.
        moved: by how many places its rows moved on average, if it is a shuffle through a buffer.
        among: of how many rows it then made an order, in each round of a ``repeat``.
        skipped: how many elements, or other faults, were left out because of ``on_error="skip"``.
        uniform: whether it puts rows into a uniform order, so that how far they move need not be measured.
    """

    name: str
    depth: int
    elements: int
    blocks: int
    bytes: int
    busy: float
    wait: float
    queue: int
    workers: int
    executor: str
    held: int = 0
    full: float = 0.0
    moved: float | None = None
    among: float = 0.0
    skipped: int = 0
    uniform: bool = False

    @property
    def lasted(self) -> float:
        """Seconds that its work took, had all its workers an equal part of it."""
        return self.busy / max(self.workers, 1)

    @property
    def shuffled(self) -> float | None:
        """How far rows moved compared with a uniform shuffle of as many: 1.0 is as far, 0.0 not at all."""
        if self.uniform:
            return 1.0
        # Two places out of n are a third of n apart on average.
        return None if self.moved is None or self.among < 2 else min(1.0, 3 * self.moved / self.among)
