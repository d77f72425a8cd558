"""Lines of code whose allocations grew, for those who ask for it: tracing makes Python several times slower."""

import threading
import tracemalloc
from collections import Counter
from pathlib import Path

from forebay.observe.verdict import size

_MOST = 5
_FRAMES = 12  # Deep enough to get from a buffer inside Forebay to the loop that asked for it.
_NOT_THE_USERS = (str(Path(__file__).parent.parent), threading.__file__)


class Allocations:
    """Traces allocations between ``begin`` and ``end``, unless the program was doing so already."""

    def __init__(self) -> None:
        self._ours = False
        self._before: tracemalloc.Snapshot | None = None

    def begin(self) -> None:
        """Start tracing, and remember what is there."""
        self._ours = not tracemalloc.is_tracing()
        if self._ours:
            tracemalloc.start(_FRAMES)
        self._before = tracemalloc.take_snapshot()

    def end(self) -> None:
        """Stop, if it was not on before."""
        self._before = None
        if self._ours:
            tracemalloc.stop()

    def grown(self) -> tuple[str, ...]:
        """The lines that hold most more, in words."""
        if self._before is None or not tracemalloc.is_tracing():
            return ()
        differences = tracemalloc.take_snapshot().compare_to(self._before, "traceback")
        more: Counter[str] = Counter()
        for each in differences:
            more[_users_line(each.traceback)] += each.size_diff
        return tuple(f"{line}  +{size(count)}" for line, count in more.most_common(_MOST) if count > 1 << 16)


def _users_line(trace: tracemalloc.Traceback) -> str:
    """The innermost line that is not Forebay's own."""
    frames = [frame for frame in trace if not frame.filename.startswith(_NOT_THE_USERS)] or list(trace)
    return f"{frames[-1].filename}:{frames[-1].lineno}"
