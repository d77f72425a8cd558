"""Faults that readers pass over, gathered as they come."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from forebay.errors import FileError, place
from forebay.run.faults import heard_by

LISTED = 1000
"""So many are kept; the others are only counted."""


@dataclass(frozen=True)
class Fault:
    """What cannot be read. `offset` is in bytes of the contents, None where there is none to name; `line` in text."""

    file: str
    offset: int | None
    reason: str
    line: int | None = None

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return place(self.file, self.offset, self.line)


@dataclass
class Faults:
    """What has been found so far."""

    count: int = 0
    listed: list[Fault] = field(default_factory=list)

    def add(self, error: object, path: str = "") -> None:
        """One more."""
        self.count += 1
        if len(self.listed) < LISTED:
            if isinstance(error, FileError):
                self.listed.append(Fault(error.path, error.offset, error.reason, error.line))
            else:
                self.listed.append(Fault(path, None, str(error)))

    def clear(self) -> None:
        """Begin again."""
        self.count = 0
        self.listed.clear()


@contextmanager
def passed_over(faults: Faults) -> Iterator[None]:
    """Take down what steps with ``on_error="skip"`` pass over meanwhile, in place of logging it."""
    mutex = threading.Lock()

    def hear(what: object) -> None:
        with mutex:
            faults.add(what)

    with heard_by(hear):
        yield
