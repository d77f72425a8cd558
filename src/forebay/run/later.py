"""Errors that wait until the rows before them have been given out."""

import weakref
from contextvars import ContextVar

from forebay.errors import ClosedError
from forebay.run.tracebacks import let_go


class Errors(weakref.WeakKeyDictionary["Later", Exception]):
    """Those of one iterator, which alone leads to them."""


# Not the errors themselves: threads take over the context in which they are started.
_current: ContextVar["weakref.ref[Errors] | None"] = ContextVar("forebay_errors", default=None)


class Later:
    """An error, to be raised in its turn.

    Its traceback leads to all callers, and so to the iterator that was asked for rows. What closes an iterator when
    nobody refers to it any more has hold of its operators: if these led to the error, that would never come about.
    """

    __slots__ = ("__weakref__", "_errors", "_own")

    def __init__(self, error: Exception) -> None:
        self._errors = _current.get()
        errors = None if self._errors is None else self._errors()
        self._own = error if errors is None else None
        # It may never be asked for.
        let_go(error)
        if errors is not None:
            errors[self] = error

    @property
    def error(self) -> Exception:
        """What it is."""
        errors = None if self._errors is None else self._errors()
        return self._own or (ClosedError("this iterator is gone") if errors is None else errors[self])


class keeping:
    """Have errors that come up on this thread kept there."""

    __slots__ = ("_errors", "_token")

    def __init__(self, errors: "weakref.ref[Errors]") -> None:
        self._errors = errors

    def __enter__(self) -> None:
        self._token = _current.set(self._errors)

    def __exit__(self, *error: object) -> None:
        _current.reset(self._token)
