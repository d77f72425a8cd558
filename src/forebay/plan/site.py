"""Where in the user's program a dataset method was called."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Place(str):
    """File and line, as a text; `call` is another for each call on that line."""

    call: int = 0


_nobody: ContextVar[bool] = ContextVar("nobody", default=False)


@contextmanager
def unplaced() -> Iterator[None]:
    """Steps that are added meanwhile are on no line of the user's: errors call them by what they are alone."""
    token = _nobody.set(True)
    try:
        yield
    finally:
        _nobody.reset(token)


def frames_to_caller() -> int:
    """How many calls there are between the caller and the user's line, as ``warnings.warn`` counts them."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def caller() -> str:
    """File and line of the innermost frame outside Forebay: a Place, empty if nobody wrote it (``unplaced``)."""
    frame = sys._getframe(1)
    if _nobody.get():
        place = Place()
        place.call = hash((frame.f_code.co_filename, frame.f_lasti))
        return place
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    place = Place(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
    place.call = frame.f_lasti
    return place
