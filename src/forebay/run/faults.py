"""What a step passes over instead of raising it: counted, limited, and told in the log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from forebay.errors import FileError, ForebayError, FunctionError, RemoteError
from forebay.run.meter import Meter

MAX_ERRORS = 100
"""How many faults are passed over if nothing else is said."""

# So many are logged one by one; of more, a hundred for every further power of ten would still be too many.
_LOGGED = 100


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Whether a step passes over what fails, how often at `most` (None for any number), and whether without a word."""

    skips: bool = False
    most: int | None = MAX_ERRORS
    quiet: bool = False

    def allows(self, faults: int) -> bool:
        """Whether so many are passed over."""
        return not faults or (self.skips and (self.most is None or faults <= self.most))


_listeners: list[Callable[[object], None]] = []


@contextmanager
def heard_by(listener: Callable[[object], None]) -> Iterator[None]:
    """Have this function hear of everything that is passed over meanwhile, in place of the log. From any thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


class Faults:
    """Counts what one step has passed over. The count is part of the step's cursors, so that a limit falls on the same
    fault after a resume."""

    def __init__(self, tolerance: Tolerance, meter: Meter | None = None) -> None:
        self._tolerance = tolerance
        self._meter = meter
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether the next one has to be raised."""
        most = self._tolerance.most
        return not self._tolerance.skips or (most is not None and self.count >= most)

    def passes(self, error: BaseException) -> bool:
        """Whether it is. What cannot be reached is not damaged: passed over, it would end epochs without a word."""
        return not self.full and not isinstance(error, RemoteError)

    @property
    def logs(self) -> bool:
        """Whether the next one will be in the log: the first hundred are, then ever fewer of them."""
        number = self.count + 1
        step = 1 if number <= _LOGGED else 10 ** (len(str(number)) - 1)
        return not self._tolerance.quiet and number % step == 0

    @property
    def told(self) -> bool:
        """Whether anybody will read of the next one."""
        return bool(_listeners) or self.logs

    def add(self, what: object) -> None:
        """Pass over this."""
        logs = self.logs
        self.count += 1
        if self._meter is not None:
            self._meter.skipped += 1
        if _listeners:
            for listener in tuple(_listeners):
                listener(what)
        elif logs:
            import logging

            more = "" if self.count < _LOGGED else f" ({self.count:,} so far, of which not all are logged)"
            logging.getLogger("forebay").warning("skipped: %s%s", what, more)

    def refused(self, error: ForebayError) -> ForebayError:
        """The error for the fault that is one too many."""
        if not self._tolerance.skips or isinstance(error, RemoteError):
            return error
        why = f"; this is fault {self.count + 1:,}, and max_errors is {self._tolerance.most}"
        made: ForebayError
        if isinstance(error, FileError):
            made = FileError(error.path, error.reason + why, error.offset, error.step, error.line)
            made.__cause__ = error
        elif isinstance(error, FunctionError):
            made = error.again(f"{error.args[0]}{why}")
        else:
            made = FunctionError(f"{error}{why}")
            made.__cause__ = error.__cause__
        return made
