"""What errors hold on to by way of the frames that they came through."""

import os
from collections.abc import Iterator
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def let_go(error: BaseException) -> None:
    """Have the frames of this package that an error came through, and their callers, forget their variables.

    These are the blocks that were in the making, and often the error, which then would lead to itself and stay, with
    all of it, until the garbage collector comes by. It counts objects, not bytes, and may not come for long. The frames
    of the user's functions stay as they are, for a debugger to look at.
    """
    for each in _chain(error):
        for frame in _frames(each):
            if frame.f_code.co_filename.startswith(_PACKAGE):
                try:
                    frame.clear()
                except RuntimeError:
                    # It runs: one that has to hand the error on, or of a thread that goes on with other work.
                    continue


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and all that it came of."""
    waiting, known = [error], {id(error)}
    while waiting:
        each = waiting.pop()
        yield each
        for other in (each.__cause__, each.__context__):
            if other is not None and id(other) not in known:
                known.add(id(other))
                waiting.append(other)


def _frames(error: BaseException) -> Iterator[FrameType]:
    """Those of its traceback, and those that called the first of them, which it keeps too."""
    trace = error.__traceback__
    frame = trace.tb_frame.f_back if trace is not None else None
    while frame is not None:
        yield frame
        frame = frame.f_back
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next
