"""How files elsewhere are read at the moment: the options in force, and whether whoever asked is still there.

A running dataset puts its own in force on every thread that works for it, so that it holds for sources, for files that
are looked at while a plan is made, for writers, and for what users call inside ``map``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from forebay.errors import ClosedError, RemoteError
from forebay.options import DEFAULTS, RemoteOptions


class RemoteRun:
    """The options of one run, and whether it is being closed. Goes to worker processes as its options alone."""

    def __init__(self, options: RemoteOptions) -> None:
        self.options = options
        self.closing = False
        self.closed = False
        """Whether nobody works for it any more."""
        self.before: RemoteRun | None = None
        """What was in force when it first came into force."""

    def __reduce__(self) -> Any:
        return RemoteRun, (self.options,)

    def anew(self) -> "RemoteRun":
        """Another run with the same options."""
        return RemoteRun(self.options)

    def glance(self) -> None:
        """ClosedError if the run is being closed. Whoever waits calls this a few times a second."""
        if self.closing:
            raise ClosedError("the iterator was closed while a file was being read")


_DEFAULT = RemoteRun(DEFAULTS.remote)
_current: ContextVar[RemoteRun] = ContextVar("forebay_remote_run", default=_DEFAULT)


def current() -> RemoteRun:
    """That in force on this thread."""
    run = _current.get()
    # A Ctrl-C may come just before one is taken out of force.
    while run.closed and run.before is not None:
        run = run.before
    return run


class in_force:
    """Put it in force on this thread. Every block that is handed out goes through here, and a generator costs more."""

    __slots__ = ("_run", "_token")

    def __init__(self, run: RemoteRun) -> None:
        self._run = run

    def __enter__(self) -> None:
        if self._run.before is None and (before := current()) is not self._run:
            self._run.before = before
        self._token = _current.set(self._run)

    def __exit__(self, *error: object) -> None:
        _current.reset(self._token)


@contextmanager
def remote_options(options: RemoteOptions) -> Iterator[None]:
    """Have these options in force for what is read outside of running datasets, on this thread.

    That is, for files that are looked at by the line that makes a dataset (``from_npy``, ``from_csv``,
    ``from_images``, ``list_files`` and others), and for calls of ``read_file``. Running datasets go by their own
    ``Options.remote``.

    >>> import forebay as fb
    >>> with fb.io.remote_options(fb.RemoteOptions(allow=("s3://my-bucket",))):
    ...     fb.io.read_file("https://example.org/data")
    Traceback (most recent call last):
    forebay.errors.RemoteError: https://example.org/data: is not allowed: ...
    """
    with in_force(RemoteRun(current().options.merged(options))):
        yield


def refusal(path: str, allow: tuple[str, ...]) -> str | None:
    """What to say of a path that is not allowed; None of others."""
    # Imported by those who use it.
    from forebay.allow import allowed

    if allowed(path, allow):
        return None
    return f"is not allowed: RemoteOptions.allow holds {', '.join(allow) or 'nothing'}"


def check_allowed(path: str) -> None:
    """RemoteError if the options in force do not let files be read from or written to there."""
    allow = current().options.allow
    if allow is not None and (why := refusal(path, allow)) is not None:
        raise RemoteError(path, why)
