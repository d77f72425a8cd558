"""Where in the user's program a dataset method was called."""

import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Place(str):
    """File and line, as a text; `call` is another for each call on that line."""

    call: int = 0


def caller() -> str:
    """File and line of the innermost frame outside Forebay: a Place."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    place = Place(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
    place.call = frame.f_lasti
    return place
