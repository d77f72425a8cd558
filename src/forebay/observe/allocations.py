"""Lines of code whose allocations grew, for those who ask for it: tracing makes Python several times slower."""

import tracemalloc

from forebay.observe.verdict import size

_MOST = 5


class Allocations:
    """Traces allocations between ``begin`` and ``end``, unless the program was doing so already."""

    def __init__(self) -> None:
        self._ours = False
        self._before: tracemalloc.Snapshot | None = None

    def begin(self) -> None:
        """Start tracing, and remember what is there."""
        self._ours = not tracemalloc.is_tracing()
        if self._ours:
            tracemalloc.start()
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
        own = tracemalloc.Filter(False, __file__.rpartition("/")[0] + "/*")
        after = tracemalloc.take_snapshot().filter_traces([own])
        differences = after.compare_to(self._before, "lineno")
        found = [each for each in differences if each.size_diff > 0][:_MOST]
        return tuple(
            f"{each.traceback[0].filename}:{each.traceback[0].lineno}  "
            f"+{size(each.size_diff)} in {each.count_diff:+,} pieces"
            for each in found
        )
