"""Everything Forebay raises.

ForebayError
├── PlanError        a dataset cannot be built as written (also a ValueError)
├── DataError        an element cannot go through an operator: shapes, dtypes, structure
│   ├── FileError        it cannot be read from its file: missing, cut short, damaged, too large
│   │   └── RemoteError      the place where its file is cannot be reached, may not be used, or gave something else
│   └── TransferError    it cannot go to a worker process, or its result cannot come back
├── SpillError       what does not fit into memory cannot be written to disk
├── FunctionError    a function of the user's raised; the original is ``__cause__``
├── CursorError      a saved state does not fit the dataset it is loaded into
├── LengthError      a dataset without a known, finite length is asked for it (also a TypeError)
├── ClosedError      an iterator is used after ``close()``, or closed while a thread is in ``next()``
├── BusyError        an iterator is used by two threads at once (also a RuntimeError)
└── InternalError    a bug in Forebay itself
"""

# Names of this length are in a text for no other reason than that it speaks of them.
_SURELY = 6


class ForebayError(Exception):
    """Base of all errors that Forebay raises on purpose."""


class PlanError(ForebayError, ValueError):
    """A dataset cannot be built as written; raised on the line that builds it."""


class DataError(ForebayError):
    """An element cannot go through an operator."""


class FileError(DataError):
    """Something in a file cannot be read. `path`, `offset` (in bytes, or None) and `reason` say where and why.

    In text, `line` says it too, from 1 on, where it is known.
    """

    def __init__(
        self, path: str, reason: str, offset: int | None = None, step: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(path, reason, offset, step, line)
        self.path = path
        self.reason = reason
        self.offset = offset
        self.step = step
        self.line = line

    def __str__(self) -> str:
        where = place(self.path, self.offset, self.line)
        return f"{'' if self.step is None else f'{self.step}: '}{where}: {self.reason}"

    def read_by(self, step: str) -> "FileError":
        """The same with the step of the pipeline that was reading."""
        return type(self)(self.path, self.reason, self.offset, step, self.line).with_traceback(self.__traceback__)

    def at_line(self, line: int | None) -> "FileError":
        """The same with the number of the line."""
        return type(self)(self.path, self.reason, self.offset, self.step, line).with_traceback(self.__traceback__)


class RemoteError(FileError):
    """A file cannot be had from where it is: no answer in time, changed while it was read, or not allowed.

    It says nothing about what is in the file, so that ``on_error="skip"`` does not pass over it.
    """


def place(path: str, offset: int | None, line: int | None = None) -> str:
    """What errors call a place in a file."""
    if offset is None:
        return path
    return f"{path}, byte {offset:,}" if line is None else f"{path}, line {line:,} (byte {offset:,})"


def an(name: str) -> str:
    """A name with its article, as errors say it."""
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


class TransferError(DataError):
    """An element cannot be sent to a worker process, or what a function made of it cannot be sent back."""


class SpillError(ForebayError):
    """What does not fit into memory cannot be written to disk either. `step` is the one that met it, if one did."""

    step: str | None = None

    def met_by(self, step: str) -> None:
        """Say which step it was, unless one is named that is nearer."""
        if self.step is None:
            self.step = step
            self.args = (f"{step}: {self.args[0]}", *self.args[1:])


class FunctionError(ForebayError):
    """A function of the user's raised; the original exception is ``__cause__``, with its own traceback.

    `element` is what the function was called with, in short, and `origin` the place in a file that it was read from;
    each is None where that cannot be told.
    """

    element: str | None = None
    origin: str | None = None

    together = False
    """Whether it raised for many rows at once, and not for any of them when it was asked again row by row."""

    def __str__(self) -> str:
        text = super().__str__()
        told = [] if self.element is None or _is_told(self.element, f"{text} {self.origin or ''}") else [self.element]
        told += [] if self.origin is None else [f"from {self.origin}"]
        return f"{text} (the element is {', '.join(told)})" if told else text

    def again(self, text: str) -> "FunctionError":
        """The same with another text."""
        error = FunctionError(text)
        error.__dict__.update(self.__dict__)
        error.__cause__ = self.__cause__
        return error


def _is_told(element: str, text: str) -> bool:
    """Whether a text says already which element it is about."""
    bare = element.removeprefix("b")[1:-1]
    quoted = element[-1:] in ("'", '"')
    named = quoted and len(bare) >= _SURELY and all(part in text for part in bare.split("..."))
    return named or (quoted and element in text) or f", element {element}: " in text


class CursorError(ForebayError, ValueError):
    """A saved state does not fit the dataset that it is loaded into."""


class LengthError(ForebayError, TypeError):
    """A dataset without a known, finite length is asked for it."""


class ClosedError(ForebayError, RuntimeError):
    """An iterator is used after ``close()``, closed during ``next()``, or forked since it was made."""


class BusyError(ForebayError, RuntimeError):
    """An iterator is used by two threads at once."""


class InternalError(ForebayError):
    """A bug in Forebay. Please report it together with the plan that ``explain()`` prints."""
