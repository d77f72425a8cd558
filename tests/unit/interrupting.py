"""A key that is pressed at a chosen moment.

Python runs signal handlers when a function is entered and after a call of a C function. A profiler is told of
exactly these moments, so one that raises KeyboardInterrupt at the k-th of them stands in for the key.
"""

import os
import sys
from types import FrameType
from typing import Any

import forebay as fb

PACKAGE = os.path.dirname(fb.__file__) + os.sep


class Key:
    """Raises once, at the given moment inside Forebay; counts moments."""

    def __init__(self, moment: int | None = None) -> None:
        self.moment = moment
        self.count = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(PACKAGE):
            self.count += 1
            if self.count == self.moment:
                sys.setprofile(None)
                raise KeyboardInterrupt


def interrupted_next(it: Any, key: Key) -> Any:
    sys.setprofile(key)
    try:
        return next(it)
    finally:
        sys.setprofile(None)
