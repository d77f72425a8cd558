"""Lines of code whose allocations grew, for those who ask for it: tracing makes Python several times slower."""

import os
import sysconfig
import tracemalloc
from collections import Counter
from pathlib import Path

from forebay.observe.verdict import size

_MOST = 5
_FRAMES = 12  # Deep enough to get from a buffer inside Forebay to the loop that asked for it.
_FOREBAY = str(Path(__file__).parent.parent) + os.sep
_LIBRARIES = tuple(
    folder + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib") if (folder := sysconfig.get_path(name))
)
# Below these are libraries wherever they are, such as those of the user alone.
_FOLDERS = {"site-packages", "dist-packages"}
# Code that was made by a library, or comes with the interpreter.
_MADE = ("<frozen ", "<__array_function__")


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
            more[_line(each.traceback)] += each.size_diff
        return tuple(f"{line}  +{size(count)}" for line, count in more.most_common(_MOST) if count > 1 << 16)


def _line(trace: tracemalloc.Traceback) -> str:
    """The innermost line of the user's, and that of the library it called, if this is where memory was taken."""
    frames = [frame for frame in trace if not frame.filename.startswith(_FOREBAY)] or list(trace)
    last = frames[-1]
    users = next((frame for frame in reversed(frames) if not _is_librarys(frame.filename)), last)
    if users is last:
        return f"{last.filename}:{last.lineno}"
    return f"{users.filename}:{users.lineno} (in {last.filename}:{last.lineno})"


def _is_librarys(filename: str) -> bool:
    if filename.startswith((_FOREBAY, *_LIBRARIES, *_MADE)):
        return True
    return not _FOLDERS.isdisjoint(Path(filename).parts)
