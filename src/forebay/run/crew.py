"""Who owns the workers of a running dataset, and what is remembered of them from one iteration to the next."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from forebay.run.collected import close_when_collected
from forebay.run.tuner import Tuner

if TYPE_CHECKING:
    from forebay.run.comparison import Comparison
    from forebay.run.gil_probe import Seen


class Parkable(Protocol):
    """Workers that are worth keeping between two iterations: processes, which take a while to start."""

    identity: str
    """What they run: equal only if they would do the same."""

    @property
    def usable(self) -> bool:
        """Whether they can still be had: a forked child finds those of its parent."""

    def close(self) -> None:
        """End them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What `executor="auto"` settled on for a step, and why."""

    kind: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


class Parking:
    """What a dataset keeps between its iterations: idle processes, and by step, choices and numbers already found.

    Parked workers end with the dataset, with the interpreter, or when an iterator over it is closed.
    """

    def __init__(self) -> None:
        self._parked: dict[str, Parkable] = {}
        self.choices: dict[tuple[str, int], Choice] = {}
        self.workers: dict[tuple[str, int], int] = {}
        self.seen: dict[tuple[str, int], Seen] = {}
        self.comparisons: dict[tuple[str, int], Comparison] = {}
        self._watched = False

    def found(self) -> list[tuple[str, str]]:
        """Steps, and what earlier iterations found out about their workers."""
        notes = {key: str(choice) for key, choice in self.choices.items()}
        for key, count in self.workers.items():
            notes[key] = f"{count} worker{'s' * (count != 1)}" + (f", {notes[key]}" if key in notes else "")
        return [(site, note) for (site, _), note in notes.items()]

    def take(self, identity: str) -> Any | None:
        """Workers that run exactly this, if any are idle."""
        parked = self._parked.pop(identity, None)
        if parked is None or parked.usable:
            return parked
        parked.close()
        return None

    def put(self, workers: Parkable) -> None:
        """Keep them for the next iteration."""
        if not self._watched:
            # Not before: datasets are made and dropped inside of functions, on threads that cannot wait.
            self._watched = True
            close_when_collected(self, partial(_close_all, self._parked))
        old = self._parked.pop(workers.identity, None)
        if old is not None:
            old.close()
        self._parked[workers.identity] = workers

    def clear(self) -> None:
        """End all that are idle."""
        _close_all(self._parked)


def _close_all(parked: dict[str, Parkable]) -> None:
    while parked:
        parked.popitem()[1].close()


class Crew:
    """The workers of one iterator. `finished` is set when it has come to its end, so that workers may be kept."""

    def __init__(self, parking: Parking | None = None, tuner: Tuner | None = None) -> None:
        self.parking = parking or Parking()
        self.tuner = tuner or Tuner(1, enabled=False)
        self.finished = False

    def release(self, workers: Parkable, through: bool) -> None:
        """Park them after a whole iteration, or if their step is `through`; end them if it was broken off."""
        if self.finished or through:
            self.parking.put(workers)
        else:
            workers.close()
